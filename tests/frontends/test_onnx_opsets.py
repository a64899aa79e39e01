"""Old and new spellings of an operator compute what ONNX Runtime computes: import, then the reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from irc.frontends.onnx import import_onnx
from irc.ir.reference import evaluate

F, I64 = TensorProto.FLOAT, TensorProto.INT64
X = (F, ["N", "C", "H", "W"])
SHAPE = (2, 3, 6, 5)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


W = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype(np.float32)
WT = np.random.default_rng(2).standard_normal((3, 2, 3, 3)).astype(np.float32)
C = floats(0.5, -1.0, 2.0)

# (operator, operator set, operands, attributes, outputs); the inputs have the shape SHAPE
CASES = [
    ("Softmax", 11, [X], {"axis": 1}, 1),
    ("Softmax", 13, [X], {"axis": 1}, 1),
    ("LogSoftmax", 11, [X], {"axis": 2}, 1),
    ("Hardmax", 11, [X], {"axis": 3}, 1),
    ("Clip", 7, [X], {"min": -0.5}, 1),
    ("Clip", 11, [X, None, np.array(0.25, np.float32)], {}, 1),
    ("Dropout", 7, [X], {}, 1),
    ("BatchNormalization", 7, [X, C, C, C, np.abs(C)], {}, 1),
    ("BatchNormalization", 9, [X, C, C, C, np.abs(C)], {"epsilon": 0.01}, 1),
    ("BatchNormalization", 15, [X, C, C, C, np.abs(C)], {}, 1),
    ("Slice", 9, [X], {"starts": [1, -3], "ends": [9, -1], "axes": [1, 2]}, 1),
    ("Slice", 13, [X, ints(-2, 4), ints(-100, 0), ints(2, 3), ints(-2, -1)], {}, 1),
    ("Slice", 13, [X, ints(5), ints(2), ints(2)], {}, 1),
    ("Pad", 10, [X], {"pads": [0, 0, 1, 2, 0, 0, -1, 1], "value": 3.0}, 1),
    ("Pad", 13, [X, ints(0, 0, 1, 2, 0, 0, 3, 1)], {"mode": "reflect"}, 1),
    ("Pad", 13, [X, ints(0, 0, 1, 2, 0, 0, 3, 1)], {"mode": "edge"}, 1),
    ("Pad", 19, [X, ints(1, 2, 3, 1), None, ints(-1, 2)], {"mode": "wrap"}, 1),
    ("Split", 11, [X], {"axis": 2, "split": [1, 5]}, 2),
    ("Split", 13, [X], {"axis": 2}, 3),
    ("Split", 18, [X], {"axis": 3, "num_outputs": 3}, 3),
    ("ReduceSum", 11, [X], {"axes": [1, -1], "keepdims": 0}, 1),
    ("ReduceSum", 13, [X, ints(1, -1)], {"keepdims": 0}, 1),
    ("ReduceL2", 18, [X, ints(2)], {}, 1),
    ("ReduceLogSumExp", 13, [X], {"axes": [0]}, 1),
    ("ReduceMax", 18, [X], {"noop_with_empty_axes": 1}, 1),
    ("MaxPool", 12, [X], {"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER", "strides": [2, 2]}, 1),
    ("MaxPool", 12, [X], {"kernel_shape": [3, 2], "auto_pad": "SAME_LOWER", "strides": [2, 3]}, 1),
    ("MaxPool", 12, [X], {"kernel_shape": [3, 3], "ceil_mode": 1, "strides": [2, 2], "dilations": [1, 1]}, 1),
    ("AveragePool", 11, [X], {"kernel_shape": [3, 3], "pads": [1, 0, 1, 1], "count_include_pad": 1}, 1),
    ("AveragePool", 11, [X], {"kernel_shape": [2, 2], "auto_pad": "VALID", "strides": [2, 2]}, 1),
    ("LpPool", 18, [X], {"kernel_shape": [2, 2], "p": 1}, 1),
    ("Conv", 11, [X, W], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, 1),
    ("Conv", 11, [X, W], {"auto_pad": "SAME_LOWER"}, 1),
    ("Conv", 11, [X, W, floats(1, 2, 3, 4)], {"pads": [2, 1, 0, 3], "dilations": [2, 1]}, 1),
    ("ConvTranspose", 11, [X, WT], {"strides": [2, 3], "output_padding": [1, 2], "pads": [1, 0, 0, 1]}, 1),
    ("ConvTranspose", 11, [X, WT], {"strides": [2, 2], "auto_pad": "SAME_UPPER"}, 1),
    ("ConvTranspose", 11, [X, WT], {"strides": [2, 2], "auto_pad": "SAME_LOWER"}, 1),
    ("ConvTranspose", 11, [X, WT], {"strides": [2, 2], "output_shape": [11, 11]}, 1),
    ("TopK", 9, [X], {"k": 2, "axis": 2}, 2),
    ("TopK", 11, [X, ints(3)], {"largest": 0}, 2),
    ("Upsample", 7, [X], {"scales": [1.0, 1.0, 2.0, 3.0]}, 1),
    ("Upsample", 9, [X, floats(1, 1, 1.5, 2)], {"mode": "linear"}, 1),
    ("Resize", 10, [X, floats(1, 1, 0.5, 1.5)], {}, 1),
    ("Resize", 11, [X, floats(), floats(1, 1, 2, 2)], {"mode": "linear"}, 1),
    ("Resize", 13, [X, None, floats(1, 1, 2, 2)], {"coordinate_transformation_mode": "asymmetric"}, 1),
    ("Resize", 13, [X, None, None, ints(2, 3, 4, 9)], {"mode": "linear"}, 1),
    ("Resize", 18, [X, None, None, ints(4, 9)], {"axes": [2, 3], "mode": "linear"}, 1),
    ("GroupNormalization", 21, [X, C, C], {"num_groups": 3}, 1),
    ("InstanceNormalization", 6, [X, C, C], {}, 1),
    ("LayerNormalization", 17, [X, np.arange(5, dtype=np.float32)], {"axis": -1}, 3),
    ("LRN", 13, [X], {"size": 3, "alpha": 0.1}, 1),
    ("Flatten", 13, [X], {"axis": -2}, 1),
    ("Squeeze", 11, [(F, [2, 1, 6, 5])], {}, 1),
    ("Tile", 13, [X, ints(1, 2, 1, 3)], {}, 1),
    ("Expand", 13, [X, ints(4, 1, 1, 1, 5)], {}, 1),
    ("DepthToSpace", 13, [(F, [2, 4, 6, 5])], {"blocksize": 2, "mode": "CRD"}, 1),
    ("CumSum", 14, [X, np.array(-2)], {"exclusive": 1, "reverse": 1}, 1),
    ("ArgMax", 13, [X], {"axis": -1, "select_last_index": 1}, 1),
    ("Gelu", 20, [X], {"approximate": "tanh"}, 1),
    ("HardSwish", 14, [X], {}, 1),
    ("Mod", 13, [X, np.array(0.7, np.float32)], {"fmod": 1}, 1),
    ("PRelu", 9, [X, C.reshape(3, 1, 1)], {}, 1),
    ("Einsum", 12, [X], {"equation": "nchw->nwc"}, 1),
    ("MeanVarianceNormalization", 13, [X], {}, 1),
    ("Trilu", 14, [X, np.array(-1)], {"upper": 1}, 1),
    ("QuantizeLinear", 13, [X, C[[2]].reshape(()), np.array(7, np.uint8)], {}, 1),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[1]}-{'_'.join(map(str, c[3].values()))}")
def test_against_onnx_runtime(case, one_node, run_ort):
    op, opset, operands, attributes, outputs = case
    integer = op in ("ArgMax",)
    out_type = I64 if integer else TensorProto.UINT8 if op == "QuantizeLinear" else F
    model = one_node(op, operands, opset, outputs=outputs, out_type=out_type, **attributes)
    if op == "TopK":
        model.graph.output[1].type.tensor_type.elem_type = I64
    shape = tuple(d if isinstance(d, int) else s for d, s in zip(operands[0][1], SHAPE, strict=True))
    x = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    want = run_ort(model, [x])
    got = evaluate(import_onnx(model), [x])
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        # Sums of at most 27 products and transcendental functions in f32 against one rounding.
        np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), rtol=2e-5, atol=2e-6)
