"""Symbolic dims of ONNX inputs, and sizes that flow through shape arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from irc.frontends.onnx import import_onnx
from irc.ir.reference import evaluate

F, I64 = TensorProto.FLOAT, TensorProto.INT64


def model(nodes, inputs, outputs=("y",), initializers=(), opset=13, value_info=()):
    infos = [helper.make_tensor_value_info(n, F, d) for n, d in inputs]
    outs = [helper.make_tensor_value_info(n, F, None) for n in outputs]
    weights = [numpy_helper.from_array(a, n) for n, a in initializers]
    graph = helper.make_graph(nodes, "g", infos, outs, weights, value_info=list(value_info))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def input_types(*dims):
    nodes = [helper.make_node("Identity", ["a"], ["y"])]
    main = import_onnx(model(nodes, [("abc"[i], d) for i, d in enumerate(dims)])).main
    return [str(v.type) for v in main.inputs], main


def test_equal_names_are_one_symbol_and_odd_ones_are_respelled():
    types, main = input_types(["batch", "p.seq-len"], ["batch", "p.seq-len"])
    assert types == ["f32[batch,p_seq_len]"] * 2
    assert main.dims == ["batch", "p_seq_len"]
    assert main.metadata == {"onnx.dim.p_seq_len": "p.seq-len"}


def test_names_that_respell_equally_stay_apart():
    types, main = input_types(["a.b", "a_b", "a-b"])
    assert types == ["f32[a_b,a_b_1,a_b_2]"]
    assert main.metadata == {"onnx.dim.a_b": "a.b", "onnx.dim.a_b_1": "a_b", "onnx.dim.a_b_2": "a-b"}


@pytest.mark.parametrize("dim", ["?", "", "-1", "0", "floor(height/2)", "2*n", "n + 1", "n-1", None])
def test_what_is_no_name_is_fresh(dim):
    types, main = input_types([dim, 3], ["n", dim])
    assert types == ["f32[a_d0,3]", "f32[n,b_d1]"]
    assert main.metadata == {}


@pytest.mark.parametrize("value", [0, -1])
def test_sizes_that_are_no_sizes_are_fresh(value):
    assert input_types([value, 4])[0] == ["f32[a_d0,4]"]


def test_fresh_symbols_avoid_the_names_of_the_model():
    assert input_types(["?"], ["a_d0"])[0] == ["f32[a_d0_1]", "f32[a_d0]"]


@pytest.mark.parametrize("name", ["max", "min", "mod", "bcast", "floordiv"])
def test_words_of_the_size_language_are_no_symbols(name):
    types, main = input_types([name])
    assert types == [f"f32[{name}_1]"]
    assert main.metadata == {f"onnx.dim.{name}_1": name}


def test_declared_shapes_of_results_are_not_believed():
    wrong = helper.make_tensor_value_info("h", F, [77])
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Neg", ["h"], ["y"])]
    proto = model(nodes, [("x", ["n", 2])], value_info=[wrong])
    proto.graph.output[0].type.tensor_type.shape.dim.add().dim_value = 5
    assert str(import_onnx(proto).main.outputs[0].type) == "f32[n,2]"


def test_shape_arithmetic_vanishes():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Gather", ["s", "two"], ["w"]),
        helper.make_node("Mul", ["w", "two"], ["w2"]),
        helper.make_node("Unsqueeze", ["n", "axis"], ["n1"]),
        helper.make_node("Unsqueeze", ["w2", "axis"], ["w1"]),
        helper.make_node("Concat", ["n1", "minus", "w1"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    constants = [
        ("zero", np.array(0)), ("two", np.array(2)), ("axis", np.array([0])), ("minus", np.array([-1])),
    ]  # fmt: skip
    main = import_onnx(model(nodes, [("x", ["n", 4, "w"])], initializers=constants)).main
    assert [n.op.name for n in main.body.nodes] == ["reshape"]
    assert str(main.outputs[0].type) == "f32[n,2,2*w]"
    assert not main.assumptions


def test_a_shape_that_is_also_a_result_stays():
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Reshape", ["x", "s"], ["y"])]
    proto = model(nodes, [("x", ["n", 2])], outputs=("y",))
    proto.graph.output.append(helper.make_tensor_value_info("s", I64, None))
    imported = import_onnx(proto)
    assert [n.op.name for n in imported.main.body.nodes] == ["dimensions", "reshape"]
    _, shape = evaluate(imported, [np.zeros((5, 2), np.float32)])
    assert shape.tolist() == [5, 2]


def test_a_float_scale_computed_from_constants_is_known():
    nodes = [
        helper.make_node("Concat", ["ones", "two"], ["scales"], axis=0),
        helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest"),
    ]
    constants = [("ones", np.ones(2, np.float32)), ("two", np.array([2, 0.5], np.float32))]
    main = import_onnx(model(nodes, [("x", [1, 1, "h", "w"])], initializers=constants)).main
    assert [n.op.name for n in main.body.nodes] == ["Resize"]
    assert str(main.outputs[0].type) == "f32[1,1,2*h,w//2]"


def test_a_range_over_a_size_that_was_cast_to_float():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Cast", ["n"], ["limit"], to=F),
        helper.make_node("Range", ["start", "limit", "step"], ["y"]),
    ]
    constants = [("zero", np.array(0)), ("start", np.array(0, np.float32)), ("step", np.array(2, np.float32))]
    imported = import_onnx(model(nodes, [("x", ["n"])], initializers=constants))
    assert str(imported.main.outputs[0].type) == "f32[(n + 1)//2]"
    assert evaluate(imported, [np.zeros(5, np.float32)])[0].tolist() == [0, 2, 4]


def test_an_end_that_only_means_the_end_is_assumed_to_be_enough():
    nodes = [helper.make_node("Slice", ["x", "zero", "far"], ["y"])]
    constants = [("zero", np.array([0])), ("far", np.array([1_000_000_000]))]
    main = import_onnx(model(nodes, [("x", ["n"])], initializers=constants)).main
    assert str(main.outputs[0].type) == "f32[n]"
    assert [str(a) for a in main.assumptions] == ["n <= 1000000000"]


def test_auto_pad_keeps_symbolic_sizes():
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], auto_pad="SAME_UPPER", strides=[2, 1])]
    proto = model(nodes, [("x", [1, 1, "h", "v"])], initializers=[("w", np.ones((1, 1, 3, 3), np.float32))])
    imported = import_onnx(proto)
    for h in (4, 5, 7):
        (y,) = evaluate(imported, [np.ones((1, 1, h, 3), np.float32)])
        assert y.shape == (1, 1, -(-h // 2), 3)


def test_inputs_of_unknown_rank_make_the_function_late():
    proto = model([helper.make_node("Transpose", ["x"], ["y"])], [("x", None)])
    imported = import_onnx(proto)
    assert str(imported.main.inputs[0].type) == "f32[*]"
    assert [n.op.name for n in imported.main.body.nodes] == ["onnx"]
    assert imported.main.is_late
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    assert np.array_equal(evaluate(imported, [x])[0], x.T)


def test_a_shape_known_only_at_run_time_is_frozen():
    proto = model([helper.make_node("Reshape", ["x", "shape"], ["y"])], [("x", ["n"])])
    proto.graph.input.append(helper.make_tensor_value_info("shape", I64, [2]))
    imported = import_onnx(proto)
    assert [n.op.name for n in imported.main.body.nodes] == ["freeze", "onnx"]
    assert str(imported.main.outputs[0].type) == "f32[*]"
    x = np.arange(6, dtype=np.float32)
    assert evaluate(imported, [x, np.array([2, -1])])[0].shape == (2, 3)
    assert evaluate(imported, [x, np.array([0, 1])])[0].shape == (6, 1)
