"""What the tests of passes share: building small models, running them before and after, random graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from irc.ir import build as building
from irc.ir import dims, dtypes
from irc.ir.graph import Node
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.ir.types import TensorType
from irc.ir.verify import check
from irc.passes import run_passes


def tensor(text: str) -> TensorType:
    """`f32[B,64]`"""
    name, _, rest = text.partition("[")
    sizes = [s for s in rest.rstrip("]").split(",") if s]
    return TensorType(dtypes.DType.of(name), tuple(dims.parse(s) for s in sizes))


def model_of(body: Callable[..., Any], **inputs: str) -> Model:
    """A model whose `main` is `body(build, *inputs)`."""
    model = Model("test")
    building.function(model, "main", [(name, tensor(t)) for name, t in inputs.items()], body)
    return model


def random_inputs(model: Model, sizes: dict[str, int], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    out = []
    for value in model.main.inputs:
        shape = [dims.evaluate(d, sizes) for d in value.dims]
        if value.dtype.is_bool:
            out.append(np.asarray(rng.random(shape) < 0.5))
        elif value.dtype.is_integer:
            out.append(rng.integers(-5 if value.dtype.kind == "int" else 0, 100, shape).astype(value.dtype.numpy))
        else:
            out.append(rng.standard_normal(shape).astype(value.dtype.numpy))
    return out


def bits(array: np.ndarray) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.tobytes()


class Case:
    """A model, what passes made of it, and the comparison of both."""

    def __init__(self, model: Model, pipeline: str, **options: Any) -> None:
        self.before = model
        self.after = run_passes(model, pipeline, **options)
        check(self.after)

    @property
    def ops(self) -> list[str]:
        """Operators of `main`'s body, in order."""
        return [n.op.name for n in self.after.main.body.nodes]

    @property
    def nodes(self) -> list[Node]:
        return list(self.after.main.body.nodes)

    @property
    def init_ops(self) -> list[str]:
        return [n.op.name for n in self.after.init.nodes]

    def same_bits(self, inputs: Sequence[np.ndarray] | None = None, **sizes: int) -> Case:
        """Fail unless both models give the same bits."""
        inputs = random_inputs(self.before, sizes) if inputs is None else inputs
        old, new = evaluate(self.before, inputs), evaluate(self.after, inputs)
        assert [bits(a) for a in old] == [bits(a) for a in new]
        return self


@pytest.fixture
def build() -> Callable[..., Model]:
    return model_of


@pytest.fixture
def run() -> Callable[..., Case]:
    """run(pipeline, body, **inputs) -> Case"""

    def go(pipeline: str, body: Callable[..., Any], **inputs: str) -> Case:
        return Case(model_of(body, **inputs), pipeline)

    return go


@pytest.fixture
def case() -> type[Case]:
    return Case
