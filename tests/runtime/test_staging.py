"""Entries that run in stages: shapes that depend on values, host loops, sequences, random keys."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc
from irc.ir import build, dtypes
from irc.ir.dims import symbol
from irc.ir.model import Model
from irc.ir.types import tensor

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


def counting_model():
    """Places above zero of a convolved image, and their sum: two segments with a read between them."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("NonZero", ["r"], ["places"]),
        helper.make_node("Cast", ["places"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["f"], ["total"], keepdims=0),
    ]
    w = numpy_helper.from_array(np.eye(40, dtype=np.float32), "w")  # large enough to be a named weight
    return model(nodes, [("x", TensorProto.FLOAT, [2, 40])], ["places", "total"], [w])


LOAD = """
import sys
import numpy as np
import irc

run = irc.load_executable(sys.argv[1])
for count in (3, 17, 5, 80):
    x = np.where(np.arange(80) < count, 1.0, -1.0).astype(np.float32).reshape(2, 40)
    places, total = run(x)
    assert places.tolist() == [(np.arange(count) // 40).tolist(), (np.arange(count) % 40).tolist()]
    assert total == places.sum()
    print(count, run.load_count, run.report.segments)
"""


@pytest.mark.parametrize(
    ("shapes", "seen"),
    [
        ("exact", ["3 2 0", "17 3 0", "5 3 1", "80 3 2"]),  # 5 and 80 are new
        ("bucket", ["3 2 0", "17 3 0", "5 3 1", "80 3 2"]),  # rounded up to 4, 32, 8, 128
    ],
)
def test_what_was_compiled_is_not_compiled_in_another_process(shapes, seen, tmp_path):
    run = irc.compile(counting_model(), target="xla", shapes=shapes)
    for count in (3, 17):
        run(np.where(np.arange(80) < count, 1.0, -1.0).astype(np.float32).reshape(2, 40))
    run.save(tmp_path / "a")
    done = subprocess.run([sys.executable, "-c", LOAD, tmp_path / "a"], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == seen, done.stderr
    # Saved again, it still has what nobody ran.
    again = irc.load_executable(tmp_path / "a")
    again.save(tmp_path / "b")
    third = irc.load_executable(tmp_path / "b")
    third(np.ones((2, 40), np.float32) * np.where(np.arange(80) < 17, 1, -1).astype(np.float32).reshape(2, 40))
    assert (third.load_count, third.report.segments) == (2, 0)


@pytest.mark.parametrize("target", TARGETS)
def test_host_steps_and_late_types_survive_saving(target, tmp_path):
    source = model(
        [
            helper.make_node("MatMul", ["x", "w"], ["m"]),
            helper.make_node("Reshape", ["m", "shape"], ["r"]),
            helper.make_node("SequenceConstruct", ["r", "r"], ["list"]),
            helper.make_node("SequenceAt", ["list", "position"], ["a"]),
            helper.make_node("Exp", ["a"], ["y"]),
        ],
        [("x", TensorProto.FLOAT, ["N", 40]), ("shape", TensorProto.INT64, [2]), ("position", TensorProto.INT64, [])],
        ["y"],
        [numpy_helper.from_array(np.eye(40, dtype=np.float32), "w")],
    )
    run = irc.compile(source, target=target)
    arguments = (np.ones((2, 40), np.float32), np.array([5, -1]), np.array(1))
    want = run(*arguments)[0]
    compiled = run.report.segments
    run.save(tmp_path / "a")
    loaded = irc.load_executable(tmp_path / "a")
    np.testing.assert_array_equal(loaded(*arguments)[0], want)
    assert (loaded.load_count, loaded.report.segments) == (compiled, 0)
    assert loaded.source == run.source
    assert loaded.report.host_steps > 0


def test_a_segment_that_was_changed_is_not_run(tmp_path):
    run = irc.compile(counting_model(), target="xla")
    run(np.ones((2, 40), np.float32))
    run.save(tmp_path / "a")
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
    (tmp_path / "a" / manifest["segments"][0]["folder"] / "program.json").write_text("{}")
    with pytest.raises(irc.FormatError, match="contents differ from the manifest"):
        irc.load_executable(tmp_path / "a")
    manifest["segments"][0]["segment"] = "0" * 64
    run.save(tmp_path / "a")
    (tmp_path / "a" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(irc.FormatError, match="is not that of a program"):
        irc.load_executable(tmp_path / "a")


def test_refusals_of_an_entry_that_runs_in_stages_come_at_once():
    m = Model("refused")

    def body(b, x):
        b.bind_dim(
            b.reduce(b.convert(b.compare(x, 0, direction="gt"), dtype=dtypes.i64), axes=(0,), kind="sum"), dim="n"
        )
        places = b.NonZero(x, count=symbol("n"))
        (y,) = (b.custom_call((places,), target="elsewhere", results=(tensor(dtypes.f32, symbol("n")),)),)
        return b.tanh(y)

    build.function(m, "main", [("x", tensor(dtypes.f32, 8))], body)
    with pytest.raises(irc.UnsupportedError, match="xla cannot run custom_call"):
        irc.compile(m, target="xla")


def late_if(number: int) -> onnx.NodeProto:
    """A branch whose rank hangs on a value, and a weight of its own called `w`, as another one's is."""
    weights = [numpy_helper.from_array(np.full((1, 128), number, np.float32), "w")]
    other = [numpy_helper.from_array(np.full((1, 1, 128), number, np.float32), "w")]
    result = [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)]
    then = [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("Mul", ["r", "w"], ["z"])]
    els = [helper.make_node("Reshape", ["x", "shape3"], ["r"]), helper.make_node("Add", ["r", "w"], ["z"])]
    return helper.make_node(
        "If", ["p"], [f"o{number}"],
        then_branch=helper.make_graph(then, "then", [], result, weights),
        else_branch=helper.make_graph(els, "else", [], result, other),
    )  # fmt: skip


@pytest.fixture
def two_late_ifs() -> onnx.ModelProto:
    inputs = [("x", TensorProto.FLOAT, ["N"]), ("p", TensorProto.BOOL, []), ("shape", TensorProto.INT64, [2]),
              ("shape3", TensorProto.INT64, [3])]  # fmt: skip
    graph = helper.make_graph(
        [late_if(1), late_if(2)], "g", [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("o1", "o2")],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


LATE_INPUTS = (np.ones(128, np.float32), np.array(True), np.array([1, 128]), np.array([1, 1, 128]))


@pytest.mark.parametrize("target", ["reference", "xla", "mlx{compile=off}"])
def test_weights_of_two_late_nodes_that_share_a_name_stay_apart(target, two_late_ifs):
    run = irc.compile(two_late_ifs, target=target)
    assert [np.unique(np.asarray(o)).tolist() for o in run(*LATE_INPUTS)] == [[1.0], [2.0]]


@pytest.mark.parametrize("kind", ["model", "artifact"])
def test_late_nodes_run_in_a_fresh_process(kind, two_late_ifs, tmp_path):
    """Who loads a saved model or artifact has not imported ONNX; what types late nodes is loaded with it."""
    path = tmp_path / ("m.ir" if kind == "model" else "m.xla")
    if kind == "model":
        irc.save(irc.import_onnx(two_late_ifs), path)
    else:
        irc.compile(two_late_ifs, target="xla").save(path)
    script = f"""
import numpy as np, irc
run = irc.compile(irc.load({str(path)!r}), target="xla") if {kind == "model"} else irc.load_executable({str(path)!r})
outputs = run(np.ones(128, np.float32), np.array(True), np.array([1, 128]), np.array([1, 1, 128]))
assert [np.unique(np.asarray(o)).tolist() for o in outputs] == [[1.0], [2.0]]
"""
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
