"""The lowering table of the target `numpy`: which operators it claims and the NumPy expressions that they become."""

from __future__ import annotations

from irc.ir import dims as sizes_of
from irc.ir import dtypes
from irc.targets.base import LoweringTable

DTYPES = (dtypes.f32, dtypes.f64, dtypes.i32, dtypes.i64, dtypes.bool_)
TABLE = LoweringTable("numpy")
lower = TABLE.lower


def only(accepts, what):
    """A claim of operands that `accepts`."""
    return lambda ctx, *operands, **_: None if all(accepts(o.dtype) for o in operands) else f"written for {what} only"


FLOATS = only(lambda d: d.is_float, "floats")
NUMBERS = only(lambda d: not d.is_bool, "numbers")


def unary(name, function, when):
    lower(name, when=when)(lambda ctx, x: f"{function}({x})")


def binary(name, form, when):
    lower(name, when=when)(lambda ctx, x, y: form.format(x, y))


for _name, _function in {
    "exponential": "np.exp", "log": "np.log", "sqrt": "np.sqrt", "tanh": "np.tanh", "floor": "np.floor",
    "ceil": "np.ceil", "sine": "np.sin", "cosine": "np.cos",
}.items():  # fmt: skip
    unary(_name, _function, FLOATS)
unary("negate", "-", NUMBERS)
unary("abs", "np.abs", NUMBERS)
unary("not", "~", only(lambda d: d.is_bool or d.is_integer, "bool and integers"))
binary("add", "{} + {}", NUMBERS)
binary("subtract", "{} - {}", NUMBERS)
binary("multiply", "{} * {}", NUMBERS)
binary("divide", "{} / {}", FLOATS)
binary("maximum", "np.maximum({}, {})", NUMBERS)
binary("minimum", "np.minimum({}, {})", NUMBERS)
binary("and", "{} & {}", None)
binary("or", "{} | {}", None)


@lower("compare")
def compare(ctx, x, y, *, direction):
    sign = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[direction]
    return f"{x} {sign} {y}"


@lower("select")
def select(ctx, predicate, x, y):
    return f"np.where({predicate}, {x}, {y})"


@lower(
    "convert",
    when=lambda ctx, x, *, dtype, saturate: (
        "NumPy leaves the integer of a NaN open"
        if x.dtype.is_float and not dtype.is_float and not dtype.is_bool
        else None
    ),
)
def convert(ctx, x, *, dtype, saturate):
    return f"{x}.astype(np.{dtype.numpy.name})"


@lower("reshape")
def reshape(ctx, x, *, dims):
    return f"{x}.reshape({tuple(dims)})"


@lower("transpose")
def transpose(ctx, x, *, permutation):
    return f"{x}.transpose({tuple(permutation)})"


@lower("broadcast_in_dim")
def broadcast_in_dim(ctx, x, *, dims, broadcast_dimensions):
    sizes = dict(zip(broadcast_dimensions, x.dims, strict=True))
    return f"np.broadcast_to({x}.reshape({tuple(sizes.get(i, 1) for i in range(len(dims)))}), {tuple(dims)})"


@lower("concatenate")
def concatenate(ctx, xs, *, axis):
    return f"np.concatenate([{', '.join(map(str, xs))}], axis={axis})"


@lower("slice")
def slice_(ctx, x, *, starts, limits, strides):
    return f"{x}[{', '.join(f'{a}:{b}:{c}' for a, b, c in zip(starts, limits, strides, strict=True)) or '()'}]"


@lower("reverse")
def reverse(ctx, x, *, axes):
    return f"np.flip({x}, {tuple(axes)})"


REDUCTIONS = {"sum": "np.sum", "prod": "np.prod", "max": "np.max", "min": "np.min"}


def can_reduce(ctx, xs, *, axes, kind, body):
    if kind not in REDUCTIONS or len(xs) != 1 or xs[0].dtype.is_bool:
        return f"no reduction of kind {kind} on {xs[0].dtype}"
    if kind in ("max", "min") and any(xs[0].dims[a] == 0 for a in axes):
        return "NumPy has no maximum of nothing"
    return None


@lower("reduce", when=can_reduce)
def reduce(ctx, xs, *, axes, kind, body):
    (x,) = xs
    dtype = f", dtype=np.{x.dtype.numpy.name}" if kind in ("sum", "prod") else ""
    return f"{REDUCTIONS[kind]}({x}, axis={tuple(axes)}{dtype})"


def fits(dims, sizes, dilations, padding):
    """Whether there may be a window at all; sliding_window_view takes no other.

    Claims are asked before the sizes are known, so these are compared with three answers: no, yes, unknown.
    """
    rows = zip(dims, sizes, dilations, padding, strict=True)
    reach = [((size - 1) * dilation + 1, dim + low + high) for dim, size, dilation, (low, high) in rows]
    return all(sizes_of.less_equal(least, have) is not False for least, have in reach) and 0 not in sizes


def can_reduce_window(ctx, xs, *, kind, window_dimensions, padding, base_dilations, window_dilations, **_):
    if kind not in ("sum", "max") or len(xs) != 1 or not xs[0].dtype.is_float:
        return f"no windows of kind {kind} on {xs[0].dtype}"
    if any(d != 1 for d in base_dilations):
        return "written for windows without holes in x"
    return None if fits(xs[0].dims, window_dimensions, window_dilations, padding) else "no window fits"


@lower("reduce_window", when=can_reduce_window)
def reduce_window(ctx, xs, *, kind, window_dimensions, window_strides, padding, base_dilations, window_dilations, body):
    (x,) = xs
    fill = 0 if kind == "sum" else "-np.inf"
    sizes, strides, dilations = tuple(window_dimensions), tuple(window_strides), tuple(window_dilations)
    view = f"{ctx.helper('windows')}({x}, {sizes}, {strides}, {dilations}, {tuple(padding)}, {fill})"
    return f"{REDUCTIONS[kind]}({view}, axis={tuple(range(len(sizes), 2 * len(sizes)))})"


def can_multiply(ctx, lhs, rhs, *, result, **_):
    return None if lhs.dtype.is_float and result in (None, lhs.dtype) else "written for floats only"


@lower("dot_general", when=can_multiply)
def dot_general(ctx, lhs, rhs, *, lhs_contracting, rhs_contracting, lhs_batching, rhs_batching, precision, result):
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left: list = [next(letters) for _ in lhs.dims]
    right: list = [None] * len(rhs.dims)
    for i, j in zip((*lhs_batching, *lhs_contracting), (*rhs_batching, *rhs_contracting), strict=True):
        right[j] = left[i]
    right = [letter or next(letters) for letter in right]
    out = [left[i] for i in lhs_batching]
    out += [c for i, c in enumerate(left) if i not in (*lhs_batching, *lhs_contracting)]
    out += [c for j, c in enumerate(right) if j not in (*rhs_batching, *rhs_contracting)]
    return f'np.einsum("{"".join(left)},{"".join(right)}->{"".join(out)}", {lhs}, {rhs}, optimize=True)'


def can_convolve(
    ctx, x, w, *, lhs_spec, rhs_spec, out_spec, padding, lhs_dilation, rhs_dilation, window_reversal,
    batch_group_count, result, **_,
):  # fmt: skip
    if (lhs_spec, rhs_spec, out_spec) != ("bf01", "oi01", "bf01") or not x.dtype.is_float:
        return "written for two-dimensional NCHW"
    plain = all(d == 1 for d in lhs_dilation) and not any(window_reversal) and batch_group_count == 1
    plain = plain and result in (None, x.dtype) and 0 not in (*x.dims, *w.dims)
    fitting = fits(x.dims[2:], w.dims[2:], rhs_dilation, padding)
    return None if plain and fitting else "written for plain convolutions"


@lower("convolution", when=can_convolve)
def convolution(ctx, x, w, *, window_strides, padding, rhs_dilation, feature_group_count, **_):
    ctx.helper("windows")
    arguments = f"{tuple(window_strides)}, {tuple(padding)}, {tuple(rhs_dilation)}, {feature_group_count}"
    return f"{ctx.helper('convolution')}({x}, {w}, {arguments})"


@lower("sample.SquaredRelu")
def squared_relu(ctx, x, *, scale):
    factor = "" if scale == 1 else f"np.{x.dtype.numpy.name}({scale!r}) * "
    return f"{factor}np.square(np.maximum({x}, 0))"
