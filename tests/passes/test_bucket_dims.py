"""Sizes that are rounded up: whatever lies behind what counts, that is what operators give for the true sizes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import build as building
from irc.ir import dims, dtypes, types
from irc.ir.dtypes import DType
from irc.ir.errors import InferenceError
from irc.ir.model import Model
from irc.ir.operators import Trait, all_operators
from irc.ir.reference import evaluate
from irc.ir.types import TensorType
from irc.ir.verify import check as verify
from irc.passes.bucket_dims import bucket_dims
from irc.passes.specialize import specialize
from irc.runtime.buckets import Rounding, capacity, shape_of
from irc.testing.cases import check
from irc.testing.targets import operator_cases

N = dims.symbol("N")
f32, i32, i64 = dtypes.f32, dtypes.i32, dtypes.i64
rng = np.random.default_rng(7)


def garbage(shape: Sequence[int], dtype: DType) -> np.ndarray:
    """What is likeliest to spoil a result: NaN, infinities, extremes, zeros."""
    if dtype.is_bool:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        ends = [int(dtype.min_value()), int(dtype.max_value()), 0, 1]
        return np.array(rng.choice(np.array(ends, object), shape)).astype(dtype.numpy).reshape(shape)
    pool = np.array([np.nan, np.inf, -np.inf, 1e30, 0.0, -3.0])
    with np.errstate(all="ignore"):
        out = rng.choice(pool, shape) + (1j * rng.choice(pool, shape) if dtype.is_complex else 0)
        return np.array(out).astype(dtype.numpy).reshape(shape)


def model_of(body: Callable[..., Any], given: Sequence[TensorType]) -> Model:
    model = Model("of N")
    building.function(model, "main", [(f"x{i}", t) for i, t in enumerate(given)], body, dims=["N"])
    return model


def bucketed(body: Callable[..., Any], given: Sequence[TensorType]) -> Any:
    return bucket_dims(model_of(body, given), "main", ["N"])


def with_room(done: Any, arrays: Sequence[np.ndarray], true: int, room: int, target: str) -> list[np.ndarray] | None:
    """Results for a capacity, cut to the true size; None if the model cannot have that capacity."""
    function, size = done.model.main, {"N": true + room}
    if Rounding(function).fault({"N": true}, size) is not None:
        return None
    special = specialize(done.model, "main", [types.substitute(v.type, size) for v in function.inputs], known=size)
    special.main.input_attributes = []  # an executable would fill true sizes in by itself
    filled = []
    for array, value in zip(arrays, function.inputs, strict=False):
        place = garbage(shape_of(value.type.dims, size), value.type.dtype)
        place[tuple(slice(0, n) for n in array.shape)] = array
        filled.append(place)
    filled.append(np.array(true))
    got = evaluate(special, filled) if target == "reference" else irc.compile(special, target=target)(*filled)
    rows = zip(got, Rounding(function).outputs, strict=True)
    return [
        np.asarray(g) if d is None else np.asarray(g)[tuple(slice(0, n) for n in shape_of(d, {"N": true}))]
        for g, d in rows
    ]


NARROW = (dtypes.f32, dtypes.i32, dtypes.u64, dtypes.bool_, dtypes.f4e2m1fn)
CASES = [c for c in operator_cases() if c.arrays and c.dtypes[0] in NARROW]


def cases_of(op: str) -> list[Any]:
    return [c for c in CASES if c.op == op]


@pytest.mark.parametrize("op", sorted({c.op for c in CASES}))
def test_core_operators_with_each_of_their_sizes_rounded_up(op: str):
    """All cases of the targets' operator tests: every size of theirs in turn is N, followed by what spoils most."""
    done = 0
    for case in cases_of(op):
        for size in sorted({d for a in case.arrays for d in a.shape if d > 1}):
            rows = zip(case.arrays, case.dtypes, strict=True)
            given = [TensorType(t, tuple(N if d == size else d for d in a.shape)) for a, t in rows]
            try:
                out = bucketed(case.body, given)
            except InferenceError:
                continue  # the case itself needs the number
            if not out.dims:
                assert out.exact["N"]
                continue
            verify(out.model)
            try:
                got = with_room(out, case.arrays, size, 3, "reference")
            except InferenceError:
                continue  # a number in the case
            if got is not None:
                check(case, got, case.expected(case.model()))
                done += 1
    assert done or op in ("cholesky", "select_and_scatter", "triangular_solve", "fft", "broadcast_in_dim")


T = 6


def _floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def _attention(b: Any, q: Any, k: Any, v: Any) -> Any:
    return b.Attention(q, k, v, scale=0.5, causal=True)


def _loop(b: Any, x: Any) -> Any:
    """Doubles x as often as it is long, up to the true length."""
    zero, length = b.constant(0, i64), b.dimensions(dims=(N,), scalar=True)
    state = [TensorType(i64, ()), x.type]
    cond = b.region(state, lambda b, i, y: b.compare(i, length, direction="lt"))
    body = b.region(state, lambda b, i, y: (b.add(i, 1), b.add(y, y)))
    return b.while_((zero, x), cond=cond, body=body)[1]


def _choice(b: Any, x: Any) -> Any:
    total = b.reduce(x, axes=(0, 1), kind="sum")
    then = b.region([], lambda b: b.ReduceMean(x, axes=(0,)))
    other = b.region([], lambda b: b.ReduceMax(x, axes=(0,)))
    return b.if_(b.compare(total, 0, direction="gt"), then=then, else_=other)


_I = np.array([-1, 0, 5, -6, 2], np.int64)
# Axes of T elements have the size N.
CELLS = {
    "mean": (lambda b, x: b.ReduceMean(x, axes=(0, 1)), [_floats(T, 3)]),
    "mean of integers": (lambda b, x: b.ReduceMean(x, axes=(0,)), [np.arange(T, dtype=np.int32) - 9]),
    "log-sum-exp": (lambda b, x: b.ReduceLogSumExp(x, axes=(0,)), [_floats(T, 2)]),
    "l2": (lambda b, x: b.ReduceL2(x, axes=(1,)), [_floats(2, T)]),
    "softmax": (lambda b, x: b.Softmax(x, axis=0), [_floats(T, 2)]),
    "softmax of -inf": (lambda b, x: b.Softmax(x, axis=0), [np.full(T, -np.inf, np.float32)]),
    "log-softmax": (lambda b, x: b.LogSoftmax(x, axis=-1), [_floats(2, T)]),
    "hardmax": (lambda b, x: b.Hardmax(x, axis=0), [_floats(T, 2)]),
    "greatest of -inf": (lambda b, x: b.ArgMax(x, axis=0), [np.full(T, -np.inf, np.float32)]),
    "greatest with NaN": (lambda b, x: b.ArgMax(x, axis=0), [np.array([1, np.nan, 3, np.nan, 0, 9], np.float32)]),
    "least of the greatest": (lambda b, x: b.ArgMin(x, axis=0), [np.full(T, 2**31 - 1, np.int32)]),
    "running sum": (lambda b, x: b.CumSum(x, axis=0), [_floats(T, 2)]),
    "running sum backwards": (lambda b, x: b.CumSum(x, axis=0, reverse=True, exclusive=True), [_floats(T, 2)]),
    "running product": (lambda b, x: b.CumProd(x, axis=0, exclusive=True), [_floats(T)]),
    "division by nothing": (
        lambda b, x, y: b.reduce(b.divide(x, y), axes=(0,), kind="sum"),
        [np.arange(T, dtype=np.int32) * 7, np.arange(1, T + 1, dtype=np.int32)],
    ),
    "remainder": (lambda b, x, y: b.Mod(x, y), [np.arange(T, dtype=np.int32) - 3, np.arange(1, T + 1, dtype=np.int32)]),
    "joined": (lambda b, x, y: b.concatenate((x, y, x), axis=0), [_floats(T, 2), _floats(3, 2)]),
    "joined and summed": (lambda b, x: b.CumSum(b.concatenate((x, x), axis=1), axis=1), [_floats(2, T)]),
    "split": (lambda b, x: b.Split(x, axis=0, sizes=(N - 2, 2)), [_floats(T, 2)]),
    "the last": (lambda b, x: b.slice(x, starts=(N - 1, 0), limits=(N, 2), strides=(1, 1)), [_floats(T, 2)]),
    "the second half": (lambda b, x: b.slice(x, starts=(N // 2,), limits=(2 * (N // 2),), strides=(1,)), [_floats(T)]),
    "every other": (lambda b, x: b.slice(x, starts=(1,), limits=(N,), strides=(2,)), [_floats(T)]),
    "taken from the end": (lambda b, x, i: b.take(x, i, axis=0), [_floats(T, 2), _I]),
    "taken along": (lambda b, x, i: b.take_along_axis(x, i, axis=0), [_floats(T), np.array([-1, 9, 3, -6, 0, 5])]),
    "put": (
        lambda b, x, i, u: b.put_along_axis(x, i, u, axis=0, kind="sum"),
        [_floats(T), np.array([-1, 9, 3, -7, 0, 3]), _floats(T)],
    ),
    "put into what is exact": (
        lambda b, x, i, u: b.put_along_axis(x, i, u, axis=0),
        [_floats(4), np.array([-1, 9, 3, -6, 0, 3]), _floats(T)],
    ),
    "gathered": (
        lambda b, x, i: b.GatherND(x, i),
        [_floats(T, 3), np.array([[-1, 0], [7, 1], [0, -3], [2, 2], [1, 1], [5, 5]])],
    ),
    "scattered": (
        lambda b, x, i, u: b.ScatterND(x, i, u, kind="sum"),
        [_floats(4, 2), np.array([[-1], [0], [3], [9], [2], [3]]), _floats(T, 2)],
    ),
    "scattered into it": (
        lambda b, x, i, u: b.ScatterND(x, i, u),
        [_floats(T, 2), np.array([[-1], [6]]), _floats(2, 2)],
    ),
    "one hot": (
        lambda b, i: b.OneHot(i, b.constant(np.array([0, 1], np.float32)), depth=N),
        [np.array([-1, 0, 5, 6, -7, 2])],
    ),
    "block": (lambda b, x, s: b.dynamic_slice(x, (s,), sizes=(N - 2,)), [_floats(T), np.array(9)]),
    "update": (lambda b, x, u, s: b.dynamic_update_slice(x, u, (s,)), [_floats(T), _floats(2), np.array(9)]),
    "best three": (
        lambda b, x: b.TopK(x, k=3, axis=0),
        [np.array([-np.inf, 1, -np.inf, np.nan, -np.inf, 1], np.float32)],
    ),
    "least three": (
        lambda b, x: b.TopK(x, k=5, axis=0, largest=False),
        [np.array([np.inf, np.nan, 1, np.nan, np.inf, 2], np.float32)],
    ),
    "sorted": (
        lambda b, x: b.sort((x, b.iota(dtype=i64, dims=(N,), axis=0)), axis=0, kind="descending"),
        [np.array([-np.inf, 1, -np.inf, np.nan, -2, 1], np.float32)],
    ),
    "places": (lambda b, x: b.NonZero(x, count=N), [np.ones(4, np.float32)]),
    "reversed": (lambda b, x: b.reverse(x, axes=(0, 1)), [_floats(T, 3)]),
    "mirrored edges": (lambda b, x: b.PadMode(x, low=(2,), high=(2,), mode="reflect"), [_floats(T)]),
    "padded": (lambda b, x: b.pad(x, 5.0, low=(1,), high=(2,), interior=(1,)), [_floats(T)]),
    "triangle": (lambda b, x: b.Trilu(x, k=N - 5), [_floats(T, T)]),
    "product": (lambda b, x, y: b.MatMul(x, y), [_floats(2, T), _floats(T, 3)]),
    "product of batches": (lambda b, x, y: b.MatMul(x, y), [_floats(T, 2, 3), _floats(3, T)]),
    "gemm": (lambda b, x, y, c: b.Gemm(x, y, c, transpose_a=True), [_floats(T, 2), _floats(T, 3), _floats(3)]),
    "einsum": (lambda b, x, y: b.Einsum((x, y), equation="bi,bj->ij"), [_floats(T, 2), _floats(T, 3)]),
    "convolution": (
        lambda b, x, w: b.Conv(x, w, None, strides=(2,), dilations=(1,), pads=((1, 1),)),
        [_floats(1, 2, T), _floats(3, 2, 3)],
    ),
    "transposed convolution": (
        lambda b, x, w: b.ConvTranspose(x, w, None, strides=(2,), dilations=(1,), pads=((1, 1),), output_padding=(0,)),
        [_floats(1, 2, T), _floats(2, 3, 3)],
    ),
    "greatest in windows": (
        lambda b, x: b.MaxPool(x, kernel_shape=(3,), strides=(2,), dilations=(1,), pads=((1, 1),)),
        [_floats(1, 2, T)],
    ),
    "mean in windows": (
        lambda b, x: b.AveragePool(x, kernel_shape=(3,), strides=(1,), dilations=(1,), pads=((1, 1),)),
        [_floats(1, 2, T)],
    ),
    "mean of all": (lambda b, x: b.GlobalAveragePool(x), [_floats(1, 2, T)]),
    "layer normalization": (
        lambda b, x: b.LayerNormalization(x, b.full(1.0, f32, (1,)), None, axis=0)[0],
        [_floats(T)],
    ),
    "instance normalization": (lambda b, x, s: b.InstanceNormalization(x, s, s), [_floats(1, 2, T), _floats(2)]),
    "attention": (_attention, [_floats(1, 2, T, 4), _floats(1, 2, T, 4), _floats(1, 2, T, 3)]),
    "lstm": (
        lambda b, x, w, r: b.LSTM(x, w, r, hidden_size=3, direction="reverse"),
        [_floats(T, 2, 2), _floats(1, 12, 2), _floats(1, 12, 3)],
    ),
    "gru of a batch": (
        lambda b, x, w, r: b.GRU(x, w, r, hidden_size=3),
        [_floats(2, T, 2), _floats(1, 9, 2), _floats(1, 9, 3)],
    ),
    "larger image": (lambda b, x: b.Resize(x, dims=(1, 1, 2 * N), mode="linear"), [_floats(1, 1, T)]),
    "depth to space": (lambda b, x: b.DepthToSpace(x, blocksize=2), [_floats(1, 4, T, 2)]),
    "loop": (_loop, [_floats(T)]),
    "choice": (_choice, [_floats(T, 2)]),
    "transform of rows": (lambda b, x: b.fft(x, fft_type="rfft", fft_length=(4,)), [_floats(T, 4)]),
    "an inner axis joined": (lambda b, x: b.reshape(x, dims=(3 * N,)), [_floats(3, T)]),
    "an inner axis cut": (lambda b, x: b.reshape(x, dims=(2, N, N)), [_floats(2, T * T)]),
    "joined anew": (lambda b, x: b.reshape(x, dims=(2 * N, N)), [_floats(T, 2, T)]),
    "between others": (lambda b, x: b.reshape(x, dims=(2, 1, N * N, 3)), [_floats(2, T, T, 3)]),
    "repeats": (lambda b, x: b.Tile(x, repeats=(2, 3)), [_floats(T, 2)]),
    "rows that repeat": (lambda b, x: b.Tile(x, repeats=(1, 3)), [_floats(T, 2)]),
    "as often": (lambda b, x, y: b.Tile(x, repeats=(N, 1)), [_floats(2, 3), _floats(T)]),
    "every other from the middle on": (
        lambda b, x: b.slice(x, starts=(N // 2, 0), limits=(N, 2), strides=(2, 1)), [_floats(T, 2)],
    ),
    "no proof that it grows": (lambda b, x: b.slice(x, starts=(N // 3,), limits=(N,), strides=(1,)), [_floats(T)]),
    "padded by as much": (
        lambda b, x: b.pad(x, 5.0, low=(N, 1), high=(2, 0), interior=(1, 0)), [_floats(T, 2)],
    ),
    "exact ones padded": (lambda b, x, y: b.pad(x, 5.0, low=(N,), high=(N,), interior=(0,)), [_floats(3), _floats(T)]),
    "part of a cache": (
        lambda b, x, u, s: b.dynamic_update_slice(x, u, (b.constant(0, i64), s, b.constant(1, i64))),
        [_floats(2, 20, 4), _floats(2, T, 2), np.array(5)],
    ),
    "part of a cache at its end": (
        lambda b, x, u, s: b.dynamic_update_slice(x, u, (s,)), [_floats(20), _floats(T), np.array(99)],
    ),
    "the last of equals": (
        lambda b, x: b.ArgMax(x, axis=0, select_last_index=True), [np.full(T, -np.inf, np.float32)],
    ),
    "matrices": (lambda b, x: b.Inverse(x), [_floats(T, 2, 2)]),
    "random bits": (lambda b, k: b.RandomUniform(k, dims=(N, 3)), [np.array([1, 2], np.uint32)]),
}


_MASK = rng.random((1, 1, 1, T)) < 0.7
_MASK[..., 0] = True
_V = [_floats(4) for _ in range(3)]
_Q = rng.integers(0, 256, (5, 32)).astype(np.uint8)
_BLOCKS = _floats(5, 2)
_SQUARE = {"strides": (1, 1), "dilations": (1, 1), "pads": ((1, 1), (1, 1))}
_WINDOW = {"kernel_shape": (3, 3), "strides": (2, 2), "dilations": (1, 1)}
_SAME = ((1, 1), (1, 1))
# Composites that stay whole: the body's last operator, with sizes N in the places that its rule has to think of.
WHOLE = {
    "LayerNormalization": [
        (lambda b, x, s: b.LayerNormalization(x, s, s, axis=-1)[0], [_floats(2, T, 4), _V[0]]),
        (lambda b, x, s: b.LayerNormalization(x, s, None, axis=2)[0], [_floats(T, T, 4), _floats(T, 1, 4)]),
    ],
    "RMSNormalization": [(lambda b, x, s: b.RMSNormalization(x, s, axis=-1), [_floats(2, T, 4), _V[0]])],
    "BatchNormalization": [
        (lambda b, x, s, m, v: b.BatchNormalization(x, s, s, m, b.abs(v)), [_floats(T, 4, T), *_V]),
        (lambda b, x, s: b.BatchNormalization(x, s, s, s, b.abs(s)), [_floats(2, T), _floats(T)]),
    ],
    "InstanceNormalization": [(lambda b, x, s: b.InstanceNormalization(x, s, s), [_floats(T, 4, 5), _V[0]])],
    "GroupNormalization": [
        (lambda b, x, s: b.GroupNormalization(x, s, s, num_groups=2), [_floats(T, 4, 5), _V[0]])
    ],
    "LpNormalization": [(lambda b, x, p=p: b.LpNormalization(x, axis=0, p=p), [_floats(T, 2)]) for p in (1, 2)],
    "LRN": [(lambda b, x: b.LRN(x, size=3), [_floats(2, T, 3)]), (lambda b, x: b.LRN(x, size=3), [_floats(T, 4, T)])],
    "MeanVarianceNormalization": [
        (lambda b, x: b.MeanVarianceNormalization(x, axes=(1, 2)), [_floats(T, 2, 3)])
    ],
    "Hardmax": [
        (lambda b, x: b.Hardmax(x, axis=0), [_floats(T, 2)]),
        (lambda b, x: b.Hardmax(x, axis=0), [np.full(T, -np.inf, np.float32)]),
    ],
    "Attention": [
        (_attention, [_floats(2, 2, T, 4), _floats(2, 2, T, 4), _floats(2, 2, T, 3)]),
        (lambda b, q, k, v: b.Attention(q, k, v, scale=0.5), [_floats(T, 2, T, 4)] * 3),
        (lambda b, q, k, v: b.Attention(q, k, v, scale=0.5), [_floats(2, 4, 3, 4), *[_floats(2, 2, T, 4)] * 2]),
        (lambda b, q, k, v, m: b.Attention(q, k, v, m, scale=0.5), [*[_floats(2, 2, T, 4)] * 3, _MASK]),
        (lambda b, q, k, v, m: b.Attention(q, k, v, m, scale=0.5), [*[_floats(2, 2, T, 4)] * 3, _floats(T, T)]),
        (lambda b, q, k, v, m: b.Attention(q, k, v, m, scale=0.5, zero_masked_rows=True),
         [*[_floats(2, 2, T, 4)] * 3, np.full((2, 1, 1, T), -np.inf, np.float32)]),
        (lambda b, q, k, v, m, s: b.Attention(q, k, v, m, s, scale=0.5, softcap=3.0, causal=True),
         [*[_floats(2, 2, T, 4)] * 3, _floats(T, T), _floats(2)]),
        (lambda b, q, k, v: b.Attention(q, k, v, scale=0.5, causal=True, window=3, kv_offset=N - 2),
         [_floats(2, 2, 2, 4), *[_floats(2, 2, T, 4)] * 2]),
        (lambda b, q, k, v: b.Attention(q, k, v, scale=0.5, causal=True, kv_offset=2),
         [_floats(2, 2, T, 4), *[_floats(2, 2, T, 4)] * 2]),
        (lambda b, q, k, v: b.Attention(q, k, v, scale=0.5, window=2), [*[_floats(2, 2, T, 4)] * 3]),
    ],
    "RotaryEmbedding": [
        (lambda b, x, c, s: b.RotaryEmbedding(x, c, s), [_floats(T, 2, T, 4), *[_floats(1, T, 2)] * 2])
    ],
    "MatMul": [
        (lambda b, x, y: b.MatMul(x, y), [_floats(T, T), _floats(T, 3)]),
        (lambda b, x, y: b.MatMul(x, y), [_floats(T, 2, 3), _floats(3, T)]),
        (lambda b, x, y: b.MatMul(x, y), [_floats(T), _floats(2, T, 3)]),
        (lambda b, x, y: b.MatMul(x, y), [_floats(2, T), _floats(T)]),
    ],
    "Gemm": [
        (
            lambda b, x, y, c, ta=ta, tb=tb: b.Gemm(x, y, c, transpose_a=ta, transpose_b=tb),
            [_floats(*x), _floats(*y), _floats(*c)],
        )
        for ta, x in ((True, (T, 2)), (False, (2, T)))
        for tb, y in ((True, (3, T)), (False, (T, 3)))
        for c in ((3,), (2, 1))
    ] + [(lambda b, x, y, c: b.Gemm(x, y, c), [_floats(T, 2), _floats(2, T), _floats(T, 1)])],
    "QuantizedMatMul": [
        (
            lambda b, x, w, s: b.QuantizedMatMul(x, w, s, None, size=60, bits=4, block_size=32),
            [_floats(2, T, 60), _Q, _BLOCKS],
        )
    ],
    "Conv": [
        (lambda b, x, w, c: b.Conv(x, w, c, **_SQUARE), [_floats(T, 2, T, T), _floats(4, 2, 3, 3), _V[0]]),
        (lambda b, x, w: b.Conv(x, w, None, strides=(2, 1), dilations=(1, 2), pads=((0, 0), (2, 1)), group=2),
         [_floats(1, 2, T, T), _floats(4, 1, 1, 3)]),
        (lambda b, x, w: b.Conv(x, w, None, **_SQUARE), [_floats(1, T, 3, 3), _floats(4, T, 3, 3)]),
    ],
    "ConvTranspose": [
        (lambda b, x, w: b.ConvTranspose(x, w, None, **_SQUARE | {"strides": (2, 1)}, output_padding=(1, 0)),
         [_floats(T, 2, T, T), _floats(2, 4, 3, 3)]),
    ],
    "MaxPool": [
        (lambda b, x: b.MaxPool(x, **_WINDOW, pads=_SAME, ceil_mode=True), [_floats(T, 2, T, 5) - 9]),
        (lambda b, x: b.MaxPool(x, **_WINDOW, pads=_SAME, with_indices=True), [_floats(T, 2, 5, 5)]),
    ],
    "AveragePool": [
        (lambda b, x: b.AveragePool(x, **_WINDOW, pads=_SAME, count_include_pad=True), [_floats(T, 2, T, 5)]),
        (lambda b, x: b.AveragePool(x, **_WINDOW, pads=_SAME), [_floats(T, 2, 5, 5)]),
    ],
    "LpPool": [(lambda b, x: b.LpPool(x, **_WINDOW, pads=_SAME, p=3), [_floats(T, 2, T, 5)])],
    "GlobalAveragePool": [(lambda b, x: b.GlobalAveragePool(x), [_floats(T, 2, 5)])],
    "GlobalMaxPool": [(lambda b, x: b.GlobalMaxPool(x), [_floats(T, 2, T) - 9])],
    "GlobalLpPool": [(lambda b, x: b.GlobalLpPool(x), [_floats(T, 2, T)])],
    "ReduceMean": [(lambda b, x: b.ReduceMean(x, axes=(1, 2)), [_floats(T, 2, 3)])],
    **{
        name: [(lambda b, x, name=name: b.apply(name, x, axes=(0, -1), keepdims=False), [_floats(T, 2, T) - 9])]
        for name in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp",
                     "ReduceSumSquare")
    },
    "ReduceLogSum": [(lambda b, x: b.ReduceLogSum(b.abs(x), axes=(0,)), [_floats(T, 2)])],
    "QuantizeLinear": [
        (lambda b, x, s, z: b.QuantizeLinear(x, s, z, dtype=dtypes.u8, axis=1),
         [_floats(2, T), np.abs(_floats(T)) + 0.1, np.arange(T, dtype=np.uint8)]),
        (lambda b, x, s: b.QuantizeLinear(x, s, None, dtype=dtypes.i8, axis=1, block_size=2),
         [_floats(T, 4), np.abs(_floats(T, 2)) + 0.1]),
    ],
    "DequantizeLinear": [
        (lambda b, x, s, z: b.DequantizeLinear(x, s, z, axis=0), [_Q[:, :T].T.copy()[:, :4], _floats(T), _Q[0, :T]])
    ],
    "DynamicQuantizeLinear": [(lambda b, x: b.DynamicQuantizeLinear(x), [_floats(T, 3)])],
    "Split": [(lambda b, x: b.Split(x, axis=1, sizes=(1, 3)), [_floats(T, 4)])],
    "StridedSlice": [
        (lambda b, x: b.StridedSlice(x, starts=(1, 3), limits=(N, -1), strides=(2, -2)), [_floats(T, 4)])
    ],
    "Tile": [(lambda b, x, y: b.Tile(x, repeats=(N, 1, 2)), [_floats(2, T, 3), _floats(T)])],
    "PadMode": [
        (lambda b, x, mode=mode: b.PadMode(x, low=(0, 1), high=(0, 2), mode=mode), [_floats(T, 4)])
        for mode in ("reflect", "edge", "wrap")
    ],
    "Trilu": [(lambda b, x, upper=upper: b.Trilu(x, k=1, upper=upper), [_floats(2, T, T)]) for upper in (True, False)],
    "EyeLike": [(lambda b, x: b.EyeLike(dtype=f32, dims=(N, N), k=-1), [_floats(T)])],
    "Resize": [
        (lambda b, x: b.Resize(x, dims=(N, 2, 6, 8), mode="linear"), [_floats(T, 2, 3, 4)]),
        (lambda b, x: b.Resize(x, dims=(N, N, 5), scales=(1.0, 1.0, 1.25), mode="cubic"), [_floats(T, T, 4)]),
    ],
}  # fmt: skip


def agree(name: str, body: Callable[..., Any], arrays: Sequence[np.ndarray], target: str, whole: bool) -> None:
    """What counts of the results equals results of exact sizes, for several capacities."""
    given = [TensorType(DType.from_numpy(a.dtype), tuple(SIZES.get(d, d) for d in a.shape)) for a in arrays]
    out = bucketed(body, given)
    assert out.dims == ("N",), out.exact
    if any(types.symbols(t) for t in given):  # else only a segment's: the host has read the size
        verify(out.model)
    if whole:
        assert name in [n.op.name for n in out.model.main.body.walk()]
    true = 4 if name == "places" else T
    static = [TensorType(t.dtype, a.shape) for t, a in zip(given, arrays, strict=True)]
    exact = specialize(model_of(body, given), "main", static, known={"N": true})
    want = evaluate(exact, list(arrays))
    for room in (0, 2, 10):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, of what does not count
            got = with_room(out, arrays, true, room, target)
        if got is None:
            assert room == 10, "a capacity that the model allows"
            continue
        for a, b in zip(got, want, strict=True):
            assert a.dtype == b.dtype
            # f32 sums of at most 60 terms, in any order.
            np.testing.assert_allclose(a, b, rtol=3e-5, atol=1e-5, err_msg=f"{name}, room for {room} more")


SIZES = {T: N, T * T: N * N}


@pytest.mark.parametrize("target", ["reference", "xla", "mlx{compile=off}"])
@pytest.mark.parametrize("name", CELLS)
def test_composites_and_their_traps(name: str, target: str):
    agree(name, *CELLS[name], target, whole=False)


@pytest.mark.parametrize("target", ["reference", "mlx{compile=off}"])  # XLA decomposes them all
@pytest.mark.parametrize("name", WHOLE)
def test_composites_that_stay_whole(name: str, target: str):
    for body, arrays in WHOLE[name]:
        agree(name, body, arrays, target, whole=True)


REFUSED = {
    "a transform": (lambda b, x: b.cholesky(x), [(N, N)], "the matrix"),
    "an order of its own": (
        lambda b, x: b.sort((x,), axis=0, kind="custom", comparator=b.region(
            [TensorType(f32, ())] * 2, lambda b, x, y: b.compare(x, y, direction="gt"))),
        [(N,)], "an order of its own",
    ),
    "what shrinks": (lambda b, x, y: b.slice(y, starts=(N,), limits=(9,), strides=(1,)), [(N,), (9,)], "may shrink"),
    "windows of that size": (
        lambda b, x: b.reduce_window(
            (x,), kind="sum", window_dimensions=(N // 2,), window_strides=(1,), padding=((0, 0),),
            base_dilations=(1,), window_dilations=(1,),
        ), [(N,)], "may shrink|the size or the place",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_rounded_up_says_why(name: str):
    body, shapes, why = REFUSED[name]
    out = bucketed(body, [TensorType(f32, s) for s in shapes])
    assert out.dims == ()
    assert any(part in out.exact["N"] for part in why.split("|")), out.exact


def test_other_dims_are_rounded_up_where_one_cannot_be():
    m = dims.symbol("M")
    model = Model("two")
    x = TensorType(f32, (N, m))
    building.function(model, "main", [("x", x)], lambda b, x: b.sort((x,), axis=1, kind="custom", comparator=b.region(
        [TensorType(f32, ())] * 2, lambda b, x, y: b.compare(x, y, direction="gt"))))
    out = bucket_dims(model, "main", ["N", "M"])
    assert out.dims == ("N",)
    assert list(out.exact) == ["M"]


def test_what_may_repeat_is_checked_for_each_size():
    """x[:n - 4] has one element for n = 5, and repeats; for the capacity 8 it would have four, and not repeat."""

    def body(b: Any, x: Any, y: Any) -> Any:
        return b.add(b.slice(x, starts=(0,), limits=(N - 4,), strides=(1,)), y)

    out = bucketed(body, [TensorType(f32, (N,)), TensorType(f32, (4,))])
    rounding = Rounding(out.model.main)
    assert rounding.rounded({"N": 8}) == {"N": 8}
    assert rounding.rounded({"N": 5}) == {"N": 5}
    run = irc.compile(model_of(body, [TensorType(f32, (N,)), TensorType(f32, (4,))]), target="xla", shapes="bucket")
    x, y = np.arange(8, dtype=np.float32) + 1, np.zeros(4, np.float32)
    assert run(x[:5], y)[0].tolist() == [1, 1, 1, 1]
    assert run(x, y)[0].tolist() == [1, 2, 3, 4]


def test_capacities():
    assert [capacity(n) for n in (0, 1, 2, 3, 4, 5, 8, 9, 64, 65)] == [0, 1, 2, 4, 4, 8, 8, 16, 64, 128]


def test_elementwise_operators_have_no_rule_of_their_own():
    rules = [op.name for op in all_operators() if op.bucket is not None and Trait.ELEMENTWISE in op.traits]
    assert rules == []
