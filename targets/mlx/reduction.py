"""Operators that combine elements along axes, and running sums."""

import math

from ...ir import dims as sizes
from ...ir import dtypes
from . import types
from .expression import LOWEST, Slot
from .lowering import lower

_FUNCTIONS = {"sum": "sum", "prod": "prod", "max": "max", "min": "min"}


def _axis(axes):
    return axes[0] if len(axes) == 1 else tuple(axes)


def filled(ctx, x, axes, value):
    """x with an element along each of axes: as it is where they surely have one, else through a recipe that looks."""
    if all(sizes.less_equal(1, x.dims[a]) is True for a in axes):
        return x
    return ctx.recipe("_filled", x, list(axes), value, dtype=x.dtype, dims=x.dims)


def reduced(ctx, x, axes, kind, keepdims=False):
    """x combined along axes by MLX's sum, prod, max or min, with irc's element types and empty results."""
    axes = tuple(sorted(a % x.rank for a in axes))
    if not axes:
        return x
    dims = tuple(1 if i in axes else d for i, d in enumerate(x.dims) if keepdims or i not in axes)
    keywords = {"axis": _axis(axes), **({"keepdims": True} if keepdims else {})}
    dtype = x.dtype
    if kind == "sum" and dtype is dtypes.f8e8m0fnu:
        return ctx.full(math.nan, dtype, dims)  # it starts from 0, which this type has not
    if kind in ("sum", "prod"):
        wide = types.accumulator(dtype)
        x = ctx.convert(ctx.wide(x), wide)
        grown = dtypes.i32 if dtype.is_integer and dtype.kind == "int" and dtype.bits < 32 else None
        grown = dtypes.u32 if dtype.is_integer and dtype.kind == "uint" and dtype.bits < 32 else grown
        x = filled(ctx, x, axes, 0 if kind == "sum" else 1)
        out = ctx.method(x, _FUNCTIONS[kind], dims=dims, dtype=grown or wide, **keywords)
        if grown is not None:
            out = ctx.method(out, "astype", types.carrier(dtype), dtype=types.carrier(dtype))
        elif types.is_code(dtype):
            return ctx.narrow(out, dtype)
        else:
            out = ctx.convert(out, dtype)
        return ctx.narrow(out, dtype)
    if dtype.is_bool:
        x = filled(ctx, x, axes, kind == "min")
        return ctx.method(x, "any" if kind == "max" else "all", dims=dims, **keywords)
    wide = ctx.wide(x)
    if any(sizes.less_equal(1, x.dims[a]) is not True for a in axes):
        return ctx.narrow(_padded_extreme(ctx, wide, axes, kind, keywords, dims, dtype), dtype)
    return ctx.narrow(ctx.method(wide, _FUNCTIONS[kind], dims=dims, **keywords), dtype)


def _padded_extreme(ctx, x, axes, kind, keywords, dims, dtype):
    """max or min along axes that may be empty: one identity element more along each."""
    value = dtype.min_value() if kind == "max" else dtype.max_value()
    filler = ctx.scalar(value, x.dtype)
    weak = Slot(filler, LOWEST, True) if filler.number is not None else filler
    widths = [(0, 1) if a in axes and sizes.less_equal(1, d) is not True else (0, 0) for a, d in enumerate(x.dims)]
    padded = ctx.call("mx.pad", x, widths, constant_values=weak)
    return ctx.method(padded, _FUNCTIONS[kind], dims=dims, **keywords)


def _bitwise(ctx, x, axes, kind):
    """and, or, xor: bool by all, any and a parity; integers pairwise."""
    axes = tuple(sorted(a % x.rank for a in axes))
    if not axes:
        return x
    dims = tuple(d for i, d in enumerate(x.dims) if i not in axes)
    if x.dtype.is_bool:
        x = filled(ctx, x, axes, kind == "and")
        if kind != "xor":
            return ctx.method(x, "all" if kind == "and" else "any", axis=_axis(axes), dims=dims)
        total = ctx.method(x, "sum", axis=_axis(axes), dims=dims, dtype=dtypes.i32)
        return ctx.infix("!=", ctx.infix("&", total, 1), 0)
    wide = ctx.wide(x)
    start = ctx.scalar(
        0 if kind != "and" else -1 if wide.dtype.kind == "int" else (1 << wide.dtype.bits) - 1, wide.dtype
    )
    out = ctx.recipe("_fold", [wide], list(axes), f"mx.bitwise_{kind}", [start], dims=dims, dtype=wide.dtype)
    return ctx.narrow(ctx.index(out, "0", dims=dims), x.dtype)


@lower("reduce")
def reduce(ctx, xs, *, axes, kind, body):
    if kind in _FUNCTIONS:
        return reduced(ctx, xs[0], axes, kind)
    if kind in ("and", "or", "xor"):
        return _bitwise(ctx, xs[0], axes, kind)
    count = len(xs) // 2
    if any(types.wide(x.dtype) is not x.dtype for x in xs):
        ctx.refuse("a custom reduction of narrow types")
    dims = ctx.result_types[0].shape
    name = ctx.function(body, "combine", [dims] * (2 * count))
    inputs = [ctx.typed(x, x.dtype) for x in xs[:count]]
    made = ctx.recipe("_fold", inputs, list(axes), name, list(xs[count:]))
    results = ctx.node.results
    return ctx.unpack(made, [(r.dtype, r.dims) for r in results], [r.name or "reduced" for r in results])


def _composite(kind):
    def rule(ctx, x, *, axes, keepdims):
        return reduced(ctx, x, axes, kind, keepdims)

    return rule


for _name, _kind in {"ReduceSum": "sum", "ReduceProd": "prod", "ReduceMax": "max", "ReduceMin": "min"}.items():
    lower(_name)(_composite(_kind))


def _floats_only(ctx, x):
    if not x.dtype.is_float or types.is_code(x.dtype):
        ctx.refuse(f"of {x.dtype}")


@lower("ReduceMean")
def reduce_mean(ctx, x, *, axes, keepdims):
    _floats_only(ctx, x)
    if not axes:
        return x
    axes = tuple(sorted(a % x.rank for a in axes))
    wide = ctx.convert(x, types.accumulator(x.dtype))
    keywords = {"axis": _axis(axes), **({"keepdims": True} if keepdims else {})}
    wide = filled(ctx, wide, axes, math.nan)
    return ctx.convert(ctx.method(wide, "mean", dims=ctx.result_types[0].shape, **keywords), x.dtype)


@lower("ReduceSumSquare")
def reduce_sum_square(ctx, x, *, axes, keepdims):
    _floats_only(ctx, x)
    wide = ctx.convert(x, types.accumulator(x.dtype))
    return ctx.convert(reduced(ctx, ctx.call("mx.square", wide), axes, "sum", keepdims), x.dtype)


@lower("ReduceL1")
def reduce_l1(ctx, x, *, axes, keepdims):
    _floats_only(ctx, x)
    wide = ctx.convert(x, types.accumulator(x.dtype))
    return ctx.convert(reduced(ctx, ctx.call("mx.abs", wide), axes, "sum", keepdims), x.dtype)


@lower("ReduceL2")
def reduce_l2(ctx, x, *, axes, keepdims):
    _floats_only(ctx, x)
    wide = ctx.convert(x, types.accumulator(x.dtype))
    total = reduced(ctx, ctx.call("mx.square", wide), axes, "sum", keepdims)
    return ctx.convert(ctx.call("mx.sqrt", total), x.dtype)


@lower("ReduceLogSumExp")
def reduce_log_sum_exp(ctx, x, *, axes, keepdims):
    _floats_only(ctx, x)
    axes = tuple(sorted(a % x.rank for a in axes))
    if not axes or any(sizes.less_equal(1, x.dims[a]) is not True for a in axes):
        ctx.refuse("mx.logsumexp along an axis that may be empty")
    if x.dtype is dtypes.f64 or any(sizes.equal(d, 0) is True for d in x.dims):
        ctx.refuse("mx.logsumexp takes powers of e of f64 in f32, and no empty array")
    wide = ctx.convert(x, types.accumulator(x.dtype))
    keywords = {"axis": _axis(axes), **({"keepdims": True} if keepdims else {})}
    return ctx.convert(ctx.method(wide, "logsumexp", dims=ctx.result_types[0].shape, **keywords), x.dtype)


def _index_of_extreme(ctx, x, axis, keepdims, last, least):
    dims = ctx.result_types[0].shape
    axis %= x.rank
    wide = ctx.wide(x)
    empty = any(sizes.equal(d, 0) is True for d in x.dims)  # MLX has no index in an empty array, though none is asked
    if x.dtype.is_integer and not last and not empty:
        keywords = {"axis": axis, **({"keepdims": True} if keepdims else {})}
        found = ctx.call("mx.argmin" if least else "mx.argmax", wide, dims=dims, dtype=dtypes.u32, **keywords)
        return ctx.convert(found, dtypes.i64)
    if x.dtype.is_bool:
        wide = ctx.convert(x, dtypes.u8)
    return ctx.recipe("_argmax", wide, axis, keepdims, least, last, dtype=dtypes.i64, dims=dims)


@lower("ArgMax")
def arg_max(ctx, x, *, axis, keepdims, select_last_index):
    return _index_of_extreme(ctx, x, axis, keepdims, select_last_index, False)


@lower("ArgMin")
def arg_min(ctx, x, *, axis, keepdims, select_last_index):
    return _index_of_extreme(ctx, x, axis, keepdims, select_last_index, True)


def _running(ctx, x, name, axis, exclusive, reverse):
    dtype = x.dtype
    if types.is_code(dtype):
        ctx.refuse(f"a running {name} of {dtype}")
    wide = ctx.convert(ctx.wide(x), types.accumulator(dtype))
    keywords = {"axis": axis % x.rank}
    if reverse:
        keywords["reverse"] = True
    if exclusive:
        keywords["inclusive"] = False
    return ctx.narrow(ctx.convert(ctx.call(name, wide, **keywords), types.wide(dtype)), dtype)


@lower("CumSum")
def cum_sum(ctx, x, *, axis, exclusive, reverse):
    return _running(ctx, x, "mx.cumsum", axis, exclusive, reverse)


@lower("CumProd")
def cum_prod(ctx, x, *, axis, exclusive, reverse):
    return _running(ctx, x, "mx.cumprod", axis, exclusive, reverse)
