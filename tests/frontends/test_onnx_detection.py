"""MaxRoiPool, which the backend suite has no case of, against ONNX Runtime and at its edges."""

import numpy as np
import pytest
from onnx import TensorProto

RNG = np.random.default_rng(2)
F, F64 = TensorProto.FLOAT, TensorProto.DOUBLE

REGIONS = np.array(
    [[0, 0, 0, 7, 5], [1, 2.5, 1.5, 6, 5], [1, 3, 3, 3, 3], [0, 6, 1, 2, 4], [0, -3, -2, 20, 30], [1, 30, 30, 40, 40]],
    np.float32,
)
"""Whole, half coordinates, a point, turned round, beyond the edges, outside."""


@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (7, 5)], ids=str)
@pytest.mark.parametrize("opset", [1, 21])
def test_max_roi_pool(opset, shape, scale, one_node, agrees):
    model = one_node("MaxRoiPool", [(F, [2, 3, "H", "W"]), (F, ["R", 5])], opset, pooled_shape=list(shape),
                     spatial_scale=scale)  # fmt: skip
    agrees(model, [RNG.standard_normal((2, 3, 6, 8)).astype(np.float32), REGIONS], rtol=0)
