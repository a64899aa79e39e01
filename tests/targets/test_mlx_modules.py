"""Emitted MLX modules: how they read, that they run without irc, threads, devices, narrow types, loops, artifacts."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

from irc import targets
from irc.ir import build, dtypes
from irc.ir.dims import symbol
from irc.ir.errors import IrcError
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.ir.types import tensor
from irc.runtime.artifact import load, read_manifest
from irc.runtime.executable import Executable
from irc.runtime.lower import lower
from irc.runtime.report import Report

B = symbol("B")


@pytest.fixture(scope="module")
def mlx():
    return targets.get("mlx{compile=off}")


def weights(*dims):
    return np.random.default_rng(sum(dims)).standard_normal(dims).astype(np.float32)


def network():
    """Two convolutions with a residual, pooling, and a classifier."""
    model = Model("network")

    def body(b, x):
        w = b.constant(weights(8, 3, 3, 3), name="conv1.weight")
        bias = b.constant(weights(12), name="conv2.bias")
        h = b.Conv(x, w, strides=(2, 2), dilations=(1, 1), pads=((1, 1), (1, 1)), group=1, name="/conv1/Conv_output_0")
        h = b.Relu(h, name="relu")
        w = b.constant(weights(12, 8, 3, 3), name="conv2.weight")
        h = b.Conv(h, w, bias, strides=(1, 1), dilations=(1, 1), pads=((0, 1), (1, 1)), group=1, name="conv2")
        h = b.add(h, b.Relu(h, name="relu2"), name="sum")
        h = b.MaxPool(h, kernel_shape=(2, 2), strides=(2, 2), dilations=(1, 1), pads=((0, 0), (0, 0)), name="pool")
        h = b.reshape(b.GlobalAveragePool(h), dims=(B, 12))
        h = b.Gemm(h, b.constant(weights(10, 12), name="fc.weight"), b.constant(weights(10), name="fc.bias"),
                   transpose_b=True, name="logits")  # fmt: skip
        return {"probabilities": b.Softmax(h, axis=1)}

    build.function(model, "main", [("x", tensor(dtypes.f32, B, 3, 12, 12))], body)
    return model


def compiled(mlx, model):
    return mlx.compile(lower(model, "main", mlx, {}, Report()), "main", {})


def test_a_convolutional_network_reads_as_written_by_hand(mlx):
    text = compiled(mlx, network()).source
    main = text[text.index("def main") : text.index("def prepare")].splitlines()
    for line in (
        "    B = x.shape[0]",
        '    conv1_Conv_output_0 = mx.conv2d(x.transpose(0, 2, 3, 1), w["conv1.weight"], stride=2, padding=1)',
        "    relu = mx.maximum(conv1_Conv_output_0, 0.0)",
        '    conv2 = mx.conv_general(relu, w["conv2.weight"], padding=([0, 1], [1, 1])) + w["conv2.bias"]',
    ):
        assert line in main
    assert text.count(".transpose(0, 2, 3, 1)") == 2, "one change of layout at the input, one of the weights at load"
    assert ".transpose(0, 3, 1, 2)" not in text
    assert "int(" not in text
    assert '    for name in ("conv1.weight", "conv2.weight"):' in text


def test_modules_are_clean_and_short(mlx, tmp_path):
    from mlx_composites import rows

    worst = {}
    for name, signature, body, _ in rows():
        model = Model(name)
        build.function(model, "main", signature, body)
        legal = lower(model, "main", mlx, {}, Report())
        text = mlx.compile(legal, "main", {}).source
        tree = ast.parse(text)
        imported = {a.name for n in tree.body if isinstance(n, ast.Import) for a in n.names}
        assert imported <= {"mlx.core", "math"}, name
        assert not any(isinstance(n, ast.ImportFrom) for n in ast.walk(tree)), name
        main = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "main")
        nodes = sum(1 for _ in legal.nodes())
        statements = sum(isinstance(n, ast.stmt) for n in ast.walk(main)) - 4  # def, docstring, sizes, return
        worst[name] = (statements, nodes)
        (tmp_path / f"{name}.py").write_text(text)
    total = [sum(column) for column in zip(*worst.values(), strict=True)]
    assert total[0] <= 1.3 * total[1], "statements and nodes of all models together"
    assert all(s <= 1.3 * n + 3 for s, n in worst.values()), worst
    run = [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length=120", "--target-version=py311"]
    done = subprocess.run(
        [*run, "--select=E,F,W,I,B,UP,C4,PIE", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_an_artifact_runs_without_irc(tmp_path):
    model = network()
    exe = Executable(model, targets.get("mlx{compile=off}"))
    x = weights(2, 3, 12, 12)
    (wanted,) = exe(x)
    exe.save(tmp_path / "artifact")
    np.save(tmp_path / "x.npy", x)
    (row,) = read_manifest(tmp_path / "artifact")["programs"]
    script = (
        "import sys; sys.path.insert(0, sys.argv[1] + '/artifact/' + sys.argv[2])\n"
        "import main, numpy as np, mlx.core as mx\n"
        "w = main.load(sys.argv[1] + '/artifact/model.ir')\n"
        "np.save(sys.argv[1] + '/y.npy', np.array(main.main(mx.array(np.load(sys.argv[1] + '/x.npy')), w)))\n"
        "assert not any(m == 'irc' or m.startswith('irc.') for m in sys.modules)\n"
    )
    command = [sys.executable, "-I", "-c", script, str(tmp_path), row["folder"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wanted)
    folder = tmp_path / "artifact"
    again = load(folder, targets.get("mlx{compile=off}"), read_manifest(folder))
    np.testing.assert_array_equal(again(x)[0], wanted)
    assert again.load_count == 1
    assert again.compile_count == 0


def test_types_that_containers_store_as_bytes_are_decoded_by_load(mlx, tmp_path):
    arrays = {
        "doubles": np.linspace(0, 1, 12).reshape(3, 4),
        "codes": np.linspace(-3, 3, 12).reshape(3, 4).astype(ml_dtypes.float8_e4m3fn),
        "nibbles": (np.arange(12).reshape(3, 4) - 6).astype(ml_dtypes.int4),
    }
    model = Model("types")
    build.function(
        model, "main", [("i", tensor(dtypes.i32, 2))],
        lambda b, i: tuple(b.convert(b.take(b.constant(a, name=n), i), dtype=dtypes.f32) for n, a in arrays.items()),
    )  # fmt: skip
    exe = Executable(model, mlx)
    i = np.array([2, 0], np.int32)
    wanted = exe(i)
    for got, array in zip(wanted, arrays.values(), strict=True):
        np.testing.assert_array_equal(got, array[i].astype(np.float32))
    exe.save(tmp_path / "artifact")
    module: dict = {}
    (row,) = read_manifest(tmp_path / "artifact")["programs"]
    exec((tmp_path / "artifact" / row["folder"] / "main.py").read_text(), module)
    results = module["main"](mlx_array(i), module["load"](str(tmp_path / "artifact" / "model.ir")))
    for got, expected in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(np.array(got), expected)


def mlx_array(x):
    import mlx.core as mx

    return mx.array(x)


def test_one_program_in_many_threads(mlx):
    program = compiled(mlx, network())
    inputs = [weights(n % 3 + 1, 3, 12, 12) + n for n in range(8)]
    wanted = [program.run([x], True)[0] for x in inputs]
    wrong: list[int] = []

    def work(i):
        for _ in range(5):
            if not np.array_equal(program.run([inputs[i]], True)[0], wanted[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_compiled_programs_agree(mlx):
    model = Model("compiled")
    build.function(model, "main", [("x", tensor(dtypes.f32, B, 4))], lambda b, x: b.multiply(b.add(x, 1.0), x))
    on = targets.get("mlx{compile=on}")
    x = weights(3, 4)
    np.testing.assert_array_equal(compiled(on, model).run([x], True)[0], compiled(mlx, model).run([x], True)[0])


def test_the_default_device_is_left_alone(mlx):
    import mlx.core as mx

    before = mx.default_device()
    compiled(targets.get("mlx{device=cpu,compile=off}"), network()).run([weights(1, 3, 12, 12)], True)
    assert mx.default_device() == before


@pytest.mark.parametrize("dtype", [dtypes.bf16, dtypes.f8e4m3fn, dtypes.f4e2m1fn, dtypes.i4, dtypes.u2], ids=str)
def test_narrow_types_are_ml_dtypes_at_the_boundary(mlx, dtype):
    model = Model("narrow")
    build.function(model, "main", [("x", tensor(dtype, B))], lambda b, x: (x, b.add(x, x)))
    x = np.array([0, 1, 1, 0]).astype(dtype.numpy)
    same, twice = compiled(mlx, model).run([x], True)
    assert same.dtype == twice.dtype == dtype.numpy
    assert same.flags.writeable
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(twice, evaluate(model, [x])[1])


def test_results_stay_on_the_device_for_device_inputs(mlx):
    import mlx.core as mx

    exe = Executable(network(), mlx)
    (out,) = exe(mx.array(weights(1, 3, 12, 12)))
    assert isinstance(out, mx.array)
    assert mlx.dtype_of(out) is dtypes.f32
    np.testing.assert_array_equal(mlx.to_numpy(out), exe(weights(1, 3, 12, 12))[0])


def test_a_counted_loop_is_a_for_and_another_one_a_while(mlx):
    def counted(b, x):
        types = [tensor(dtypes.i64), x.type]
        cond = b.region(types, lambda b, i, h: b.compare(i, b.constant(5, dtypes.i64), direction="lt"))
        body = b.region(types, lambda b, i, h: (b.add(i, 1), b.multiply(h, 2.0)), ("i", "h"))
        return b.while_((b.constant(0, dtypes.i64), x), cond=cond, body=body)[1]

    def searching(b, x):
        types = [x.type]
        cond = b.region(types, lambda b, h: b.compare(b.reduce(h, axes=(0,), kind="max"), 100.0, direction="lt"))
        return b.while_((x,), cond=cond, body=b.region(types, lambda b, h: b.multiply(h, 2.0), ("h",)))

    x = np.array([1, 3], np.float32)
    rows = ((counted, "for _ in range(5):", 32), (searching, "while (h.max(axis=0) < 100.0).item():", 64))
    for body, head, wanted in rows:
        model = Model("loop")
        build.function(model, "main", [("x", tensor(dtypes.f32, 2))], body)
        program = compiled(mlx, model)
        assert head in program.source
        np.testing.assert_array_equal(program.run([x], True)[0], x * wanted)


def test_a_size_that_no_axis_has_by_itself(mlx):
    model = Model("halves")
    inputs = [("x", tensor(dtypes.f32, 2 * B + 1))]
    build.function(model, "main", inputs, lambda b, x: b.iota(dtype=dtypes.i32, dims=(B,), axis=0))
    program = compiled(mlx, model)
    np.testing.assert_array_equal(program.run([np.zeros(9, np.float32)], True)[0], np.arange(4))


def test_a_trap_raises_its_message(mlx):
    def body(b, x):
        trapped = b.region([], lambda b: b.trap(message="no such shape", results=(tensor(dtypes.f32, 2),)))
        positive = b.compare(b.reduce(x, axes=(0,), kind="sum"), 0.0, direction="gt")
        return b.if_(positive, then=b.region([], lambda b: x), else_=trapped)

    model = Model("trap")
    build.function(model, "main", [("x", tensor(dtypes.f32, 2))], body)
    program = mlx.compile(model, "main", {})
    np.testing.assert_array_equal(program.run([np.ones(2, np.float32)], True)[0], [1, 1])
    with pytest.raises(IrcError, match="no such shape"):
        program.run([-np.ones(2, np.float32)], True)


def test_options_and_refusals(mlx):
    with pytest.raises(IrcError, match="must be one of"):
        targets.get("mlx{compile=maybe}")
    model = Model("complex")
    build.function(model, "main", [("x", tensor(dtypes.c128, 2))], lambda b, x: b.negate(x))
    (node,) = model.nodes()
    assert mlx.claims(node) == "MLX has no c128"
    assert mlx.devices()[0] == "cpu"
    assert set(mlx.versions()) == {"mlx"}


def test_tracebacks_show_the_emitted_line(mlx):
    import traceback

    program = compiled(mlx, network())
    with pytest.raises(Exception) as caught:  # what MLX raises for a wrong shape is its own affair
        program.run([np.ones((1, 3), np.float32)], True)
    assert "mx.conv2d(x.transpose" in "".join(traceback.format_exception(caught.value))
