"""Programs of the XLA target: emitted text, weights, memory, threads, traps, saving and loading."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

from irc import targets
from irc.ir import build, dtypes
from irc.ir.attributes import Symbol
from irc.ir.build import Builder
from irc.ir.data import ArrayData
from irc.ir.errors import FormatError, IrcError, UnsupportedError
from irc.ir.model import Function, Model
from irc.ir.types import TensorType
from irc.targets.xla.emit import MAX_CALL_DEPTH

f32, i64 = dtypes.f32, dtypes.i64
W = np.arange(64 * 32, dtype=np.float32).reshape(64, 32) / 1000


@pytest.fixture(scope="module")
def xla():
    return targets.get("xla")


def typed(*dims: int) -> TensorType:
    return TensorType(f32, dims)


def linear(rows: int = 2) -> Model:
    """x @ w + 1 with a weight that is too large to print."""
    model = Model("linear")
    w = model.add_constant("w", ArrayData(W))
    body = lambda b, x: b.add(b.dot_general(x, w, lhs_contracting=(1,), rhs_contracting=(0,)), 1.0)  # noqa: E731
    build.function(model, "main", [("x", typed(rows, 64))], body)
    return model


def test_the_source_is_stablehlo_with_large_constants_as_arguments(xla):
    program = xla.compile(linear(), "main", {})
    assert program.source == (
        "module @linear {\n"
        "  func.func public @main(%arg0: tensor<2x64xf32>, %arg1: tensor<64x32xf32>) -> tensor<2x32xf32> {\n"
        "    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : "
        "(tensor<2x64xf32>, tensor<64x32xf32>) -> tensor<2x32xf32>\n"
        "    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
        "    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x32xf32>\n"
        "    %2 = stablehlo.add %0, %1 : tensor<2x32xf32>\n"
        "    return %2 : tensor<2x32xf32>\n"
        "  }\n"
        "}\n"
    )
    assert xla.compile(linear(), "main", {}).source == program.source


def test_results_are_owned_writable_numpy_or_the_targets_arrays(xla):
    program = xla.compile(linear(), "main", {})
    x = np.ones((2, 64), np.float32)
    (y,) = program.run([x], True)
    np.testing.assert_allclose(y, x @ W + 1, rtol=1e-6)
    assert y.flags.owndata
    assert y.flags.writeable
    (z,) = program.run([x], False)
    assert xla.dtype_of(z) is f32
    assert xla.dtype_of(y) is None
    np.testing.assert_array_equal(xla.to_numpy(z), y)


def test_inputs_may_be_written_to_after_the_call(xla):
    """64-byte aligned memory would be aliased; the device must not see what is written later."""
    model = Model("copy")
    build.function(model, "main", [("x", typed(1 << 16))], lambda b, x: b.negate(x))
    program = xla.compile(model, "main", {})
    x = np.empty((1 << 16) + 16, np.float32)
    start = (-x.ctypes.data // 4) % 16
    x = x[start : start + (1 << 16)]
    assert x.ctypes.data % 64 == 0
    for as_numpy in (True, False):
        for _ in range(20):
            x[:] = 1
            (y,) = program.run([x], as_numpy)
            x[:] = 2
            assert (np.asarray(y) == -1).all()


def test_device_arrays_are_taken_as_they_are(xla):
    model = Model("chain")
    build.function(model, "main", [("x", TensorType(i64, (3,)))], lambda b, x: b.add(x, 1 << 40))
    program = xla.compile(model, "main", {})
    (y,) = program.run([np.array([1, 2, 3])], False)
    (z,) = program.run([y], True)
    assert z.dtype == np.int64
    assert z.tolist() == [(2 << 40) + n for n in (1, 2, 3)]


def test_nothing_global_changes(xla):
    import jax

    before = dict(jax.config.values)
    model = Model("wide")
    build.function(model, "main", [("x", TensorType(dtypes.f64, (2,)))], lambda b, x: b.add(x, 1e-12))
    (y,) = xla.compile(model, "main", {}).run([np.ones(2)], True)
    assert y[0] - 1 == pytest.approx(1e-12, rel=1e-3)
    assert dict(jax.config.values) == before


def test_specializations_share_weights(xla):
    """Equal data once; derived constants once for equal computations, even of different models."""
    state: dict = {}
    data = ArrayData(W)
    programs = []
    for rows in (2, 3):
        model = Model("shared")
        w = model.add_constant("w", data)
        derived = model.add_derived("wt", Builder(model, model.init).transpose(w, permutation=(1, 0)))

        def body(b, x, w=w, derived=derived):
            y = b.dot_general(x, w, lhs_contracting=(1,), rhs_contracting=(0,))
            return b.dot_general(y, derived, lhs_contracting=(1,), rhs_contracting=(0,))

        build.function(model, "main", [("x", typed(rows, 64))], body)
        programs.append(xla.compile(model, "main", state))
    first, second = ([w.placed.buffer for w in p.weights] for p in programs)
    assert len(first) == 2
    assert all(a is b for a, b in zip(first, second, strict=True))
    x = np.ones((3, 64), np.float32)
    np.testing.assert_allclose(programs[1].run([x], True)[0], x @ W @ W.T, rtol=1e-5)


def test_weights_go_with_the_last_program(xla):
    state: dict = {}
    program = xla.compile(linear(), "main", state)
    assert len(state["xla.placed"]) == 1
    del program
    assert len(state["xla.placed"]) == 0


def test_threads_share_a_program(xla):
    program = xla.compile(linear(), "main", {})
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).random((2, 64), np.float32)
        for _ in range(50):
            if not np.allclose(program.run([x], True)[0], x @ W + 1, rtol=1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# ------------------------------------------------------------------------------------------------ functions and traps


def with_callee(body) -> Model:
    """A model whose main calls @inner twice."""
    model = Model("calls")
    inner = model.add_function(Function("inner", public=False))
    x = inner.add_input(typed(2, 64), "x")
    inner.body.set_outputs([body(Builder(model, inner.body), x)])
    inner.output_names = ["y"]

    def main(b, x):
        return b.add(*(b.call((v,), callee=Symbol("inner")) for v in (x, b.negate(x))))

    build.function(model, "main", [("x", typed(2, 64))], main)
    return model


def test_a_called_function_is_written_once_and_gets_its_weights(xla):
    def square(b, x):
        w = b.constant(W, name="w")
        y = b.dot_general(x, w, lhs_contracting=(1,), rhs_contracting=(0,))
        return b.dot_general(b.multiply(y, y), w, lhs_contracting=(1,), rhs_contracting=(1,))

    program = xla.compile(with_callee(square), "main", {})
    assert program.source.count("func.func") == 2
    assert len(program.weights) == 1
    x = np.ones((2, 64), np.float32)
    np.testing.assert_allclose(program.run([x], True)[0], 2 * ((x @ W) ** 2 @ W.T), rtol=1e-5)


def nested_calls(depth: int) -> Model:
    """@f0 calls @f1 ... calls @f<depth>, in this order in the model; main calls @f0, so calls nest depth + 1 deep."""
    model = Model("nested")
    for i in reversed(range(depth + 1)):
        function = model.add_function(Function(f"f{i}", public=False))
        x = function.add_input(typed(3), "x")
        b = Builder(model, function.body)
        function.body.set_outputs([b.negate(x) if i == depth else b.call((x,), callee=Symbol(f"f{i + 1}"))])
        function.output_names = ["y"]
    build.function(model, "main", [("x", typed(3))], lambda b, x: b.call((x,), callee=Symbol("f0")))
    model.functions = dict(reversed(model.functions.items()))
    return model


def test_calls_nest_as_deep_as_xla_bears(xla):
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(xla.compile(nested_calls(MAX_CALL_DEPTH - 1), "main", {}).run([x], True)[0], -x)
    with pytest.raises(UnsupportedError, match="calls nested 601 deep, only 64; run the pass inline first"):
        xla.compile(nested_calls(600), "main", {})


def trapping(b, x):
    """x, unless its sum is below 0."""
    total = b.reduce((x,), axes=(0, 1), kind="sum")
    bad = b.compare(total, 0.0, direction="lt")
    then = b.region([], lambda b: b.trap(message="the sum is below 0", results=(x.type,)))
    return b.if_(bad, then=then, else_=b.region([], lambda b: x))


def test_a_reached_trap_raises_after_the_call(xla):
    model = Model("trap")
    build.function(model, "main", [("x", typed(2, 64))], trapping)
    program = xla.compile(model, "main", {})
    x = np.ones((2, 64), np.float32)
    np.testing.assert_array_equal(program.run([x], True)[0], x)
    for as_numpy in (True, False):
        with pytest.raises(IrcError, match="the sum is below 0"):
            program.run([-x], as_numpy)


def test_traps_travel_through_calls(xla):
    program = xla.compile(with_callee(trapping), "main", {})
    with pytest.raises(IrcError, match="the sum is below 0"):
        program.run([np.ones((2, 64), np.float32)], True)
    np.testing.assert_array_equal(program.run([np.zeros((2, 64), np.float32)], True)[0], np.zeros((2, 64)))


def test_a_trap_ends_a_loop(xla):
    """The loop counts up while x > 0; the trap's zeros would keep it running for ever."""

    def main(b, x):
        state = [TensorType(i64, ()), TensorType(i64, ())]

        def body(b, i, limit):
            then = b.region([], lambda b: b.trap(message="too far", results=(TensorType(i64, ()),)))
            more = b.region([], lambda b: b.add(i, 1))
            return b.if_(b.compare(i, 5, direction="gt"), then=then, else_=more), limit

        cond = b.region(state, lambda b, i, limit: b.compare(i, limit, direction="lt"))
        return b.while_((b.constant(0, i64), x), cond=cond, body=b.region(state, body))[0]

    model = Model("loop")
    build.function(model, "main", [("x", TensorType(i64, ()))], main)
    program = xla.compile(model, "main", {})
    assert int(program.run([np.array(3)], True)[0]) == 3
    with pytest.raises(IrcError, match="too far"):
        program.run([np.array(9)], True)


# ----------------------------------------------------------------------------------------------------- convolutions


@pytest.mark.parametrize("native", [0, 3])
def test_pointwise_and_depthwise_convolutions_in_both_layouts(xla, native):
    """Channels-last where XLA's own convolutions are many, channels-first elsewhere; the numbers are the same."""
    from irc.ir.reference import evaluate

    r = np.random.default_rng(0)
    plain = {"lhs_spec": "bf01", "rhs_spec": "oi01", "out_spec": "bf01", "lhs_dilation": (1, 1), "rhs_dilation": (1, 1),
             "window_reversal": (False, False)}  # fmt: skip

    def conv(b, x, *dims, stride=1, pad=0, groups=1):
        w = b.constant(r.standard_normal(dims).astype(np.float32), name="w")
        return b.convolution(x, w, window_strides=(stride, stride), padding=((pad, pad),) * 2,
                             feature_group_count=groups, **plain)  # fmt: skip

    def main(b, x):
        for _ in range(native):
            x = conv(b, x, 16, 16, 3, 3, pad=1)
        x = conv(b, x, 32, 16, 1, 1)
        x = conv(b, x, 32, 1, 3, 3, stride=2, pad=1, groups=32)
        return conv(b, x, 24, 32, 1, 1, stride=2)

    model = Model("nets")
    build.function(model, "main", [("x", typed(2, 16, 9, 8))], main)
    x = r.standard_normal((2, 16, 9, 8)).astype(np.float32)
    program = xla.compile(model, "main", {})
    assert program.source.count("stablehlo.convolution") == native
    (expected,) = evaluate(model, [x])
    np.testing.assert_allclose(program.run([x], True)[0], expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


# -------------------------------------------------------------------------------------------------- saving and loading


def saved(xla, model: Model, folder, state: dict):
    folder.mkdir()
    program = xla.compile(model, "main", state)
    program.save(folder)
    return program


def test_a_saved_program_runs_without_compiling(xla, tmp_path, monkeypatch):
    model = linear()
    program = saved(xla, model, tmp_path / "p", {"model": model})
    assert (tmp_path / "p" / "weights.bin").stat().st_size == 0  # the model has them
    monkeypatch.setattr(type(xla.device), "compile", lambda *a: pytest.fail("compiled"))
    loaded = xla.load(tmp_path / "p", linear(), "main", {})
    x = np.ones((2, 64), np.float32)
    np.testing.assert_array_equal(loaded.run([x], True)[0], program.run([x], True)[0])
    assert loaded.source == program.source


def test_weights_that_the_model_lacks_are_saved(xla, tmp_path):
    model = linear()
    program = saved(xla, model, tmp_path / "p", {})
    assert (tmp_path / "p" / "weights.bin").stat().st_size == W.nbytes
    loaded = xla.load(tmp_path / "p", Model("other"), "main", {})
    x = np.ones((2, 64), np.float32)
    np.testing.assert_array_equal(loaded.run([x], True)[0], program.run([x], True)[0])


def test_a_transposed_kernel_is_found_in_the_model(xla, tmp_path):
    model = Model("conv")
    w = model.add_constant("w", ArrayData(np.random.default_rng(0).random((8, 4, 3, 3), np.float32)))
    attributes = {"lhs_spec": "bf01", "rhs_spec": "oi01", "out_spec": "bf01", "window_strides": (1, 1),
                  "padding": ((1, 1), (1, 1)), "lhs_dilation": (1, 1), "rhs_dilation": (1, 1),
                  "window_reversal": (False, False)}  # fmt: skip
    build.function(model, "main", [("x", typed(1, 4, 5, 5))], lambda b, x: b.convolution(x, w, **attributes))
    program = saved(xla, model, tmp_path / "p", {"model": model})
    assert [x.permutation for x in program.weights] == [(2, 3, 1, 0)]
    assert (tmp_path / "p" / "weights.bin").stat().st_size == 0
    x = np.ones((1, 4, 5, 5), np.float32)
    loaded = xla.load(tmp_path / "p", model, "main", {})
    np.testing.assert_array_equal(loaded.run([x], True)[0], program.run([x], True)[0])


def test_code_of_another_machine_is_compiled_anew(xla, tmp_path, monkeypatch):
    model = linear()
    saved(xla, model, tmp_path / "p", {"model": model})
    manifest = json.loads((tmp_path / "p" / "program.json").read_text())
    manifest["fingerprint"]["cpu"] = "Linux-x86_64-other"
    (tmp_path / "p" / "program.json").write_text(json.dumps(manifest))
    monkeypatch.setattr(type(xla.device), "restore", lambda *a: pytest.fail("loaded code of another CPU"))
    loaded = xla.load(tmp_path / "p", model, "main", {})
    x = np.ones((2, 64), np.float32)
    np.testing.assert_allclose(loaded.run([x], True)[0], x @ W + 1, rtol=1e-6)


@pytest.mark.parametrize("name", ["module.mlir", "program.bin"])
def test_damage_is_found(xla, tmp_path, name):
    saved(xla, linear(), tmp_path / "p", {})
    file = tmp_path / "p" / name
    file.write_bytes(file.read_bytes()[:-1] + b"#")
    with pytest.raises(FormatError, match="checksum"):
        xla.load(tmp_path / "p", linear(), "main", {})


def test_a_manifest_that_is_none(xla, tmp_path):
    (tmp_path / "program.json").write_text("[]")
    with pytest.raises(FormatError, match="not a compiled XLA program"):
        xla.load(tmp_path, linear(), "main", {})


# --------------------------------------------------------------------------------------------------------- refusals


def test_strings_are_refused(xla):
    model = Model("strings")
    x = TensorType(dtypes.string, (2,))
    build.function(model, "main", [("x", x)], lambda b, x: b.reverse(x, axes=(0,)))
    (node,) = model.nodes()
    assert xla.claims(node) == "XLA has no strings"


def test_composites_and_unknown_operators_are_refused(xla):
    model = Model("softmax")
    build.function(model, "main", [("x", typed(2, 3))], lambda b, x: b.Softmax(x))
    (node,) = model.nodes()
    assert xla.claims(node) == "xla has no lowering of Softmax"
    with pytest.raises(IrcError, match="legalize the model first"):
        xla.compile(model, "main", {})


def test_symbolic_sizes_are_refused(xla):
    from irc.ir.dims import symbol

    model = Model("symbolic")
    build.function(model, "main", [("x", TensorType(f32, (symbol("B"),)))], lambda b, x: b.negate(x))
    with pytest.raises(IrcError, match="specialize the model first"):
        xla.compile(model, "main", {})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("xla{platform=nowhere}", "no platform 'nowhere'"),
        ("xla{platform=cpu,device=99}", "there is no number 99"),
        ("xla{optimization_level=7}", "must be -1 to 3"),
    ],
)
def test_options_that_cannot_be(spec, message):
    with pytest.raises(IrcError, match=message):
        targets.get(spec).device


def test_what_there_is(xla):
    assert "cpu:0" in xla.devices()
    assert xla.versions()["platform"] == "cpu"
    assert xla.spec == "xla"
