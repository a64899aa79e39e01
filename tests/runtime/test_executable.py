"""Executables: arguments, shapes, compile counts, threads, artifacts."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

import irc
from irc.ir import build, dtypes
from irc.ir.data import ArrayData
from irc.ir.dims import symbol
from irc.ir.model import Model
from irc.ir.types import tensor

B, N = symbol("B"), symbol("N")


def model() -> Model:
    """y = x @ w + bias, z = x - k for x[B, 4], k[B, 1]; w is large enough to be a named weight."""
    m = Model("linear")
    w = m.add_constant("w", ArrayData(np.arange(4 * 40, dtype=np.float32).reshape(4, 40) / 100))

    def body(b, x, k):
        y = b.add(b.MatMul(x, w, name="product"), 0.5, name="y")
        return {"y": y, "z": b.subtract(x, k, name="z")}

    build.function(m, "main", [("x", tensor(dtypes.f32, B, 4)), ("k", tensor(dtypes.f32, B, 1))], body)
    return m


def arrays(batch: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(batch)
    return generator.standard_normal((batch, 4), np.float32), generator.standard_normal((batch, 1), np.float32)


def expected(x, k):
    w = np.arange(4 * 40, dtype=np.float32).reshape(4, 40) / 100
    return x @ w + np.float32(0.5), x - k


TARGETS = ["xla", "mlx{compile=off}", "onnx", "reference"]


@pytest.mark.parametrize("target", TARGETS)
def test_positions_keywords_and_mappings_are_the_same_call(target):
    run = irc.compile(model(), target=target)
    x, k = arrays(3)
    for outputs in (run(x, k), run(k=k, x=x), run(x, k=k), run({"x": x, "k": k})):
        assert isinstance(outputs, tuple)
        assert list(outputs.by_name) == ["y", "z"]
        for got, want in zip(outputs, expected(x, k), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
            assert type(got) is np.ndarray
            assert got.flags.writeable
            assert got.flags.owndata


@pytest.mark.parametrize("target", TARGETS)
def test_results_and_arguments_are_the_callers_own(target):
    run = irc.compile(model(), target=target)
    x, k = arrays(2)
    first = run(x, k)
    kept = [np.array(o) for o in first]
    x[:] = 0
    first[1][:] = 7
    second = run(*arrays(2))
    np.testing.assert_array_equal(first[0], kept[0])
    np.testing.assert_array_equal(second[1], kept[1])


def test_xla_compiles_once_a_shape_and_mlx_once_in_all():
    for target, after_two in (("xla", 2), ("mlx{compile=off}", 1)):
        run = irc.compile(model(), target=target)
        counts = []
        for batch in (2, 5, 2, 5):
            run(*arrays(batch))
            counts.append(run.compile_count)
        assert counts[1:] == [after_two] * 3, target


def test_ahead_of_time_shapes_need_no_compilation_at_the_call():
    run = irc.compile(model(), target="xla", dims={"B": [2, 5]})
    assert run.compile_count == 2
    run(*arrays(2))
    run(*arrays(5))
    assert run.compile_count == 2
    run.specialize(B=7)
    assert run.compile_count == 3
    with pytest.raises(irc.IrcError, match="there are 3 specializations"):
        _ = run.source
    assert "tensor<7x4xf32>" in run.source_for(B=7)


def test_every_combination_of_dims_is_compiled():
    m = Model("two")
    build.function(m, "main", [("x", tensor(dtypes.f32, B, N))], lambda b, x: b.tanh(x))
    assert irc.compile(m, target="xla", dims={"B": [1, 2], "N": [3, 4]}).compile_count == 4


def test_programs_beyond_the_capacity_go_oldest_first():
    from irc import targets
    from irc.runtime.executable import Executable

    run = Executable(irc.run_passes(model()), targets.get("xla"), capacity=2)
    for batch in (1, 2, 3):
        run(*arrays(batch))
    assert [dict(k) for k in run.programs] == [{"B": 2}, {"B": 3}]
    run(*arrays(3))
    run(*arrays(2))
    assert run.compile_count == 3
    run(*arrays(1))
    assert run.compile_count == 4
    assert [dict(k) for k in run.programs] == [{"B": 2}, {"B": 1}], "2 came up anew after 3"


BAD_CALLS = [
    (lambda x, k: ((x,), {}), r"needs the inputs x, k; missing: k"),
    (lambda x, k: ((x, k, x), {}), r"takes 2 inputs \(x, k\), got 3"),
    (lambda x, k: ((x,), {"kk": k}), r"no input 'kk'; did you mean 'k'"),
    (lambda x, k: ((x, k), {"x": x}), r"input 'x' is given twice"),
    (lambda x, k: ((x[0], k), {}), r"'x' expects f32\[B,4\] \(rank 2\), got shape \[4\] \(rank 1\)"),
    (lambda x, k: ((x[:, :3], k), {}), r"'x' expects f32\[B,4\], got shape \[3, 3\]: axis 1 must be 4, got 3"),
    (
        lambda x, k: ((x, k[:2]), {}),
        r"'k' expects f32\[B,1\], got shape \[2, 1\]: axis 0 must be B \(where B=3\), got 2",
    ),
    (lambda x, k: ((x.astype(np.float64), k), {}), r"'x' expects f32\[B,4\], got element type f64; convert it with"),
    (lambda x, k: ((x.tolist(), k), {}), r"'x' expects an array of type f32\[B,4\], got list"),
]


@pytest.mark.parametrize("call, message", BAD_CALLS, ids=[m[:30] for _, m in BAD_CALLS])
def test_wrong_arguments_say_expected_and_got(call, message):
    run = irc.compile(model(), target="reference")
    args, kwargs = call(*arrays(3))
    with pytest.raises(irc.InputError, match=message):
        run(*args, **kwargs)


def test_a_broken_assumption_names_the_node_and_the_sizes():
    m = Model("halves")
    h = symbol("H")

    def body(b, x):
        half = b.slice(x, starts=(0,), limits=(h,), strides=(2,))
        twice = b.concatenate((half, half), axis=0)
        return b.add(x, twice, name="sum")

    build.function(m, "main", [("x", tensor(dtypes.f32, h))], body)
    for target in ("reference", "xla", "mlx{compile=off}"):
        run = irc.compile(m, target=target)
        assert run(np.ones(6, np.float32))[0].tolist() == [2.0] * 6
        with pytest.raises(irc.AssumptionError, match=r"cannot run with H=7: add needs .*, got .*7"):
            run(np.ones(7, np.float32))
        with pytest.raises(irc.AssumptionError, match="H=7"):
            run.specialize(H=7)


def test_many_threads_share_one_compilation():
    run = irc.compile(model(), target="xla")
    x, k = arrays(4)
    want = expected(x, k)
    failures: list[object] = []

    def work():
        for _ in range(20):
            got = run(x, k)
            if not all(np.allclose(g, w, rtol=1e-5, atol=1e-6) for g, w in zip(got, want, strict=True)):
                failures.append(got)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert run.compile_count == 1


@pytest.mark.parametrize("target", TARGETS)
def test_artifacts_run_without_compiling(target, tmp_path):
    run = irc.compile(model(), target=target, dims={"B": 3} if target == "xla" else None)
    run.save(tmp_path / "linear.art")
    loaded = irc.load_executable(tmp_path / "linear.art")
    x, k = arrays(3)
    for got, want in zip(loaded(x, k), run(x, k), strict=True):
        np.testing.assert_array_equal(got, want)
    assert (loaded.compile_count, loaded.load_count) == (0, 1)
    loaded(*arrays(5))
    assert loaded.compile_count == (1 if target == "xla" else 0), "a shape that the artifact lacks is compiled"
    manifest = json.loads((tmp_path / "linear.art" / "manifest.json").read_text())
    assert manifest["inputs"] == {"x": "f32[B,4]", "k": "f32[B,1]"}


def test_a_changed_artifact_is_refused(tmp_path):
    irc.compile(model(), target="reference").save(tmp_path / "a")
    container = tmp_path / "a" / "model.ir"
    raw = bytearray(container.read_bytes())
    raw[-1] ^= 1
    container.write_bytes(raw)
    with pytest.raises(irc.FormatError, match=r"model\.ir: contents differ from the manifest"):
        irc.load_executable(tmp_path / "a")
    with pytest.raises(irc.FormatError, match="is not an artifact"):
        irc.load_executable(tmp_path)


def test_saving_over_something_else_is_refused_and_replaces_an_artifact(tmp_path):
    run = irc.compile(model(), target="reference")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("do not lose")
    with pytest.raises(irc.IrcError, match="exists and is no artifact"):
        run.save(tmp_path / "precious")
    assert (tmp_path / "precious" / "thesis.txt").read_text() == "do not lose"
    run.save(tmp_path / "a")
    run.save(tmp_path / "a")
    assert [p.name for p in tmp_path.iterdir()] != []
    assert not list(Path(tmp_path).glob(".a.*"))


def test_compiling_leaves_the_users_model_alone():
    from irc.ir.text import print_model

    m = model()
    before = print_model(m)
    irc.compile(m, target="xla", dims={"B": 2})
    irc.run_passes(m)
    assert print_model(m) == before


def test_arguments_that_need_converting_are_converted_at_every_call():
    import jax.numpy as jnp

    m = Model("sum")
    build.function(m, "main", [("x", tensor(dtypes.f32, B)), ("y", tensor(dtypes.f32))], lambda b, x, y: b.add(x, y))
    x = np.ones(3, np.float32)
    for target in ("xla", "onnx", "reference"):
        run = irc.compile(m, target=target)
        for y in (np.array(2, np.float32), np.float32(2), np.float32(2), np.array(2, ">f4"), jnp.float32(2)):
            assert run(x, y)[0].tolist() == [3.0] * 3, (target, type(y))
        assert run(jnp.ones(3), np.float32(2))[0].tolist() == [3.0] * 3
        assert run.compile_count == 1


def sum_of_sizes() -> Model:
    a = symbol("A")
    m = Model("concatenation")
    types = [("x", tensor(dtypes.f32, a + B)), ("a", tensor(dtypes.f32, a)), ("b", tensor(dtypes.f32, B))]
    build.function(m, "main", types, lambda b, x, y, z: b.add(x, b.concatenate((y, z), axis=0)))
    return m


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_whose_symbols_come_later_are_checked(target):
    run = irc.compile(sum_of_sizes(), target=target)
    x = np.ones(7, np.float32)
    assert run(x[:3], x[:1], x[:2])[0].tolist() == [2.0] * 3
    for wrong in (7, 1):
        with pytest.raises(irc.InputError, match=rf"axis 0 must be A \+ B \(where A=1, B=2\), got {wrong}"):
            run(x[:wrong], x[:1], x[:2])


def test_the_reference_and_made_up_inputs_check_them_too():
    from irc.ir.reference import evaluate
    from irc.runtime.feeds import make_inputs

    x = np.ones(7, np.float32)
    with pytest.raises(irc.InputError, match=r"axis 0 must be A \+ B"):
        evaluate(sum_of_sizes(), [x[:1], x[:1], x[:2]])
    run = irc.compile(sum_of_sizes(), target="reference")
    with pytest.raises(irc.InputError, match=r"axis 0 must be A \+ B"):
        make_inputs(run, {}, {"x": (7,), "a": (1,), "b": (2,)}, {}, 0)
    assert [a.shape for a in make_inputs(run, {}, {"x": (7,), "a": (1,)}, {}, 0)] == [(7,), (1,), (6,)]


def test_sizes_that_do_not_follow_are_an_error():
    m = Model("square")
    build.function(m, "main", [("x", tensor(dtypes.f32, B * B))], lambda b, x: b.tanh(x))
    with pytest.raises(irc.InputError, match="@main: the sizes B do not follow"):
        irc.compile(m, target="reference")(np.ones(9, np.float32))


def test_functions_are_called_with_sizes_of_their_own():
    from irc.ir.text import parse_model

    m = parse_model("""irc 1 vocabulary 1
model "calls" {
  func @main(%x: f32[2,3], %w: f32[4,3]) -> (%y: f32[2,3], %v: f32[4,3]) {
    %y = call(%x) {callee = @f} : f32[2,3]
    %v = call(%w) {callee = @f} : f32[4,3]
    return %y, %v
  }
  private func @f<B>(%x: f32[B,3]) -> (%y: f32[B,3]) {
    %y = add(%x, %x) : f32[B,3]
    return %y
  }
}
""")
    for target in ("xla", "reference"):
        y, v = irc.compile(m, target=target, passes="")(np.ones((2, 3), np.float32), np.ones((4, 3), np.float32))
        assert (y.shape, v.shape) == ((2, 3), (4, 3))
        assert set(y.flat) == set(v.flat) == {2.0}


@pytest.mark.parametrize("target", ["xla", "reference"])
@pytest.mark.parametrize(
    "size, message",
    [
        ("3", "the dim B must be a whole number, got '3'"),
        (2.0, "the dim B must be a whole number, got 2.0"),
        (-1, "the dim B must not be negative, got -1"),
        ([1, "cat"], "the dim B must be a whole number, got 'cat'"),
    ],
)
def test_sizes_given_are_checked(target, size, message):
    with pytest.raises(irc.InputError, match=message):
        irc.compile(model(), target=target, dims={"B": size})


def test_sizes_given_may_be_numpy_integers():
    run = irc.compile(model(), target="xla", dims={"B": np.int64(3)})
    assert list(run.programs) == [(("B", 3),)]
    with pytest.raises(irc.InputError, match="needs every dim; unspecified: B"):
        run.source_for()


def test_a_program_that_is_called_often_stays():
    from irc import targets
    from irc.runtime.executable import Executable

    run = Executable(irc.run_passes(model()), targets.get("xla"), capacity=2)
    for batch in (1, 2, 1, 3):
        run(*arrays(batch))
    assert [dict(k) for k in run.programs] == [{"B": 1}, {"B": 3}]
    run(*arrays(1))
    assert run.compile_count == 3
    assert not run._programs.in_flight, "no lock is kept for a shape that is compiled"
    assert len(run._calls) == 2


def test_outputs_of_one_name_are_refused_and_numbered_at_import():
    import onnx
    from onnx import helper

    m = model()
    m.main.output_names = ["y", "y"]
    with pytest.raises(irc.IrcError, match="outputs of @main share a name: y, y"):
        irc.compile(m, target="reference")
    info = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [3]) for n in "xyy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", info[:1], info[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    outputs = irc.compile(proto, target="reference")(np.ones(3, np.float32))
    assert {n: a.tolist() for n, a in outputs.by_name.items()} == {"y": [-1.0] * 3, "y_1": [-1.0] * 3}


def test_mistakes_of_callers_are_errors_of_irc():
    from irc import targets

    reference = targets.get("reference")
    for call, message in (
        (lambda: irc.compile(model(), target=reference, bogus=1), "has its options already; bogus cannot be set"),
        (lambda: irc.compile(model(), target=None), "expected the name of a target"),
        (lambda: irc.compile(None, target="reference"), "expected a path, bytes or an ONNX ModelProto, got NoneType"),
        (lambda: irc.import_onnx(3), "expected a path, bytes or an ONNX ModelProto, got int"),
        (lambda: irc.load(b"x"), "expected a path, got bytes"),
        (lambda: irc.load_executable(3), "expected a path, got int"),
        (lambda: irc.run_passes(model(), 3), "expected a pipeline as text"),
    ):
        with pytest.raises(irc.IrcError, match=message):
            call()


def test_suffixes_are_told_in_any_case(tmp_path):
    irc.save(model(), tmp_path / "LINEAR.IR")
    assert irc.read(tmp_path / "LINEAR.IR").name == "linear"


@pytest.mark.parametrize("target", ["xla", "onnx"])
def test_failures_at_run_time_are_errors_of_irc(target):
    run = irc.compile(model(), target=target, dims={"B": 3})
    program = next(iter(run.programs.values()))
    with pytest.raises(irc.IrcError, match="cannot run this program"):
        program.run([np.ones((3, 5), np.float32), np.ones((3, 1), np.float32)], True)
