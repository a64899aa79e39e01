"""ONNX files of models that irc types at run time: they say what the model said, in the wanted operator set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc
from irc.ir.errors import UnsupportedError
from irc.ir.text import print_model
from irc.targets.onnx.export import save_onnx
from irc.testing.patterns import model_of

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
ITEMS = np.array([3, 0, 2, 0, 3], np.float32)


def onnx_model(nodes, inputs, outputs, initializers=(), opset=18):
    graph = helper.make_graph(
        nodes,
        "late",
        [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(*o) for o in outputs],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in initializers],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def written(model, folder: Path, opset: int = 21) -> onnx.ModelProto:
    path = folder / "written.onnx"
    irc.save(irc.run_passes(model), path, opset=opset)
    onnx.checker.check_model(path, full_check=True)
    return onnx.load(path)


def results(proto: onnx.ModelProto, *inputs):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: a for i, a in zip(session.get_inputs(), inputs, strict=True)})


def kinds(proto: onnx.ModelProto) -> list[str]:
    return [n.op_type for n in proto.graph.node]


def test_sizes_that_values_decide(tmp_path: Path):
    """Places above zero, whose number is a size later; what counted them for irc is not written."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Transpose", ["places"], ["rows"], perm=[1, 0]),
        helper.make_node("GatherND", ["x", "rows"], ["found"]),
        helper.make_node("Shape", ["found"], ["n"]),
        helper.make_node("ConstantOfShape", ["n"], ["zeros"]),
        helper.make_node("Sub", ["zeros", "found"], ["y"]),
    ]
    source = onnx_model(nodes, [("x", F, ["N"])], [("y", F, ["M"])])
    proto = written(irc.import_onnx(source), tmp_path)
    assert "ReduceSum" not in kinds(proto)
    assert results(proto, ITEMS)[0].tolist() == [-3, -2, -3]
    assert results(proto, np.zeros(2, np.float32))[0].shape == (0,)


def test_a_size_that_only_a_scalar_tells(tmp_path: Path):
    """No value has the size yet where it is needed."""
    source = model_of(_counted, x="f32[5]")
    proto = written(source, tmp_path)
    assert results(proto, ITEMS)[0].tolist() == [7, 7, 7]


def _counted(b, x):
    from irc.ir import dims, dtypes

    positive = b.convert(b.compare(x, 0.0, direction="gt"), dtype=dtypes.i32)
    b.bind_dim(b.reduce(positive, axes=(0,), kind="sum"), dim="N")
    return b.full(7.0, dtypes.f32, (dims.symbol("N"),))


def test_nodes_that_wait_are_what_they_were(tmp_path: Path):
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
        helper.make_node("ReduceSum", ["y", "axes"], ["z"], keepdims=0),
        helper.make_node("Relu", ["y"], ["r"]),
        helper.make_node("TopK", ["x", "k"], ["best", "order"]),
    ]
    inputs = [("x", F, ["N"]), ("shape", I, [2]), ("axes", I, ["A"]), ("k", I, [1])]
    outputs = [("z", F, ["R"]), ("r", F, ["P", "Q"]), ("best", F, ["K"]), ("order", I, ["K"])]
    source = onnx_model(nodes, inputs, outputs)
    proto = written(irc.import_onnx(source), tmp_path)
    assert sorted(kinds(proto)) == ["ReduceSum", "Relu", "Reshape", "TopK"]
    arguments = [ITEMS[:4], np.array([2, 2]), np.array([1]), np.array([2])]
    for got, want in zip(results(proto, *arguments), results(source, *arguments), strict=True):
        np.testing.assert_array_equal(got, want)
    assert len(proto.graph.output[0].type.tensor_type.shape.dim) == 1, "only the source says how many axes are left"


def test_nodes_of_an_older_operator_set_are_respelled(tmp_path: Path):
    """Softmax of opset 11 flattens, Squeeze has an attribute; newer sets say it with other nodes and an operand."""
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
        helper.make_node("Softmax", ["y"], ["s"], axis=1),
        helper.make_node("Squeeze", ["s"], ["z"], axes=[0]),
    ]
    source = onnx_model(nodes, [("x", F, ["N"]), ("shape", I, [3])], [("z", F, ["P", "Q"])], opset=11)
    proto = written(irc.import_onnx(source), tmp_path)
    assert proto.opset_import[0].version == 21
    assert [len(n.input) for n in proto.graph.node if n.op_type == "Squeeze"] == [2]
    arguments = [np.arange(6, dtype=np.float32), np.array([1, 2, 3])]
    want = results(source, *arguments)[0]
    assert np.isclose(want.sum(), 1)
    np.testing.assert_allclose(results(proto, *arguments)[0], want, rtol=1e-6)


def test_a_meaning_that_no_newer_set_has_is_refused(tmp_path: Path):
    """Hardmax of opset 11 flattens too, which onnx.version_converter overlooks."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"]), helper.make_node("Hardmax", ["y"], ["z"], axis=1)]
    source = onnx_model(nodes, [("x", F, ["N"]), ("shape", I, [3])], [("z", F, ["P", "Q", "R"])], opset=11)
    with pytest.raises(UnsupportedError, match="Hardmax of opset 11 has no equal in opset 21"):
        written(irc.import_onnx(source), tmp_path)


def test_what_an_operator_set_lacks_is_refused_and_a_newer_one_takes_it(tmp_path: Path):
    nodes = [helper.make_node("CumProd", ["x", "axis"], ["y"])]
    model = irc.import_onnx(onnx_model(nodes, [("x", F, [3]), ("axis", I, [])], [("y", F, [3])], opset=26))
    with pytest.raises(UnsupportedError, match="CumProd of opset 26 has no equal in opset 21"):
        irc.save(model, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()
    assert kinds(written(model, tmp_path, opset=26)) == ["CumProd"]
    cast = model_of(lambda b, x: b.bitcast_convert(x, dtype=irc.ir.dtypes.i32), x="f32[3]")
    with pytest.raises(UnsupportedError, match="opset 21 has no BitCast; opset 26 has"):
        irc.save(cast, tmp_path / "m.onnx")
    assert kinds(written(cast, tmp_path, opset=26)) == ["BitCast"]


def test_branches_of_different_shapes_and_sequences(tmp_path: Path):
    def branch(name, *nodes):
        return helper.make_graph(list(nodes), name, [], [helper.make_tensor_value_info("y", F, None)])

    nodes = [
        helper.make_node(
            "If", ["p"], ["v"],
            then_branch=branch("then", helper.make_node("Concat", ["x", "x"], ["y"], axis=0)),
            else_branch=branch("else", helper.make_node("Identity", ["x"], ["y"])),
        ),
        helper.make_node("SequenceConstruct", ["v", "x"], ["s"]),
        helper.make_node("ConcatFromSequence", ["s"], ["z"], axis=0),
    ]  # fmt: skip
    source = onnx_model(nodes, [("p", B, []), ("x", F, ["N"])], [("z", F, ["M"])])
    proto = written(irc.import_onnx(source), tmp_path)
    for predicate in (True, False):
        arguments = [np.array(predicate), ITEMS]
        np.testing.assert_array_equal(results(proto, *arguments)[0], results(source, *arguments)[0])


def test_strings(tmp_path: Path):
    nodes = [
        helper.make_node("StringConcat", ["x", "x"], ["twice"]),
        helper.make_node("RegexFullMatch", ["twice"], ["y"], pattern="(ab)+"),
        helper.make_node("StringSplit", ["x"], ["parts", "counts"], delimiter="a"),
    ]
    outputs = [("y", B, ["N"]), ("parts", TensorProto.STRING, ["N", "P"]), ("counts", I, ["N"])]
    source = onnx_model(nodes, [("x", TensorProto.STRING, ["N"])], outputs, opset=20)
    proto = written(irc.import_onnx(source), tmp_path)
    words = np.array(["ab", "ba", "aa"], object)
    for got, want in zip(results(proto, words), results(source, words), strict=True):
        assert got.tolist() == want.tolist()


def test_a_trap_fails_with_its_message_in_the_branch_that_has_it(tmp_path: Path):
    def choose(b, p, x):
        return b.if_(
            p,
            then=b.region([], lambda i: i.add(x, 1.0)),
            else_=b.region([], lambda i: i.trap(message="8 kHz is not in this model", results=(x.type,))),
        )

    proto = written(model_of(choose, p="bool[]", x="f32[N]"), tmp_path)
    assert results(proto, np.array(True), ITEMS)[0].tolist() == (ITEMS + 1).tolist()
    with pytest.raises(Exception, match="8 kHz is not in this model"):  # ONNX Runtime's class has no public name
        results(proto, np.array(False), ITEMS)


def test_updates_stay_one_node_in_files_and_get_room_in_programs(tmp_path: Path):
    """ONNX calls indices out of range an error; irc drops such updates, which costs a program two copies."""
    source = model_of(lambda b, x, i, u: b.ScatterND(x, i, u), x="f32[N,2]", i="i64[M,1]", u="f32[M,2]")
    assert kinds(written(source, tmp_path)) == ["ScatterND"]
    x, i, u = np.zeros((3, 2), np.float32), np.array([[0], [7], [-1], [-4]]), np.ones((4, 2), np.float32)
    run = irc.compile(source, target="onnx")
    assert "ScatterND" in run.source
    np.testing.assert_array_equal(run(x, i, u)[0], irc.compile(source, target="reference")(x, i, u)[0])
    assert run(x, i, u)[0].tolist() == [[1, 1], [0, 0], [1, 1]]


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
@pytest.mark.parametrize("way", ["shift_left", "shift_right_arithmetic", "shift_right_logical"])
def test_shifts_by_any_amount(way, dtype):
    info = np.iinfo(irc.ir.dtypes.DType.of(dtype).numpy)
    values = np.array([0, 1, 5, info.max, info.min, info.max // 3], info.dtype)
    amounts = np.array([0, 1, info.bits - 1, info.bits, 100, info.min], info.dtype)
    x, y = (a.reshape(-1) for a in np.meshgrid(values, amounts))
    model = model_of(lambda b, x, y: b.apply(way, x, y), x=f"{dtype}[N]", y=f"{dtype}[N]")
    got = irc.compile(model, target="onnx")(x, y)[0]
    np.testing.assert_array_equal(got, irc.compile(model, target="reference")(x, y)[0])


def test_integers_are_not_raised_to_operators_that_lack_them(tmp_path: Path):
    """max(x, 0) of integers stays Max: ONNX has Relu for them, ONNX Runtime does not."""
    proto = written(model_of(lambda b, x: b.maximum(x, 0), x="i64[N]"), tmp_path)
    assert results(proto, np.array([-2, 3]))[0].tolist() == [0, 3]


def test_pools_whose_last_window_begins_behind_the_data_are_written_rounding_down(tmp_path: Path):
    pool = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[1], strides=[2], ceil_mode=1)
    source = onnx_model([pool], [("x", F, [1, 1, 2])], [("y", F, [1, 1, 1])], opset=22)
    (node,) = written(irc.import_onnx(source), tmp_path).graph.node
    assert [a.i for a in node.attribute if a.name == "ceil_mode"] in ([0], [])


def test_saving_leaves_the_model_alone(tmp_path: Path):
    find = helper.make_node("NonZero", ["x"], ["y"])
    model = irc.import_onnx(onnx_model([find], [("x", F, ["N"])], [("y", I, [1, "M"])]))
    before = print_model(model)
    save_onnx(model, tmp_path / "m.onnx")
    assert print_model(model) == before
