"""One ONNX node becomes one IR node: which operator, which attributes, which type, for each range of operator sets."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from irc.frontends.onnx import import_onnx
from irc.ir.dims import parse
from irc.ir.errors import FormatError, UnsupportedError

F, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = (F, ["N", 3, 8, 8])
V = np.int64


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


# (ONNX operator, operator set, operands, attributes, operator, some attributes of it, type of the first result)
CASES = [
    ("Mul", 14, [X, X], {}, "multiply", {}, "f32[N,3,8,8]"),
    ("Div", 7, [X, X], {}, "divide", {}, "f32[N,3,8,8]"),
    ("Relu", 14, [X], {}, "Relu", {}, "f32[N,3,8,8]"),
    ("Sigmoid", 13, [X], {}, "logistic", {}, "f32[N,3,8,8]"),
    ("Max", 13, [X, X], {}, "maximum", {}, "f32[N,3,8,8]"),
    ("Max", 13, [X, X, X], {}, "Max", {}, "f32[N,3,8,8]"),
    ("Pow", 13, [X, np.array(2.0, np.float32)], {}, "power", {}, "f32[N,3,8,8]"),
    ("Pow", 13, [X, np.array(2)], {}, "Pow", {}, "f32[N,3,8,8]"),
    ("Less", 13, [X, X], {}, "compare", {"direction": "lt"}, "bool[N,3,8,8]"),
    ("Cast", 13, [X], {"to": I64}, "convert", {"saturate": False}, "i64[N,3,8,8]"),
    ("Cast", 1, [X], {"to": "INT64"}, "convert", {}, "i64[N,3,8,8]"),
    ("Clip", 6, [X], {"min": 0.0, "max": 6.0}, "Clip", {}, "f32[N,3,8,8]"),
    ("Reshape", 13, [X, ints(0, -1)], {}, "reshape", {}, "f32[N,192]"),
    ("Reshape", 1, [X], {"shape": [0, -1]}, "reshape", {}, "f32[N,192]"),
    ("Reshape", 13, [X, ints(-1, 64)], {}, "reshape", {}, "f32[3*N,64]"),
    ("Flatten", 13, [X], {}, "reshape", {}, "f32[N,192]"),
    ("Flatten", 13, [X], {"axis": 0}, "reshape", {}, "f32[1,192*N]"),
    ("Squeeze", 13, [(F, ["N", 1, 4, 1]), ints(1)], {}, "reshape", {}, "f32[N,4,1]"),
    ("Squeeze", 11, [(F, ["N", 1, 4, 1])], {"axes": [-1]}, "reshape", {}, "f32[N,1,4]"),
    ("Unsqueeze", 13, [X, ints(0, -1)], {}, "reshape", {}, "f32[1,N,3,8,8,1]"),
    ("Unsqueeze", 11, [X], {"axes": [1]}, "reshape", {}, "f32[N,1,3,8,8]"),
    ("Transpose", 13, [X], {}, "transpose", {"permutation": (3, 2, 1, 0)}, "f32[8,8,3,N]"),
    ("Concat", 13, [X, X], {"axis": -1}, "concatenate", {"axis": 3}, "f32[N,3,8,16]"),
    ("Split", 13, [X, ints(1, 2)], {"axis": 1, "outputs": 2}, "Split", {"sizes": (1, 2)}, "f32[N,1,8,8]"),
    ("Split", 2, [X], {"axis": 1, "split": [2, 1], "outputs": 2}, "Split", {"sizes": (2, 1)}, "f32[N,2,8,8]"),
    ("Split", 18, [X], {"axis": 1, "num_outputs": 2, "outputs": 2}, "Split", {"sizes": (2, 1)}, "f32[N,2,8,8]"),
    ("Expand", 13, [(F, ["N", 1]), ints(2, 1, 5)], {}, "broadcast_in_dim", {}, "f32[2,N,5]"),
    ("ConstantOfShape", 9, [ints(2, 3)], {}, "broadcast_in_dim", {}, "f32[2,3]"),
    ("Tile", 13, [X, ints(1, 2, 1, 1)], {}, "Tile", {}, "f32[N,6,8,8]"),
    ("Slice", 13, [X, ints(1), ints(2**63 - 1), ints(2)], {}, "slice", {"starts": (0, 0, 1, 0)}, "f32[N,3,7,8]"),
    ("Slice", 13, [X, ints(-3), ints(-1), ints(-1), ints(2)], {}, "slice", {"starts": (0, 0, 0, 5)}, "f32[N,3,8,1]"),
    ("Slice", 9, [X], {"starts": [1], "ends": [1000], "axes": [1]}, "slice", {"limits": ("N", 3, 8, 8)},
     "f32[N,2,8,8]"),
    ("Slice", 13, [X, ints(0), ints(2**31 - 1), ints(0)], {}, "slice", {"limits": ("N", 3, 8, 8)}, "f32[N,3,8,8]"),
    ("Slice", 13, [X, ints(0), ints(-1), ints(0)], {}, "slice", {"starts": (0, 0, 0, 0)}, "f32[max(N - 1, 0),3,8,8]"),
    ("Slice", 13, [X, ints(-1), ints(-(2**63)), ints(2), ints(-1)], {}, "StridedSlice", {}, "f32[N,3,8,8]"),
    ("Slice", 13, [(F, ["N"]), ints(-1), ints(-(2**63)), ints(0), ints(-1)], {}, "StridedSlice", {}, "f32[N]"),
    ("Slice", 13, [(F, ["N"]), ints(2**63 - 1), ints(-(2**63) + 1), ints(0), ints(-2)], {}, "StridedSlice", {},
     "f32[(N + 1)//2]"),
    ("Slice", 13, [(F, ["N"]), ints(-(2**63)), ints(2), ints(0)], {}, "slice", {"starts": (0,)}, "f32[min(N, 2)]"),
    ("Pad", 13, [X, ints(0, 0, 1, 2, 0, 0, 3, 4)], {}, "pad", {"low": (0, 0, 1, 2)}, "f32[N,3,12,14]"),
    ("Pad", 18, [X, ints(1, 2), None, ints(3)], {"mode": "reflect"}, "PadMode", {"high": (0, 0, 0, 2)},
     "f32[N,3,8,11]"),
    ("Pad", 2, [X], {"pads": [0, 0, 1, 1] * 2, "mode": "edge"}, "PadMode", {"mode": "edge"}, "f32[N,3,10,10]"),
    ("Gather", 13, [X, ints(0, 2)], {"axis": -1}, "take", {"axis": 3}, "f32[N,3,8,2]"),
    ("GatherElements", 13, [(F, [3, 4]), (I64, [2, 4])], {}, "take_along_axis", {"axis": 0}, "f32[2,4]"),
    ("ScatterElements", 18, [(F, [3, 4]), (I64, [2, 4]), (F, [2, 4])], {"reduction": "add"}, "put_along_axis",
     {"kind": "sum"}, "f32[3,4]"),
    ("Scatter", 9, [(F, [3, 4]), (I64, [2, 4]), (F, [2, 4])], {"axis": 0}, "put_along_axis", {"kind": "replace"},
     "f32[3,4]"),
    ("OneHot", 11, [(I64, ["N"]), np.array(5), np.array([0, 1], np.float32)], {}, "OneHot", {"axis": 1}, "f32[N,5]"),
    ("ReduceSum", 13, [X, ints(-1)], {"keepdims": 0}, "ReduceSum", {"axes": (3,)}, "f32[N,3,8]"),
    ("ReduceSum", 13, [X], {}, "ReduceSum", {"axes": (0, 1, 2, 3)}, "f32[1,1,1,1]"),
    ("ReduceSum", 13, [X], {"noop_with_empty_axes": 1}, "ReduceSum", {"axes": ()}, "f32[N,3,8,8]"),
    ("ReduceMean", 11, [X], {"axes": [2, 3]}, "ReduceMean", {"axes": (2, 3)}, "f32[N,3,1,1]"),
    ("ReduceMean", 18, [X, ints(2, 3)], {}, "ReduceMean", {"axes": (2, 3)}, "f32[N,3,1,1]"),
    ("ArgMax", 13, [X], {"axis": 1}, "ArgMax", {"keepdims": True}, "i64[N,1,8,8]"),
    ("CumSum", 14, [X, np.array(-1)], {"reverse": 1}, "CumSum", {"axis": 3, "reverse": True}, "f32[N,3,8,8]"),
    ("MatMul", 13, [(F, ["N", 4]), (F, [4, 5])], {}, "MatMul", {}, "f32[N,5]"),
    ("Gemm", 13, [(F, ["N", 4]), (F, [5, 4])], {"transB": 1}, "Gemm", {"transpose_b": True}, "f32[N,5]"),
    ("Conv", 11, [X, (F, [4, 3, 3, 3])], {"pads": [0, 1, 2, 3]}, "Conv", {"pads": ((0, 2), (1, 3))}, "f32[N,4,8,10]"),
    ("Conv", 11, [X, (F, [4, 3, 3, 3])], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, "Conv",
     {"pads": ((0, 1), (0, 1))}, "f32[N,4,4,4]"),
    ("Conv", 11, [X, (F, [4, 3, 3, 3])], {"auto_pad": "SAME_LOWER", "strides": [2, 2]}, "Conv",
     {"pads": ((1, 0), (1, 0))}, "f32[N,4,4,4]"),
    ("ConvTranspose", 11, [X, (F, [3, 4, 2, 2])], {"strides": [2, 2]}, "ConvTranspose", {}, "f32[N,4,16,16]"),
    ("ConvTranspose", 11, [X, (F, [3, 4, 3, 3])], {"strides": [2, 2], "output_shape": [16, 16]}, "ConvTranspose",
     {}, "f32[N,4,16,16]"),
    ("MaxPool", 12, [X], {"kernel_shape": [2, 2], "strides": [2, 2]}, "MaxPool", {"with_indices": False},
     "f32[N,3,4,4]"),
    ("AveragePool", 11, [X], {"kernel_shape": [3, 3], "ceil_mode": 1}, "AveragePool", {"ceil_mode": True},
     "f32[N,3,6,6]"),
    ("GlobalAveragePool", 1, [X], {}, "GlobalAveragePool", {}, "f32[N,3,1,1]"),
    ("Softmax", 13, [X], {}, "Softmax", {"axis": 3}, "f32[N,3,8,8]"),
    ("Softmax", 11, [(F, ["N", 5])], {}, "Softmax", {"axis": 1}, "f32[N,5]"),
    ("Softmax", 11, [(F, ["N", 5, 1, 1])], {}, "Softmax", {"axis": 1}, "f32[N,5,1,1]"),
    ("LayerNormalization", 17, [X, (F, [8])], {}, "LayerNormalization", {"axis": 3}, "f32[N,3,8,8]"),
    ("TopK", 11, [X, ints(2)], {"outputs": 2}, "TopK", {"k": 2, "axis": 3}, "f32[N,3,8,2]"),
    ("TopK", 1, [X], {"k": 3, "outputs": 2}, "TopK", {"k": 3}, "f32[N,3,8,3]"),
    ("Upsample", 7, [X], {"scales": [1.0, 1.0, 2.0, 2.0]}, "Resize", {"coordinate_mode": "asymmetric"},
     "f32[N,3,16,16]"),
    ("Upsample", 9, [X, np.array([1, 1, 2, 2], np.float32)], {}, "Resize", {"nearest_mode": "floor"}, "f32[N,3,16,16]"),
    ("Resize", 10, [X, np.array([1, 1, 0.5, 2], np.float32)], {}, "Resize", {}, "f32[N,3,4,16]"),
    ("Resize", 13, [X, None, np.array([1, 1, 2, 2], np.float32)], {}, "Resize", {"mode": "nearest"}, "f32[N,3,16,16]"),
    ("Resize", 13, [X, None, None, ints(1, 3, 5, 7)], {}, "Resize", {"scales": ()}, "f32[1,3,5,7]"),
    ("Resize", 18, [X, None, None, ints(5, 7)], {"axes": [2, 3]}, "Resize", {}, "f32[N,3,5,7]"),
    ("QuantizeLinear", 13, [X, np.array(0.5, np.float32)], {}, "QuantizeLinear", {}, "u8[N,3,8,8]"),
    ("Shape", 13, [X], {}, "dimensions", {"dims": ("N", 3, 8, 8)}, "i64[4]"),
    ("Shape", 15, [X], {"start": -2}, "dimensions", {"dims": (8, 8)}, "i64[2]"),
    ("Size", 13, [X], {}, "dimensions", {"scalar": True}, "i64[]"),
    ("Range", 11, [np.array(1), np.array(10), np.array(4)], {}, "Range", {"count": 3}, "i64[3]"),
    ("EyeLike", 9, [(F, [2, 3])], {"k": 1, "dtype": I64}, "EyeLike", {"k": 1}, "i64[2,3]"),
    ("Trilu", 14, [(F, [3, 3]), np.array(1)], {"upper": 0}, "Trilu", {"k": 1, "upper": False}, "f32[3,3]"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[1]}-{c[4]}")
def test_one_node_becomes_one_node(case, one_node):
    op, opset, operands, attributes, wanted, some, type_ = case
    attributes = dict(attributes)
    model = import_onnx(one_node(op, operands, opset, outputs=attributes.pop("outputs", 1), **attributes))
    nodes = list(model.main.body.nodes)
    assert [n.op.name for n in nodes] == [wanted]
    assert str(model.main.outputs[0].type) == type_
    got = nodes[0].attributes.as_dict()
    for name, value in some.items():
        sized = tuple(parse(v) if isinstance(v, str) else v for v in value) if isinstance(value, tuple) else value
        assert got[name] == sized
    assert nodes[0].location.source == ("node",)
    assert model.main.output_names[0] == "y0"


def test_old_softmax_over_several_axes_flattens_them(one_node):
    model = import_onnx(one_node("Softmax", [X], 11, axis=1))
    assert [n.op.name for n in model.main.body.nodes] == ["reshape", "Softmax", "reshape"]
    assert str(model.main.outputs[0].type) == "f32[N,3,8,8]"


@pytest.mark.parametrize(
    "op, opset, operands, attributes",
    [
        ("Identity", 13, [X], {}),
        ("Dropout", 7, [X], {"ratio": 0.3}),
        ("Dropout", 13, [X, np.array(0.3, np.float32), np.array(False)], {}),
        ("Dropout", 6, [X], {"is_test": 1}),
    ],
)
def test_operators_that_do_nothing_leave_no_node(op, opset, operands, attributes, one_node):
    main = import_onnx(one_node(op, operands, opset, **attributes)).main
    assert len(main.body) == 0
    assert main.outputs[0] is main.inputs[0]


@pytest.mark.parametrize(
    "op, opset, operands, attributes, reason",
    [
        ("Dropout", 6, [X], {}, "training mode"),
        ("BatchNormalization", 8, [X, *[(F, [3, 8, 8])] * 4], {"spatial": 0}, "spatial=0"),
        ("Upsample", 10, [X, np.ones(4, np.float32)], {}, "version 10"),
    ],
)
def test_refusals_say_why(op, opset, operands, attributes, reason, one_node):
    with pytest.raises(UnsupportedError, match=reason):
        import_onnx(one_node(op, operands, opset, **attributes))


@pytest.mark.parametrize(
    "op, opset, operands, attributes, fault",
    [
        ("Add", 13, [X, (I64, [1])], {}, r"node 'node' \(Add\): the inputs of type T must have one element type"),
        ("And", 7, [X, X], {}, "ONNX allows bool"),
        ("MatMul", 13, [(F, [2, 3]), (F, [4, 5])], {}, "MatMul"),
        ("Reshape", 13, [(F, [2, 3]), ints(4, -1, -1)], {}, "at most one -1"),
        ("Reshape", 13, [(F, [2, 3]), ints(4, 2)], {}, "reshape|elements|6"),
        ("Concat", 13, [(F, [2, 3])], {"axis": 2}, "axis 2 is out of range for rank 2"),
        ("Concat", 13, [(F, [2, 3])], {}, "attribute 'axis' is missing"),
        ("Squeeze", 13, [(F, [2, 3]), ints(0)], {}, "only axes of size 1"),
        ("Relu", 14, [X, X], {}, "takes 1 inputs, got 2"),
        ("Add", 14, [X], {}, "takes 2 inputs, got 1"),
        ("Gather", 13, [X, None], {}, "input indices is missing"),
        ("Slice", 13, [X, ints(0), ints(1), ints(0), ints(0)], {}, "step must not be 0"),
        ("Conv", 11, [X, (F, [4, 3, 3, 3])], {"auto_pad": "SOMETIMES"}, "auto_pad must be"),
        ("LSTM", 14, [(F, [2, 1, 3]), (F, [1, 8, 3]), (F, [1, 8, 2])], {"activations": ["Sinus"] * 3}, "'Sinus'"),
    ],
)
def test_invalid_nodes_are_named(op, opset, operands, attributes, fault, one_node):
    with pytest.raises(FormatError, match=fault) as caught:
        import_onnx(one_node(op, operands, opset, **attributes))
    assert "node 'node'" in str(caught.value)


def test_an_attribute_that_no_version_has_is_refused(one_node):
    with pytest.raises(UnsupportedError, match="attribute 'colour' is not supported"):
        import_onnx(one_node("Relu", [X], 14, colour=3))


def test_values_take_the_names_of_the_model():
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["hidden"]), helper.make_node("Neg", ["hidden"], ["out"], name="last")],
        "g", [helper.make_tensor_value_info("x", F, [2])], [helper.make_tensor_value_info("out", F, [2])],
    )  # fmt: skip
    main = import_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])).main
    first, second = main.body.nodes
    assert (first.result.name, second.result.name) == ("hidden", "out")
    assert (first.location.source, second.location.source) == (("hidden",), ("last",))
    assert main.input_names == ["x"]


def test_initializers_that_are_inputs_are_constants(one_node):
    weights = np.arange(200, dtype=np.float32).reshape(100, 2)
    model = one_node("MatMul", [(F, ["N", 100]), weights], 13)
    model.graph.input.append(helper.make_tensor_value_info("x1", F, [100, 2]))
    imported = import_onnx(model)
    assert imported.main.input_names == ["x0"]
    assert np.array_equal(imported.constants["x1"].data.numpy(), weights)
