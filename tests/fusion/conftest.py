"""Models that fusions are tried on: layers written with the builder, and files that torch exported."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irc import read
from irc.ir import dims as sizes
from irc.ir.model import Model

FOLDER = Path(__file__).parent
SIZES = {"B": 3, "S": 5, "T": 6, "P": 2, "batch": 2, "length": 6, "past": 3, "total": 9}


def _layers() -> dict[str, Callable[[], Model]]:
    spec = importlib.util.spec_from_file_location("fusion_layers", FOLDER / "fixtures" / "layers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, Callable[[], Model]] = module.FIXTURES
    return found


LAYERS = _layers()
EXPORTED = {path.stem: path for path in sorted((FOLDER / "exported").glob("*.onnx"))}
NAMES = [*LAYERS, *EXPORTED]


def load(name: str) -> Model:
    return LAYERS[name]() if name in LAYERS else read(EXPORTED[name])


def inputs_of(model: Model) -> list[Any]:
    """Tokens, positions and padding that make sense, normal numbers elsewhere."""
    rng = np.random.default_rng(0)
    out = []
    for value in model.main.inputs:
        shape = [sizes.evaluate(d, SIZES) for d in value.dims]
        if value.dtype.is_bool:
            array = rng.random(shape) < 0.7
            array[..., 0] = True
        elif "mask" in (value.name or "") and value.dtype.is_integer:
            array = np.ones(shape, np.int64)
            array[-1, -2:] = 0
        elif value.dtype.is_integer:
            array = rng.integers(3, 60, shape)
        else:
            array = rng.standard_normal(shape)
        out.append(np.asarray(array).astype(value.dtype.numpy))
    return out


def pytest_generate_tests(metafunc: Any) -> None:
    if "fixture_name" in metafunc.fixturenames:
        metafunc.parametrize("fixture_name", NAMES)


@pytest.fixture(name="load")
def _load() -> Callable[[str], Model]:
    return load


@pytest.fixture(name="inputs_of")
def _inputs_of() -> Callable[[Model], list[Any]]:
    return inputs_of


@pytest.fixture
def fixture_names() -> list[str]:
    return NAMES
