"""Published models: irc on xla and mlx against ONNX Runtime, on seeded and realistic inputs, at several shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import irc
from irc.ir import dtypes
from irc.ir.clone import clone_model
from irc.ir.data import ArrayData
from irc.ir.infer import InferContext, infer
from irc.ir.model import Model
from irc.ir.reference import evaluate

RTOL, ATOL = 1e-4, 1e-6


def text_image(height: int, width: int, batch: int) -> np.ndarray:
    """Dark text on light ground, as f32 [batch, 3, height, width] in [-1, 1]."""
    from PIL import Image, ImageDraw, ImageFont

    images = []
    for i in range(batch):
        image = Image.new("RGB", (width, height), (235, 230 - 10 * i, 225))
        draw = ImageDraw.Draw(image)
        font = ImageFont.load_default(size=max(10, min(height // 2, 36)))
        for row in range(max(1, height // 48)):
            draw.text((8 + 4 * i, row * 48 + 4), f"irc {row} compiles 0123456789 models", (20, 20, 60), font=font)
        images.append(np.asarray(image, np.float32).transpose(2, 0, 1) / 127.5 - 1)
    return np.stack(images)


def chirp(batch: int, samples: int) -> np.ndarray:
    """A rising tone, f32 [batch, samples, 1]."""
    t = np.arange(samples) / 22050
    return np.stack([0.5 * np.sin(2 * np.pi * (110 + 220 * (t + i / 4)) * t) for i in range(batch)]).astype(np.float32)[
        ..., None
    ]


def file_bytes(batch: int, length: int) -> np.ndarray:
    """The first and last kilobyte of Python sources, as magika reads files, i32 [batch, length]."""
    files = sorted(Path(np.__file__).parent.glob("*.py"))[:batch]
    half = length // 2
    rows = []
    for file in files:
        raw = np.frombuffer(file.read_bytes().strip(), np.uint8).astype(np.int32)
        row = np.full(length, 256, np.int32)
        row[: min(half, len(raw))] = raw[:half]
        tail = raw[-half:]
        row[length - len(tail) :] = tail
        rows.append(row)
    return np.stack(rows)


@dataclass(frozen=True)
class Case:
    """A model, its input, the shapes to run it at, and the outputs whose arg max along an axis is the answer."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    realistic: Callable[[tuple[int, ...]], np.ndarray]
    classes: int | None = None
    dtype: type = np.float32
    rtol: float = RTOL


def in_double(model: Model) -> Model:
    """The model with float64 in the place of float32, constants converted exactly and every node typed anew."""
    wide = clone_model(model)
    for constant in [*wide.constants.values(), *wide._inline.values()]:
        if constant.dtype is dtypes.f32 and constant.data is not None:
            constant._data = ArrayData(constant.data.numpy().astype(np.float64))
            constant.type, constant._fact = constant._data.type, None
    for value in wide.main.inputs:
        if value.dtype is dtypes.f32:
            value.type = value.tensor.with_dtype(dtypes.f64)
    for node in wide.main.body.nodes:
        given = node.attributes.as_dict()
        given = {k: dtypes.f64 if v is dtypes.f32 else v for k, v in given.items()}
        node.attributes = node.op.make_attributes(given)
        facts = infer(InferContext(wide), node.op, [v and v.fact for v in node.operands], node.attributes, node.graphs)
        for value, fact in zip(node.results, facts if isinstance(facts, tuple) else (facts,), strict=True):
            value.set_fact(fact)
    return wide


def image(shape: tuple[int, ...]) -> np.ndarray:
    return text_image(shape[2], shape[3], shape[0])


def grey(shape: tuple[int, ...]) -> np.ndarray:
    return image((shape[0], 3, *shape[2:])).mean(1, keepdims=True)


# common_old quantizes what enters each of its 22 layers, and the state of its LSTM before each step, to 255 steps of
# the range.  Where sums of two engines, a rounding of f32 apart, lie on either side of a tie, one of these steps (0.4 %
# of the range) lies between them from there on.  The products themselves are exact: without ties results are equal.
STEPS = 2e-2

CASES = [
    Case("det", ((1, 3, 320, 480), (2, 3, 192, 256)), image),
    Case("rec", ((1, 3, 48, 320), (2, 3, 48, 160)), image, classes=-1),
    Case("cls", ((1, 3, 48, 192), (2, 3, 48, 160)), image, classes=-1),
    Case("common_det", ((1, 3, 416, 416),), lambda s: image(s) * 127.5 + 127.5),
    Case("common", ((1, 1, 64, 128), (1, 1, 64, 200)), grey, classes=-1),
    Case("common_old", ((1, 1, 64, 128), (1, 1, 64, 200)), grey, classes=-1, rtol=STEPS),
    Case("nudenet", ((1, 3, 320, 320), (2, 3, 160, 224)), lambda s: (image(s) + 1) / 2),
    Case("basic_pitch", ((1, 43844, 1), (2, 43844, 1)), lambda s: chirp(s[0], s[1])),
    Case("magika", ((1, 2048), (2, 2048)), lambda s: file_bytes(s[0], s[1]), classes=-1, dtype=np.int32),
]


def inputs(case: Case, shape: tuple[int, ...]) -> Iterator[tuple[str, np.ndarray]]:
    """Uniform, normal, and realistic ones."""
    generator = np.random.default_rng(20260)
    if case.dtype is np.int32:
        yield "uniform", generator.integers(0, 257, shape).astype(np.int32)
        yield "normal", np.clip(generator.normal(100, 30, shape), 0, 256).astype(np.int32)
    else:
        yield "uniform", generator.random(shape, np.float32)
        yield "normal", generator.standard_normal(shape, np.float32)
    yield "realistic", case.realistic(shape).astype(case.dtype)


@pytest.mark.parametrize("target", ["xla", "mlx{compile=off}"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_published_model_agrees_with_onnx_runtime(case: Case, target: str, model_path):
    path = model_path(case.name)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    executable = irc.compile(path, target=target)
    double: Model | None = None
    for shape in case.shapes:
        for kind, x in inputs(case, shape):
            want = dict(zip([o.name for o in session.get_outputs()], session.run(None, {name: x}), strict=True))
            got = executable(x).by_name
            exact: dict[str, np.ndarray] = {}
            assert list(got) == list(want)
            for output, expected in want.items():
                actual = got[output]
                what = f"{case.name} {output} on {kind} {shape}"
                assert actual.shape == expected.shape, what
                assert actual.dtype == expected.dtype, what
                bound = case.rtol * np.abs(expected).max() + ATOL
                error = np.abs(actual.astype(np.float64) - expected).max()
                if error > bound:
                    # Only where float64 shows ONNX Runtime itself to be off may irc be off as well; twice as far at
                    # most, since both round every one of the same sums, in other orders.
                    if not exact:
                        double = double or in_double(irc.import_onnx(path))
                        exact = dict(zip(want, evaluate(double, [x.astype(np.float64)]), strict=True))
                    own, judge = (np.abs(a - exact[output]).max() for a in (actual, expected))
                    assert own <= max(bound, 2 * judge), f"{what}: {error:.3g}; from float64 {own:.3g}, ORT {judge:.3g}"
                assert expected.std() > 0, f"{what}: a constant output proves nothing"
                assert actual.std() > 0, what
                if case.classes is not None:
                    np.testing.assert_array_equal(actual.argmax(case.classes), expected.argmax(case.classes), what)
    if target == "xla":
        assert executable.compile_count == len(case.shapes), "one compilation a shape"
    else:
        assert executable.compile_count == 1, "one module for all shapes"
