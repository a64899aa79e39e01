"""Random typed graphs of 1 to 12 nodes, made from the operator definitions: their operands, attributes and `infer`.

No operator is named here but those that are left out, each with its reason.  A candidate node gets operands from what
is there or new inputs, and attributes of the declared kinds; `infer` judges it, and what it refuses is drawn again.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np

from irc.ir import dtypes
from irc.ir.build import Builder
from irc.ir.dtypes import DType
from irc.ir.errors import IrcError
from irc.ir.model import Function, Model
from irc.ir.operators import Operator, Trait, all_operators
from irc.ir.types import TensorType

DTYPES = [dtypes.DType.of(n) for n in "f32 f32 f32 f16 bf16 f64 i8 u8 i16 i32 i32 i64 u32 u64 bool".split()]
LEFT_OUT = {
    "custom_call": "is what a caller makes of it",
    "ImageDecoder": "needs files",
    "optimization_barrier": "does nothing that could differ",
    "RandomBits": "draws are compared in tests/ops/test_random.py",
    "RandomNormal": "inverse of erf in the tails differs by more than its rounding; tests/ops/test_random.py",
    "RandomUniform": "draws are compared in tests/ops/test_random.py",
    "Bernoulli": "draws are compared in tests/ops/test_random.py",
    "Multinomial": "draws are compared in tests/ops/test_random.py",
    "Dropout": "draws are compared in tests/ops/test_random.py",
    "Det": "orders of elimination differ where elements are NaN or infinite",
    "Inverse": "orders of elimination differ where elements are NaN or infinite",
    "cholesky": "what a matrix that is not positive definite gives is left open",
    "Attention": "mx.fast passes over keys without weight, whose infinite values the reference multiplies by 0",
    "complex": "library functions of complex numbers differ at infinities and signed zeros",
    "triangular_solve": "what a singular matrix gives is left open",
    "DynamicQuantizeLinear": "NaN and infinities have no quantized value",
    "reduce_precision": "keeps f32 with fewer bits, the reference of which is tested element by element",
}
FAMILIES_LEFT_OUT = {
    "classical": "attributes are tables (trees, classes, vectors) that must fit each other; random ones never do",
    "text": "made of strings and tables of n-grams",
    "training": "operands come in groups that one step of an optimizer makes",
}
LARGEST = 400
"""Elements of a value."""


def candidates() -> list[Operator]:
    """Pure operators on tensors of numbers, without sub-graphs."""
    return [
        op
        for op in all_operators()
        if op.name not in LEFT_OUT
        and op.family not in FAMILIES_LEFT_OUT
        and Trait.PURE in op.traits
        and not (Trait.LATE in op.traits or Trait.HOST in op.traits)
        and not op.regions
        and not any(o.any_type or not _numeric(o.constraint) for o in op.operands)
        and not any(kind.base in ("symbol", "payload", "type") for kind in op.kinds.values())
    ]


def _numeric(constraint: Any) -> bool:
    return any(constraint.accepts(d) for d in DTYPES)


class Grower:
    """One graph in the making; every value it makes is an output."""

    def __init__(self, draw: Random, operators: list[Operator]) -> None:
        self.draw = draw
        self.operators = operators
        self.model = Model("fuzz")
        self.function = self.model.add_function(Function("main"))
        self.build = Builder(self.model, self.function.body)
        self.pool: list[Any] = []
        self.made: list[Any] = []

    def grow(self, steps: int) -> Model:
        for _ in range(steps):
            for _ in range(12):
                if self.node(self.draw.choice(self.operators)):
                    break
        self.function.body.set_outputs(self.made)
        self.function.input_attributes = [{} for _ in self.function.inputs]
        self.function.output_names = [f"y{i}" for i in range(len(self.made))]
        return self.model

    def input(self, dtype: DType, dims: tuple[int, ...]) -> Any:
        value = self.function.body.add_input(TensorType(dtype, dims), f"x{len(self.function.inputs)}")
        self.pool.append(value)
        return value

    def dims(self) -> tuple[int, ...]:
        return tuple(self.draw.choice([0, 1, 1, 2, 2, 3, 3, 4, 5]) for _ in range(self.draw.choice([0, 1, 2, 2, 3, 4])))

    def node(self, op: Operator) -> bool:
        """Try to add one node; False if `infer` refused it (inputs made for it stay unused and go)."""
        inputs = len(self.function.inputs)
        operands, group = [], self.draw.choice([1, 2, 3])
        first: Any = None
        for spec in op.operands:
            count = group if spec.variadic else 1
            chosen = []
            for _ in range(count):
                if spec.optional and self.draw.random() < 0.5:
                    chosen.append(None)
                    continue
                value = self.operand(spec.constraint, first)
                first = first if first is not None else value
                chosen.append(value)
            operands.append(tuple(chosen) if spec.variadic else chosen[0])
        try:
            attributes = {name: self.attribute(kind, default, first) for name, kind, default in op.fields}
            made = self.build.apply(op.name, *operands, **attributes)
        except (IrcError, ValueError, TypeError, OverflowError, ZeroDivisionError, ArithmeticError):
            made = None
        results = made if isinstance(made, tuple) else () if made is None else (made,)
        good = [r for r in results if isinstance(r.type, TensorType) and r.type.dims is not None and _small(r.type)]
        if not good or len(good) != len(results):
            if results:
                from irc.ir.rewrite import Rewriter

                Rewriter(self.model).erase(results[0].node)
            self.forget(inputs)
            return False
        self.pool += good
        self.made += good
        return True

    def forget(self, count: int) -> None:
        """Drop inputs from number `count` on; nothing uses them."""
        for value in self.function.inputs[count:]:
            self.pool.remove(value)
        del self.function.body.inputs[count:]

    def operand(self, constraint: Any, first: Any) -> Any:
        """A value of the pool, more often one like the first operand, or a new input."""
        fitting = [v for v in self.pool if constraint.accepts(v.dtype)]
        if first is not None and self.draw.random() < 0.8:
            fitting = [v for v in fitting if v.dtype is first.dtype] or fitting
        if fitting and self.draw.random() < 0.6:
            return self.draw.choice(fitting)
        allowed = [d for d in DTYPES if constraint.accepts(d)]
        dtype = first.dtype if first is not None and constraint.accepts(first.dtype) else self.draw.choice(allowed)
        if first is None or self.draw.random() < 0.3:
            return self.input(dtype, self.dims())
        dims = list(first.dims)
        if dims and self.draw.random() < 0.4:
            dims[self.draw.randrange(len(dims))] = 1
        if dims and self.draw.random() < 0.3:
            dims = dims[1:]
        return self.input(dtype, tuple(dims))

    def attribute(self, kind: Any, default: Any, first: Any) -> Any:
        """A value of the declared kind; the default half of the time."""
        if not _missing(default) and self.draw.random() < 0.5:
            return default
        if kind.optional and self.draw.random() < 0.3:
            return None
        return self.listed(kind, kind.depth, first)

    def listed(self, kind: Any, depth: int, first: Any) -> Any:
        rank = first.rank if first is not None else 2
        if depth:
            if depth == 1 and kind.base in ("int", "size") and first is not None and rank and self.draw.random() < 0.7:
                return self.draw.choice([self.permutation, self.axes, self.sizes])(first)
            return tuple(self.listed(kind, depth - 1, first) for _ in range(self.draw.choice([rank, rank, 1, 2, 0])))
        match kind.base:
            case "bool":
                return self.draw.random() < 0.5
            case "float":
                return self.draw.choice([0.0, 0.5, 1.0, 1e-5, 2.0, -1.0])
            case "str":
                return self.draw.choice(kind.choices) if kind.choices else "x"
            case "dtype":
                return self.draw.choice(DTYPES)
            case _:
                return self.draw.choice([0, 0, 1, 1, 2, 3, -1, max(rank - 1, 0)])

    def permutation(self, first: Any) -> tuple[int, ...]:
        order = list(range(first.rank))
        self.draw.shuffle(order)
        return tuple(order)

    def axes(self, first: Any) -> tuple[int, ...]:
        return tuple(i for i in range(first.rank) if self.draw.random() < 0.5)

    def sizes(self, first: Any) -> tuple[Any, ...]:
        dims = list(first.dims)
        return tuple(self.draw.choice([dims, dims[::-1], [math.prod(dims)], [1, *dims], [0] * len(dims)]))


def _missing(default: Any) -> bool:
    import dataclasses

    return default is dataclasses.MISSING


def _small(type_: TensorType) -> bool:
    size = type_.size
    return isinstance(size, int) and size <= LARGEST and type_.rank <= 6 and not type_.dtype.is_string


def contents(draw: Random, model: Model) -> list[np.ndarray]:
    """Inputs with the values that go wrong: NaN, infinities, signed zeros, ties, the least and greatest integers."""
    from irc.testing.cases import values

    return [values(v.dtype, tuple(v.dims), draw.random(), special=draw.random() < 0.6) for v in model.main.inputs]
