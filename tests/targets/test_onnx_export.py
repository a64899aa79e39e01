"""The ONNX target beyond single operators: run-time limits of slices, claims, nesting, calls, large constants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from irc.frontends.onnx import import_onnx
from irc.ir import build, dims, dtypes
from irc.ir.clone import clone_model
from irc.ir.data import ArrayData, SplatData
from irc.ir.errors import IrcError, UnsupportedError
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.ir.text import parse_model
from irc.ir.types import TensorType
from irc.passes.legalize import legalize
from irc.targets.onnx import kernels
from irc.targets.onnx.border import CARRIERS
from irc.targets.onnx.export import save_onnx
from irc.targets.onnx.lowering import TABLE
from irc.targets.onnx.target import MAX_DEPTH, OnnxTarget
from irc.testing import check_target
from irc.testing.operators import model_of, run

M, N = dims.symbol("M"), dims.symbol("N")


def program(model: Model):
    legal = clone_model(model)
    legalize(legal, OnnxTarget())
    return OnnxTarget().compile(legal, "main", {})


def unary(name: str, dtype: dtypes.DType, **attributes) -> Model:
    model = Model("m")
    build.function(model, "main", [("x", TensorType(dtype, (2, 3)))], lambda b, x: b.apply(name, x, **attributes))
    return model


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize(
    "start, limit, stride",
    [
        (N - 1, dims.maximum(N - (2**63 - 1), -1), -1),
        (N - 1, dims.minimum(dims.maximum(N - 3, -1), 100), -1),
        (N - 1, dims.maximum(N - 4, -1), -2),
        (N - 1, dims.symbol("N") * 0 - 1, -1),
    ],
    ids=str,
)
def test_a_limit_of_minus_one_at_run_time_means_before_the_first(size, start, limit, stride):
    model = Model("m")
    build.function(
        model,
        "main",
        [("x", TensorType(dtypes.f32, (N,)))],
        lambda b, x: b.StridedSlice(x, starts=(start,), limits=(limit,), strides=(stride,)),
    )
    x = np.arange(size, dtype=np.float32)
    assert program(model).run([x], True)[0].tolist() == evaluate(model, [x])[0].tolist()


def test_calls_are_inlined():
    model = parse_model("""irc 1 vocabulary 1
model "m" {
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
    y, v = program(model).run([np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)], True)
    assert np.array_equal(y, np.full((2, 3), 2))
    assert np.array_equal(v, np.full((4, 3), 2))


@pytest.mark.parametrize("name", ["HardSwish", "HardSigmoid", "Elu", "Selu", "Celu", "Softsign"])
def test_composites_without_an_f64_kernel_are_decomposed(name):
    model = unary(name, dtypes.f64)
    x = np.linspace(-3, 3, 6).reshape(2, 3)
    np.testing.assert_allclose(program(model).run([x], True)[0], evaluate(model, [x])[0], rtol=1e-14)


@pytest.mark.parametrize("name", ["erf", "tan"])
def test_core_operators_without_a_kernel_are_refused_but_exported(name, tmp_path: Path):
    model = unary(name, dtypes.f64)
    with pytest.raises(UnsupportedError, match=f"cannot run {name}: ONNX Runtime has no f64 kernel"):
        program(model)
    save_onnx(model, tmp_path / "m.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "m.onnx"), full_check=True)


def test_what_the_schema_lacks_is_decomposed_in_files_too(tmp_path: Path):
    save_onnx(unary("Celu", dtypes.f16), tmp_path / "m.onnx")
    exported = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(exported, full_check=True)
    assert "Celu" not in {n.op_type for n in exported.graph.node}


A, BYTES = np.arange(8, dtype=np.float32).reshape(1, 4, 2, 1), np.ones((2, 0), np.uint8)
FOUND_BY_FUZZING = [
    ("reverse", [np.array(3.0)], {"axes": ()}),
    ("pad", [np.array(3, np.uint32), np.array(1, np.uint32)], {"low": (), "high": (), "interior": ()}),
    ("DepthToSpace", [A.astype(np.int32)], {"blocksize": 2}),
    ("GlobalMaxPool", [A.reshape(4, 2)], {}),
    ("GlobalLpPool", [np.zeros((1, 3, 0), np.float32)], {}),
    ("Shrink", [np.array([-(2**63), 2**63 - 1, 0])], {"bias": 0.0, "lambd": 0.5}),
    ("Shrink", [np.array([-0.34948872598581193])], {"bias": 0.0, "lambd": 0.0}),
    ("ReduceSumSquare", [np.array([-3, 2], np.int32)], {"axes": ()}),
    ("ReduceMean", [np.zeros((0, 2), np.float32)], {"axes": (0,)}),
    ("ReduceLogSum", [np.array([[0, 3]], np.int64)], {"axes": (0,)}),
    ("MeanVarianceNormalization", [np.full((1, 2, 2, 2), 3, np.float32)], {"axes": (0, 2, 3)}),
    ("InstanceNormalization", [A.reshape(4, 2), A[0, :2, 0, 0], A[0, :2, 0, 0]], {}),
    ("TopK", [np.array([33, 6, 6, 86, 49], np.uint8)], {"k": 3, "ordered": False}),
    ("Einsum", [(np.array([1, 2], np.uint32),)], {"equation": "x"}),
    ("Resize", [np.ones((2, 2), np.float64)], {"dims": (4, 4)}),
]


@pytest.mark.parametrize("found", FOUND_BY_FUZZING, ids=lambda c: f"{c[0]}-{'_'.join(map(str, c[2].values()))}")
def test_what_onnx_runtime_does_otherwise_is_decomposed(found):
    """The session gives what the reference does; the file holds the operator itself, where ONNX has it."""
    name, operands, attributes = found
    model, inputs = model_of(name, *operands, **attributes)
    got = program(model).run(inputs, True)
    want = run(name, *operands, **attributes)
    for a, b in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-5 if a.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize(
    "name, operands, attributes",
    [
        ("LRN", [A.reshape(2, 4, 1)], {"size": 1}),
        ("LRN", [A], {"size": 2}),
        ("MatMulInteger", [BYTES, BYTES.T, None, None], {}),
    ],
)
def test_what_onnx_runtime_cannot_do_is_refused(name, operands, attributes):
    with pytest.raises(UnsupportedError):
        program(model_of(name, *operands, **attributes)[0])


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.uint64])
def test_division_by_what_may_be_0_chooses_in_a_wider_type(dtype):
    """ONNX Runtime's Where takes none of these."""
    x, y = np.array([7, 8, np.iinfo(dtype).max], dtype), np.array([2, 0, 1], dtype)
    model = model_of("divide", x, y)[0]
    assert np.array_equal(program(model).run([x, y], True)[0], run("divide", x, y))


def test_the_tables_name_operators_that_are_lowered():
    names = {name.split(":")[0] for name in kernels.NOT_IN_RUNTIME}
    assert names <= TABLE.entries.keys()


def test_what_is_claimed_is_right_but_for_the_known_deviations():
    """Every case of every core operator and type; those that stand in `deviations` must deviate."""
    report = check_target("onnx")
    assert sum(report.ran.values()) > 1250
    assert report.deviating.keys() == OnnxTarget.deviations.keys()
    with pytest.raises(UnsupportedError, match="ONNX Runtime has no kernels for c64"):
        program(unary("reshape", dtypes.c64, dims=(6,)))


@pytest.mark.parametrize("kind", list(CARRIERS), ids=str)
def test_what_python_cannot_pass_crosses_the_border_in_a_wider_type(kind):
    """All values, infinities and NaN of narrow types come back as they went in, bit for bit."""
    codes = np.arange(256 if kind.bits == 8 else 16 if kind.bits == 4 else 65536)
    x = (codes.astype(np.uint8) if kind.bits <= 8 else codes.astype(np.uint16)).view(kind.numpy)
    model = Model("m")
    build.function(model, "main", [("x", TensorType(kind, (len(x),)))], lambda b, v: b.optimization_barrier(v))
    (out,) = program(model).run([x], True)
    assert out.dtype == x.dtype
    same = (out.view(np.uint8) == x.view(np.uint8)).reshape(len(x), -1)
    assert (same.all(axis=1) | np.isnan(x.astype(np.float32))).all()


def test_select_of_bools():
    model = Model("m")
    flag = TensorType(dtypes.bool_, (4,))
    build.function(model, "main", [("p", flag), ("x", flag), ("y", flag)], lambda b, p, x, y: b.select(p, x, y))
    p, x, y = np.array([1, 1, 0, 0], bool), np.array([1, 0, 1, 0], bool), np.array([1, 1, 0, 1], bool)
    assert program(model).run([p, x, y], True)[0].tolist() == [True, False, False, True]


def nested(levels: int) -> Model:
    inner = "%n = negate(%x) : f32[3] yield %n"
    for i in range(levels):
        captured = "%p, %x" if i else "%x"
        inner = (
            f"%r{i} = if(%p) captures({captured}) : f32[3] then {{ {inner} }} else {{ yield %x }} "
            f"{'yield' if i < levels - 1 else 'return'} %r{i}"
        )
    return parse_model(
        f'irc 1 vocabulary 1\nmodel "m" {{\n  func @main(%x: f32[3], %p: bool[]) -> (%y: f32[3]) {{ {inner} }}\n}}\n'
    )


def test_graphs_nest_as_deep_as_protobuf_reads():
    x = np.ones(3, np.float32)
    assert program(nested(MAX_DEPTH)).run([x, np.array(True)], True)[0].tolist() == [-1, -1, -1]
    with pytest.raises(UnsupportedError, match=f"nest more than {MAX_DEPTH} deep"):
        program(nested(MAX_DEPTH + 1))


def test_large_uniform_constants_are_made_by_a_node():
    model = Model("m")
    fill = model.add_constant("fill", SplatData(2.5, dtypes.f32, (1000, 1000)))
    build.function(model, "main", [("x", TensorType(dtypes.f32, (1000,)))], lambda b, x: (b.add(x, fill), fill))
    made = program(model)
    assert len(made._proto.SerializeToString()) < 2000
    total, alone = made.run([np.ones(1000, np.float32)], True)
    assert total.shape == (1000, 1000)
    assert set(total.reshape(-1).tolist()) == {3.5}
    assert set(alone.reshape(-1).tolist()) == {2.5}


def test_a_constant_that_no_tensor_can_hold_is_refused():
    model = Model("m")
    fill = model.add_constant("fill", SplatData(1.0, dtypes.f32, (9_999_999_999,)))
    build.function(model, "main", [("i", TensorType(dtypes.i64, ()))], lambda b, i: b.take(fill, i, axis=0))
    with pytest.raises(IrcError, match=r"constant 'fill' of type f32\[9999999999\] takes 39999999996 bytes"):
        program(model)


def test_dense_constants_that_protobuf_cannot_hold_are_refused(monkeypatch, tmp_path: Path):
    """One tensor beyond the limit cannot be written; many, together beyond it, go into a file but not to a session."""
    model = Model("m")
    weights = [np.arange(1000 * i, 1000 * i + 1000, dtype=np.float32) for i in range(2)]
    held = [model.add_constant(f"w{i}", ArrayData(w)) for i, w in enumerate(weights)]
    inputs = [("x", TensorType(dtypes.f32, (1000,)))]
    build.function(model, "main", inputs, lambda b, x: b.add(b.add(x, held[0]), held[1]))
    monkeypatch.setattr("irc.targets.onnx.initializers.LARGEST", 3999)
    with pytest.raises(IrcError, match=r"constant 'w0' of type f32\[1000\] takes 4000 bytes; expected at most 3999"):
        save_onnx(model, tmp_path / "m.onnx")
    monkeypatch.setattr("irc.targets.onnx.initializers.LARGEST", 4000)
    monkeypatch.setattr("irc.targets.onnx.target.LARGEST", 4000)  # below SHARED_FROM, so both stand in the model
    save_onnx(model, tmp_path / "m.onnx")
    with pytest.raises(IrcError, match="8000 bytes of constants of 1048576 bytes or less; expected at most 4000"):
        program(model)


@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.bf16, dtypes.u4, dtypes.bool_], ids=str)
def test_large_constants_go_beside_the_model(dtype, monkeypatch, tmp_path: Path):
    """A file of weights holds the very bytes, aligned, and reads back equal; a session takes them where they are."""
    rng = np.random.default_rng(0)
    weights = [rng.integers(0, 2 if dtype.is_bool else 16, (3, 999)).astype(dtype.numpy) for _ in range(2)]
    model = Model("m")
    held = [model.add_constant(f"w{i}", ArrayData(w, dtype)) for i, w in enumerate(weights)]
    inputs = [("i", TensorType(dtypes.i64, (2,)))]
    read = dtypes.i8 if dtype is dtypes.u4 else dtype  # Gather takes no 4-bit integers
    build.function(model, "main", inputs, lambda b, i: tuple(b.take(b.convert(w, dtype=read), i, axis=0) for w in held))
    monkeypatch.setattr("irc.targets.onnx.export.BESIDE_ABOVE", 0)
    monkeypatch.setattr("irc.targets.onnx.target.SHARED_FROM", 1000)
    save_onnx(model, tmp_path / "m.onnx")
    tensors = [t for t in onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.initializer if "w" in t.name]
    assert all(t.data_location == onnx.TensorProto.EXTERNAL for t in tensors)
    offsets = [int(e.value) for t in tensors for e in t.external_data if e.key == "offset"]
    assert offsets == [0, 12288 if dtype is dtypes.f32 else 8192 if dtype is dtypes.bf16 else 4096]
    again = import_onnx(tmp_path / "m.onnx")
    for i, w in enumerate(weights):
        assert again.constants[f"w{i}"].data.equals(ArrayData(w, dtype))
    if dtype in (dtypes.bf16, dtypes.u4):
        return  # ONNX Runtime's Python interface passes neither out
    i = np.array([2, 0])
    made = program(model)
    assert [r.tolist() for r in made.run([i], True)] == [w[i].tolist() for w in weights]
    assert sum(len(t.raw_data) for t in made._proto.graph.initializer) < 100
    (tmp_path / "saved").mkdir()
    made.save(tmp_path / "saved")
    loaded = OnnxTarget().load(tmp_path / "saved", model, "main", {})
    assert [r.tolist() for r in loaded.run([i], True)] == [w[i].tolist() for w in weights]


def test_sizes_are_taken_from_the_values_that_have_them(tmp_path: Path):
    """A size is asked of an earlier value that has it, else computed; either way once."""

    def body(b, x):
        half = b.slice(x, starts=(0,), limits=(dims.floordiv(N + 1, 2),), strides=(1,))
        grid = b.broadcast_in_dim(half, dims=(7, dims.floordiv(N + 1, 2)), broadcast_dimensions=(1,))
        wide = b.broadcast_in_dim(b.exponential(half), dims=(7, dims.floordiv(N + 1, 2)), broadcast_dimensions=(1,))
        return b.add(grid, wide)

    model = Model("m")
    build.function(model, "main", [("x", TensorType(dtypes.f32, (N,)))], body)
    path = tmp_path / "m.onnx"
    save_onnx(model, path)
    kinds = [node.op_type for node in onnx.load(path).graph.node]
    assert kinds.count("Div") == 1, kinds  # the slice's own limit; nothing has that size before it
    assert kinds.count("Shape") == 1, kinds
    assert kinds.count("Concat") == 1, kinds
    x = np.arange(5, dtype=np.float32)
    assert program(model).run([x], True)[0].tolist() == evaluate(model, [x])[0].tolist()


def test_a_size_that_is_a_result_keeps_the_name_that_later_nodes_read():
    def body(b, x):
        size = b.dimensions(dims=(N,))
        return b.broadcast_in_dim(b.tanh(x), dims=(N, N), broadcast_dimensions=(0,)), size

    model = Model("m")
    build.function(model, "main", [("x", TensorType(dtypes.f32, (N,)))], body)
    x = np.arange(3, dtype=np.float32)
    for got, want in zip(program(model).run([x], True), evaluate(model, [x]), strict=True):
        assert got.tolist() == want.tolist()


@pytest.mark.parametrize(
    ("dims_of_x", "wanted", "kind"),
    [
        ((M, N, 6), (M, 1, N, 1, 6), "Unsqueeze"),
        ((1, M, 1, N, 6), (M, N, 6), "Squeeze"),
        ((M, N, 6), (M, N, 3, 2), "Reshape"),
        ((M, 1, N), (M, 1, 1, N), "Unsqueeze"),
        ((2, 3, N), (6, N), "Reshape"),
    ],
)
@pytest.mark.parametrize("sizes", [(2, 3), (1, 4), (5, 0)])
def test_no_shape_is_computed_for_dims_that_stay(dims_of_x, wanted, kind, sizes):
    """With several symbolic dims a computed shape takes a Shape node for each, and a Concat."""
    model = Model("m")
    build.function(
        model, "main", [("x", TensorType(dtypes.f32, dims_of_x))], lambda b, x: b.negate(b.reshape(x, dims=wanted))
    )
    found = program(model)
    assert [n.op_type for n in found._proto.graph.node] == [kind, "Neg"]
    size = dict(zip("MN", sizes, strict=True))
    x = np.random.default_rng(0).standard_normal([size.get(str(d), d) for d in dims_of_x]).astype(np.float32)
    (got,) = found.run([x], as_numpy=True)
    np.testing.assert_array_equal(got, -x.reshape([size.get(str(d), d) for d in wanted]))
