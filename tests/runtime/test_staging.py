"""Entries that run in stages: shapes that depend on values, host loops, sequences, random keys."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc

TARGETS = ["xla", "mlx{compile=off}"]


def model(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(
        nodes,
        "staged",
        [helper.make_tensor_value_info(*i) for i in inputs],
        [onnx.ValueInfoProto(name=n) for n in outputs],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("target", TARGETS)
def test_a_computed_shape_compiles_once_for_each_value(target):
    source = model(
        [
            helper.make_node("Exp", ["x"], ["e"]),
            helper.make_node("Reshape", ["e", "shape"], ["r"]),
            helper.make_node("ReduceSum", ["r"], ["y"], keepdims=0),
            helper.make_node("Neg", ["r"], ["z"]),
        ],
        [("x", TensorProto.FLOAT, ["N"]), ("shape", TensorProto.INT64, [2])],
        ["y", "z"],
    )
    run = irc.compile(source, target=target)
    x = np.arange(6, dtype=np.float32)
    for shape in ((2, 3), (3, -1), (2, 3)):
        y, z = run(x, np.array(shape))
        np.testing.assert_allclose(z, -np.exp(x).reshape(shape), rtol=1e-5)
        np.testing.assert_allclose(y, np.exp(x).sum(), rtol=1e-5)
    assert run.report.segments == 2
    assert run.report.host_steps == 1  # the shape is an input: nothing has to run before it is read


@pytest.mark.parametrize("target", TARGETS)
def test_what_comes_before_a_count_compiles_once(target):
    nodes = [helper.make_node("Tanh", ["x" if i == 0 else f"t{i - 1}"], [f"t{i}"]) for i in range(5)]
    nodes += [
        helper.make_node("Relu", ["t4"], ["r"]),
        helper.make_node("NonZero", ["r"], ["places"]),
        helper.make_node("Cast", ["places"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["f"], ["total"], keepdims=0),
    ]
    source = model(nodes, [("x", TensorProto.FLOAT, [8])], ["places", "total"])
    run = irc.compile(source, target=target)
    for count in (3, 5, 3, 8, 0):
        x = np.where(np.arange(8) < count, 1.0, -1.0).astype(np.float32)
        places, total = run(x)
        assert places.tolist() == [list(range(count))]
        assert total == sum(range(count))
    if run.report.segments:  # MLX reads the count by itself
        assert run.report.segments == 1 + 4


@pytest.mark.parametrize("target", TARGETS)
def test_sequences_stay_on_the_host_and_arithmetic_on_the_target(target):
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node("Mul", ["carried", "carried"], ["square"]),
            helper.make_node("SequenceInsert", ["list", "square"], ["longer"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("carried", TensorProto.FLOAT, [2]),
            helper.make_tensor_sequence_value_info("list", TensorProto.FLOAT, None),
        ],
        [onnx.ValueInfoProto(name=n) for n in ("go_on", "square", "longer")],
    )
    nodes = [
        helper.make_node("SequenceEmpty", [], ["empty"]),
        helper.make_node("Loop", ["n", "", "x", "empty"], ["last", "list"], body=body),
        helper.make_node("SequenceAt", ["list", "position"], ["y"]),
    ]
    given = [("x", TensorProto.FLOAT, [2]), ("n", TensorProto.INT64, []), ("position", TensorProto.INT64, [])]
    run = irc.compile(model(nodes, given, ["last", "list", "y"]), target=target)
    x = np.array([2, 3], np.float32)
    last, rows, y = run(x, np.array(3), np.array(-2))
    assert last.tolist() == [2**8, 3**8]
    assert [r.tolist() for r in rows] == [[4, 9], [16, 81], [256, 6561]]
    assert y.tolist() == [16, 81]
    assert run.report.segments > 0


def test_random_numbers_are_fresh_unless_seeded():
    source = model([helper.make_node("RandomUniformLike", ["x"], ["y"])], [("x", TensorProto.FLOAT, [8])], ["y"])
    x = np.zeros(8, np.float32)
    run = irc.compile(source, target="reference")
    assert list(run.input_types) == ["x"]
    assert not np.array_equal(run(x)[0], run(x)[0])
    first, second = (irc.compile(source, target=t, seed=4) for t in ("reference", "xla"))
    for _ in range(2):
        np.testing.assert_array_equal(first(x)[0], second(x)[0])


def test_a_staged_executable_cannot_be_saved(tmp_path):
    source = model(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        [("x", TensorProto.FLOAT, [6]), ("shape", TensorProto.INT64, [2])],
        ["y"],
    )
    run = irc.compile(source, target="xla")
    run(np.zeros(6, np.float32), np.array([2, 3]))
    with pytest.raises(irc.IrcError, match="cannot be saved"):
        run.save(tmp_path / "a")
