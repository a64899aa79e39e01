"""More cases like those in `cases`: indexing, reductions, windows, products, control flow, sorting, FFT."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import dtypes
from ..ir.types import TensorType
from .cases import ALL, COMPLEX, INTEGERS, SMALL_FLOATS, Case, _case, rng, values

f32, i32, i64 = dtypes.f32, dtypes.i32, dtypes.i64
KINDS = ("sum", "prod", "max", "min")


def indices(dtype: Any, dims: tuple[int, ...], low: int, high: int, *key: object) -> Any:
    return rng("indices", dtype.name, dims, *key).integers(low, high, dims).astype(dtype.numpy)


def _block(label: str, x: Any, starts: tuple[Any, ...], sizes: tuple[int, ...]) -> Case:
    arrays = tuple(np.asarray(a) for a in (x, *starts))
    return Case(f"dynamic_slice:{label}", "dynamic_slice", arrays, lambda b, x, *s: b.dynamic_slice(x, s, sizes=sizes))


def _indexing() -> list[Case]:
    out = []
    for d in ALL:
        x = values(d, (3, 5, 2), "indexing")
        out += [
            _case("take", d.name, (x, indices(i64, (2, 3), -5, 5)), axis=1),
            _case("take_along_axis", d.name, (x, indices(i64, (3, 4, 2), -5, 5)), axis=1),
            _block(d.name, x, (np.int64(2), np.int64(-3), np.int64(9)), (2, 3, 1)),
            _case("gather", d.name, (x, indices(i32, (4, 2), -1, 6)), offset_dims=(1, 2), collapsed_slice_dims=(0,),
                  start_index_map=(0, 1), index_vector_dim=1, slice_sizes=(1, 2, 2)),
            _case("put_along_axis", d.name, (x, indices(i64, (3, 4, 2), -7, 7), values(d, (3, 4, 2), "new")), axis=1),
            _case("scatter", d.name, (x, indices(i32, (4, 1), -1, 4), values(d, (4, 5, 2), "new")),
                  update_window_dims=(1, 2), inserted_window_dims=(0,),
                  scatter_dims_to_operand_dims=(0,), index_vector_dim=1),
        ]  # fmt: skip
        for starts in ((0, 3, 1), (-1, 9, 0)):
            arrays = (x, values(d, (2, 2, 2), "block"), *(np.asarray(s) for s in starts))
            out.append(Case(f"dynamic_update_slice:{d}-{starts}", "dynamic_update_slice", arrays,
                            lambda b, x, u, *s: b.dynamic_update_slice(x, u, s)))  # fmt: skip
    for d in INTEGERS:
        most = int(d.max_value())
        edge = np.array([0, 1, most, int(d.min_value()), min(4, most)], object).astype(d.numpy)
        x = values(f32, (5, 3), "edge")
        out += [
            _case("take", f"indices-{d}", (x, edge), axis=0),
            _case("take", f"indices-{d}-long", (values(f32, (300,)), edge), axis=0),
            _case("take_along_axis", f"indices-{d}", (x, np.stack([edge] * 3, 1)), axis=0),
            _case("put_along_axis", f"indices-{d}", (x, np.stack([edge] * 3, 1), values(f32, (5, 3), "u")), axis=0),
            _block(f"starts-{d}", x, (edge[2], edge[3]), (2, 2)),
        ]
    for d in (f32, dtypes.f64, dtypes.bf16, i32, dtypes.u8, dtypes.i4, dtypes.bool_, dtypes.f8e5m2):
        kinds = (
            ("and", "or", "xor")
            if d.is_bool
            else ("sum", "prod", "max", "min", *(() if d.is_float else ("and", "or", "xor")))
        )
        x = values(d, (4, 5), "combine", special=False)
        many = values(d, (6, 5), "updates", special=False, low=-2, high=2)
        ulps = (8 if d.bits >= 32 else 1) if d.is_float else 0
        for kind in kinds:
            near = {"ulps": ulps, "scale": 64.0 if ulps and kind == "sum" else None} if kind in ("sum", "prod") else {}
            rows = {"update_window_dims": (1,), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
            out.append(
                _case(
                    "scatter",
                    f"{d}-{kind}",
                    (x, indices(i32, (6, 1), 0, 4), many),
                    index_vector_dim=1,
                    kind=kind,
                    **rows,
                    **near,
                )
            )
            if kind in KINDS:
                out.append(
                    _case(
                        "put_along_axis",
                        f"{d}-{kind}",
                        (x, indices(i32, (6, 5), -6, 6), many),
                        axis=0,
                        kind=kind,
                        **near,
                    )
                )
    x = values(f32, (2, 4, 5, 3), "batch", special=False)
    out += [
        _case("gather", "batching", (x, indices(i64, (6, 2, 1), -1, 6)), offset_dims=(2, 3), collapsed_slice_dims=(2,),
              start_index_map=(2,), index_vector_dim=2, slice_sizes=(1, 3, 1, 3), operand_batching_dims=(0,),
              start_indices_batching_dims=(1,)),
        _case("scatter", "windows-outside", (values(f32, (6,)), indices(i32, (5, 1), -2, 7), values(f32, (5, 2), "w")),
              update_window_dims=(1,), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,), index_vector_dim=1),
        _case("scatter", "batching", (values(f32, (2, 5)), indices(i32, (2, 3, 1), -1, 6), values(f32, (2, 3), "w")),
              update_window_dims=(), inserted_window_dims=(1,), scatter_dims_to_operand_dims=(1,), index_vector_dim=2,
              input_batching_dims=(0,), scatter_indices_batching_dims=(0,)),
        _case("take", "scalar-index", (values(f32, (4, 3)), np.int64(-1)), axis=0),
        _case("take", "no-indices", (values(f32, (4, 3)), np.zeros((0,), np.int64)), axis=0),
        _case("take", "of-empty", (values(f32, (4, 0)), np.array([1, 2])), axis=0),
        _case("take_along_axis", "smaller", (values(f32, (4, 3)), indices(i32, (2, 5), -3, 3)), axis=1),
        _case("put_along_axis", "no-updates", (values(f32, (4, 3)), np.zeros((0, 3), np.int64), values(f32, (0, 3)))),
        _block("scalar", np.float32(3), (), ()),
    ]  # fmt: skip
    return out


def _reduction() -> list[Case]:
    out = []
    for d in ALL:
        kinds = ["sum", "prod"] if d.is_complex else [*KINDS] if not d.is_bool else ["max", "min"]
        kinds += ["and", "or", "xor"] if d.is_bool or d.is_integer else []
        x = values(d, (3, 4, 5), "reduce", special=False, low=0.5 if d.is_float else -3, high=2)
        for kind in kinds:
            inexact = (d.is_float or d.is_complex) and kind in ("sum", "prod")
            ulps = (16 if d.bits >= 32 else 1) if inexact else 0
            out += [
                _case("reduce", f"{d}-{kind}", (x,), axes=(0, 2), kind=kind, ulps=ulps),
                _case("reduce", f"{d}-{kind}-empty", (x[:, :0],), axes=(1,), kind=kind),
                _case("reduce", f"{d}-{kind}-all", (x,), axes=(0, 1, 2), kind=kind, ulps=4 * ulps),
            ]
            window = {"window_dimensions": (1, 2, 3), "window_strides": (1, 2, 1), "padding": ((0, 0), (1, 0), (1, 2)),
                      "base_dilations": (1, 1, 2), "window_dilations": (1, 2, 1)}  # fmt: skip
            out.append(_case("reduce_window", f"{d}-{kind}", (x,), kind=kind, ulps=ulps, **window))
        if not d.is_complex and not d.is_bool:
            y = values(d, (9, 18), "nan")
            out += [_case("reduce", f"{d}-{kind}-edges", (y,), axes=(1,), kind=kind) for kind in ("max", "min")]
            source = values(d, (2, 3), "source", special=False, low=0.5, high=2)
            z = rng("pick", d.name).integers(0, 3, (4, 7)).astype(d.numpy)
            # f8e8m0fnu has no 0 to fill with.
            out += [] if d is dtypes.f8e8m0fnu else [
                _case("select_and_scatter", f"{d}-{select}", (z, source), select=select, window_dimensions=(2, 3),
                      window_strides=(2, 2), padding=((0, 0), (0, 0)), ulps=1 if d.is_float else 0)
                for select in ("max", "min")
            ]  # fmt: skip
    plain = {
        "window_dimensions": (2, 2),
        "window_strides": (1, 1),
        "base_dilations": (1, 1),
        "window_dilations": (1, 1),
    }
    x = values(f32, (6, 7), "window")
    out += [
        _case("reduce", "no-axes", (x,), axes=(), kind="sum"),
        _case("reduce_window", "too-large", (x,), kind="max", padding=((0, 0), (0, -6)), **plain),
        _case("reduce_window", "nan", (x,), kind="max", padding=((1, 1), (1, 1)), **plain),
        _case("reduce_window", "cropped", (x,), kind="min", padding=((-1, 0), (0, -2)), **plain),
        _case("select_and_scatter", "nan", (x, values(f32, (5, 6), "s", special=False)), select="max",
              window_dimensions=(2, 2), window_strides=(1, 1), padding=((0, 0), (0, 0)), ulps=8),
        _case("select_and_scatter", "padded", (values(f32, (5,), special=False), values(f32, (3,), "s", special=False)),
              select="min", window_dimensions=(3,), window_strides=(2,), padding=((1, 1),), ulps=8),
        Case("reduce:custom", "reduce", (values(f32, (4, 6), "c", special=False),), _argmax),
        Case("reduce_window:custom", "reduce_window", (values(i32, (9,), "c", special=False),), _window_custom),
    ]  # fmt: skip
    return out


def _argmax(b: Any, x: Any) -> Any:
    def body(b: Any, best: Any, at: Any, value: Any, index: Any) -> Any:
        later = b.or_(b.compare(value, best, direction="gt"), b.and_(b.compare(value, best, direction="eq"),
                                                                     b.compare(index, at, direction="lt")))  # fmt: skip
        return b.select(later, value, best), b.select(later, index, at)

    scalars = [TensorType(t, ()) for t in (f32, i32, f32, i32)]
    position = b.iota(dtype=i32, dims=x.dims, axis=1)
    inits = (b.constant(-np.inf, f32), b.constant(0, i32))
    return b.reduce((x, position, *inits), axes=(1,), kind="custom", body=b.region(scalars, body))


def _window_custom(b: Any, x: Any) -> Any:
    body = b.region([TensorType(i32, ())] * 2, lambda b, a, c: b.add(b.multiply(a, 1), c))
    return b.reduce_window((x, b.constant(0, i32)), kind="custom", window_dimensions=(3,), window_strides=(2,),
                           padding=((1, 1),), base_dilations=(1,), window_dilations=(1,), body=body)  # fmt: skip


def _products() -> list[Case]:
    out = []
    for d in ALL:
        if d in SMALL_FLOATS:
            continue
        low, high = (-3, 3) if not d.is_float else (-1, 1)
        a, c = (values(d, s, "dot", special=False, low=low, high=high) for s in ((2, 5, 7), (2, 7, 3)))
        ulps = (16 if d.bits >= 32 else 1) if d.is_float or d.is_complex else 0
        scale = 7.0 if d.bits >= 32 and ulps else None
        scale = 7 * 2 * 9 * 36.0 if d.is_complex else scale
        out += [
            _case("dot_general", d.name, (a, c), lhs_contracting=(2,), rhs_contracting=(1,), lhs_batching=(0,),
                  rhs_batching=(0,), ulps=ulps, scale=scale),
            _case("dot_general", f"{d}-no-depth", (a[..., :0], c[:, :0]), lhs_contracting=(2,), rhs_contracting=(1,),
                  lhs_batching=(0,), rhs_batching=(0,)),
        ]  # fmt: skip
        if not d.is_bool:
            x, w = (values(d, s, "conv", special=False, low=low, high=high) for s in ((2, 4, 9, 8), (6, 2, 3, 2)))
            out.append(_conv(f"{d}", x, w, feature_group_count=2, ulps=ulps, scale=12.0 if scale else None))
    for d in (dtypes.i8, dtypes.u8):
        for depth in (5, 2000):
            a = np.full((3, depth), d.max_value(), d.numpy)
            c = np.full((depth, 2), d.min_value() if d is dtypes.i8 else d.max_value(), d.numpy)
            out.append(
                _case("dot_general", f"{d}-i32-{depth}", (a, c), lhs_contracting=(1,), rhs_contracting=(0,), result=i32)
            )
        x, w = values(d, (1, 3, 6, 6)), values(d, (4, 3, 3, 3))
        out.append(_conv(f"{d}-i32", x, w, result=i32))
    big = rng("wrap").integers(-(2**31), 2**31, (2, 3, 40)).astype(np.int32)
    out.append(_case("dot_general", "i32-wraps", (big[0], big[1]), lhs_contracting=(1,), rhs_contracting=(1,)))
    out.append(_case("dot_general", "outer", (values(f32, (3,), special=False), values(f32, (2,), special=False)),
                     lhs_contracting=(), rhs_contracting=(), ulps=1))  # fmt: skip
    x, w = values(f32, (2, 3, 8, 9), "x", special=False), values(f32, (4, 3, 3, 3), "w", special=False)
    near = {"ulps": 16, "scale": 27 * 36.0}
    deep = values(f32, (8, 1, 3, 3), "depthwise", special=False)
    out += [
        _conv("strided", x, w, window_strides=(2, 3), padding=((1, 2), (0, 1)), **near),
        _conv("dilated", x, w, rhs_dilation=(2, 1), lhs_dilation=(1, 2), padding=((2, 2), (-1, 1)), **near),
        _conv("reversed", x, w, window_reversal=(True, False), **near),
        _conv("depthwise", values(f32, (2, 8, 7, 6), "dw", special=False), deep, feature_group_count=8,
              padding=((1, 1), (1, 1)), window_strides=(2, 1), **near),
        _conv("depth-multiplier", values(f32, (1, 4, 7, 6), "dm", special=False), deep, feature_group_count=4, **near),
        _conv("batch-groups", values(f32, (4, 3, 6, 6), "b", special=False),
              values(f32, (6, 3, 3, 3), "g", special=False), batch_group_count=2, **near),
        _conv("one-by-one", x, w[:, :, :1, :1], **near),
        _conv("one-by-one-strided", x, w[:, :, :1, :1], window_strides=(2, 2), **near),
        _conv("empty-batch", x[:0], w),
        _conv("nhwc", np.moveaxis(x, 1, 3), np.moveaxis(w, (0, 1), (3, 2)), lhs_spec="b01f", rhs_spec="01io",
              out_spec="b01f", **near),
        _conv("1d", x[:, :, :, 0], w[:, :, :, 0], padding=((1, 1),), **near),
        _conv("3d", values(f32, (1, 2, 4, 5, 4), "3d", special=False),
              values(f32, (3, 2, 2, 3, 1), "3d", special=False), **near),
        _conv("0d", x[:, :, 0, 0], w[:, :, 0, 0], **near),
    ]  # fmt: skip
    for d in (f32, dtypes.f64, *COMPLEX):
        root = values(d, (2, 4, 4), "spd", special=False, low=-1, high=1) + 3 * np.eye(4).astype(d.numpy)
        positive = root @ np.swapaxes(root.conj(), -1, -2)
        bad = positive.copy()
        bad[1] = -bad[1]
        right = values(d, (2, 4, 3), "rhs", special=False)
        for lower in (True, False):
            out.append(_case("cholesky", f"{d}-{lower}", (positive,), lower=lower, ulps=64, scale=8.0))
            out.append(_case("cholesky", f"{d}-{lower}-bad", (bad,), lower=lower, ulps=64, scale=8.0))
            for kind in ("none", "transpose", "adjoint"):
                out += [
                    _case("triangular_solve", f"{d}-{lower}-{kind}-{left}-{unit}",
                          (root, right if left else np.swapaxes(right, 1, 2)), lower=lower, transpose_a=kind,
                          left_side=left, unit_diagonal=unit, ulps=256, scale=16.0)
                    for left, unit in ((True, False), (False, False), (True, True))
                ]  # fmt: skip
    out.append(_case("cholesky", "empty", (np.zeros((2, 0, 0), np.float32),)))
    out.append(_case("triangular_solve", "empty", (np.zeros((0, 0), np.float32), np.zeros((0, 3), np.float32))))
    return out


def _conv(label: str, x: Any, w: Any, *, ulps: float = 0, scale: float | None = None, **changes: Any) -> Case:
    rank = x.ndim - 2
    axes = "".join(map(str, range(rank)))
    attributes = {
        "lhs_spec": "bf" + axes, "rhs_spec": "oi" + axes, "out_spec": "bf" + axes, "window_strides": (1,) * rank,
        "padding": ((0, 0),) * rank, "lhs_dilation": (1,) * rank, "rhs_dilation": (1,) * rank,
        "window_reversal": (False,) * rank, **changes,
    }  # fmt: skip
    return _case(
        "convolution", label, (np.ascontiguousarray(x), np.ascontiguousarray(w)), ulps=ulps, scale=scale, **attributes
    )


def _sort_and_fft() -> list[Case]:
    out = []
    for d in ALL:
        if d.is_complex:
            continue
        x = values(d, (4, 20), "sort")
        payload = np.arange(80, dtype=np.int32).reshape(4, 20)
        out += [_case("sort", f"{d}-{kind}", (x, payload), axis=1, kind=kind) for kind in ("ascending", "descending")]
    out += [
        _case("sort", "axis-0", (values(f32, (5, 3), "s"),), axis=0),
        _case("sort", "empty", (values(f32, (0, 3)),), axis=0),
        Case("sort:custom", "sort", (values(i32, (9,), "s", special=False),), _sort_custom),
    ]
    for d in COMPLEX:
        x = values(d, (2, 6, 4), "fft", special=False)
        near = {"ulps": 8, "scale": 24 * 9.0}
        for axes in (1, 2, 3):
            lengths = x.shape[3 - axes :]
            out += [
                _case("fft", f"{d}-{k}-{axes}", (x,), fft_type=k, fft_length=lengths, **near) for k in ("fft", "ifft")
            ]
        out.append(_case("fft", f"{d}-irfft", (x,), fft_type="irfft", fft_length=(6, 6), **near))
        out.append(_case("fft", f"{d}-irfft-odd", (x,), fft_type="irfft", fft_length=(7,), **near))
    for d in (f32, dtypes.f64):
        x = values(d, (2, 6, 5), "fft", special=False)
        out += [
            _case("fft", f"{d}-rfft-{n}", (x,), fft_type="rfft", fft_length=x.shape[3 - n :], ulps=8, scale=180.0)
            for n in (1, 2)
        ]
    return out


def _sort_custom(b: Any, x: Any) -> Any:
    def before(b: Any, a: Any, c: Any) -> Any:
        return b.compare(b.remainder(a, 10), b.remainder(c, 10), direction="lt")

    return b.sort((x,), axis=0, kind="custom", comparator=b.region([TensorType(i32, ())] * 2, before))


def _control() -> list[Case]:
    x = values(f32, (3,), "control", special=False)
    out = []
    for flag in (True, False):
        out.append(Case(f"if:{flag}", "if", (np.bool_(flag), x), _if))
    for d in (i32, i64, dtypes.i8, dtypes.u8, dtypes.u64):
        for at in (0, 1, 2, 3, int(d.max_value()), *((-1,) if d.is_signed else ())):
            out.append(Case(f"case:{d}-{at}", "case", (np.array(at, d.numpy), x), _case_of_three))
    for count in (0, 1, 5):
        out.append(Case(f"while:{count}", "while", (np.int64(count), x), _while))
    return [Case(c.id, c.op, tuple(np.asarray(a) for a in c.arrays), c.body, c.ulps) for c in out]


def _if(b: Any, p: Any, x: Any) -> Any:
    def then(b: Any) -> Any:
        return b.add(x, 1.0), b.constant(np.arange(300), i64)

    def other(b: Any) -> Any:
        return b.if_(p, then=b.region([], lambda b: x), else_=b.region([], lambda b: b.negate(x))), b.constant(
            np.arange(300)[::-1], i64
        )

    return b.if_(p, then=b.region([], then), else_=b.region([], other))


def _case_of_three(b: Any, index: Any, x: Any) -> Any:
    branches = tuple(b.region([], lambda b, k=k: b.multiply(x, float(k))) for k in (2, 4, 8))
    return b.case(index, branches=branches)


def _while(b: Any, count: Any, x: Any) -> Any:
    def body(b: Any, i: Any, y: Any) -> Any:
        return b.add(i, 1), b.add(b.multiply(y, 2.0), x)

    state = [TensorType(i64, ()), TensorType(f32, (3,))]
    cond = b.region(state, lambda b, i, y: b.compare(i, count, direction="lt"))
    return b.while_((b.constant(0, i64), x), cond=cond, body=b.region(state, body))


def cases() -> list[Case]:
    return [*_indexing(), *_reduction(), *_products(), *_sort_and_fft(), *_control()]
