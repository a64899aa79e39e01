"""The ONNX target beyond single operators: run-time limits of slices, claims, nesting, calls, large constants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from irc.ir import build, dims, dtypes
from irc.ir.clone import clone_model
from irc.ir.data import SplatData
from irc.ir.errors import IrcError, UnsupportedError
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.ir.text import parse_model
from irc.ir.types import TensorType
from irc.passes.legalize import legalize
from irc.targets.onnx import kernels
from irc.targets.onnx.export import save_onnx
from irc.targets.onnx.lowering import TABLE
from irc.targets.onnx.target import MAX_DEPTH, OnnxTarget

N = dims.symbol("N")


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


def test_the_tables_name_operators_that_are_lowered():
    names = {name.split(":")[0] for table in (kernels.NOT_IN_ONNX, kernels.NOT_IN_RUNTIME) for name in table}
    assert names <= TABLE.entries.keys()


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
