"""Published models: imported, verified, their shape arithmetic gone, and the reference equal to ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

from irc.frontends.onnx import import_onnx
from irc.ir import verify
from irc.ir.reference import evaluate

# name, input shape, result type
MODELS = [
    ("cls", (2, 3, 48, 192), "f32[x_d0,2]"),
    ("det", (1, 3, 64, 96), None),
    ("rec", (1, 3, 48, 80), "f32[p2o_DynamicDimension_0,(p2o_DynamicDimension_1 + 3)//8,6625]"),
    ("magika", (2, 2048), "f32[unk__214,214]"),
    ("nudenet", (1, 3, 64, 96), "f32[batch,22,(height + 31)//32*((width + 31)//32)*21]"),
    ("common", (1, 1, 64, 100), "f32[(image_width + 7)//8,1,8210]"),
    ("basic_pitch", (1, 43844, 1), "f32[unk__749,172,88]"),
]


@pytest.mark.parametrize("name, shape, type_", MODELS, ids=lambda v: v if isinstance(v, str) else "")
def test_published_model(name, shape, type_, model_path):
    path = model_path(name)
    import onnxruntime as ort

    model = import_onnx(path)
    assert verify.verify(model) == []
    assert not model.main.is_late
    assert not {"dimensions", "take"} & {n.op.name for n in model.main.body.nodes}  # shape arithmetic is gone
    if type_ is not None:
        assert str(model.main.outputs[0].type) == type_
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    rng = np.random.default_rng(0)
    whole = given.type == "tensor(int32)"
    x = rng.integers(0, 255, shape).astype(np.int32) if whole else rng.random(shape).astype(np.float32)
    for got, want in zip(evaluate(model, [x]), session.run(None, {given.name: x}), strict=True):
        assert got.shape == want.shape
        # f32 sums in another order through up to 300 layers; the largest value sets the scale of the error.
        assert np.abs(got.astype(np.float64) - want).max() <= 1e-3 * max(np.abs(want).max(), 1e-3)
