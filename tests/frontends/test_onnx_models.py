"""Published models (from packages on PyPI, where installed): imported, verified, and equal to ONNX Runtime."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from irc.frontends.onnx import import_onnx
from irc.ir import verify
from irc.ir.reference import evaluate

# package, file inside it, input shape, result type
MODELS = [
    ("rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", (2, 3, 48, 192), "f32[x_d0,2]"),
    ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", (1, 3, 64, 96), None),
    (
        "rapidocr_onnxruntime",
        "models/ch_PP-OCRv4_rec_infer.onnx",
        (1, 3, 48, 80),
        "f32[p2o_DynamicDimension_0,(p2o_DynamicDimension_1 + 3)//8,6625]",
    ),
    ("magika", "models/standard_v3_3/model.onnx", (2, 2048), "f32[unk__214,214]"),
    (
        "nudenet",
        "320n.onnx",
        (1, 3, 64, 96),
        "f32[batch,22,(height + 31)//32*((width + 31)//32)*21]",
    ),
    ("ddddocr", "common.onnx", (1, 1, 64, 100), "f32[(image_width + 7)//8,1,8210]"),
    ("basic_pitch", "saved_models/icassp_2022/nmp.onnx", (1, 43844, 1), "f32[unk__749,172,88]"),
]


def locate(package: str, file: str) -> Path | None:
    """The file of an installed package, which is not imported."""
    spec = find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    return next((p for f in folders or () if (p := Path(f) / file).exists()), None)


@pytest.mark.parametrize("package, file, shape, type_", MODELS, ids=lambda v: v if isinstance(v, str) else "")
def test_published_model(package, file, shape, type_):
    path = locate(package, file)
    if path is None:
        pytest.skip(f"the package {package} with {file} is not installed")
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
