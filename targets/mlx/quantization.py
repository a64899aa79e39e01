"""Products with packed weights by mx.quantized_matmul; other quantized operators are decomposed."""

import json

from ...ir import dims as sizes
from ...ir import dtypes
from .lowering import lower

_GROUPS = (128, 64, 32)
_NATIVE = (dtypes.f32, dtypes.f16, dtypes.bf16)


@lower("QuantizedMatMul")
def quantized_matmul(ctx, x, weights, scales, zero_points, *, size, bits, block_size):
    """MLX has w = q * scale + bias, and bits as irc packs them.  In f32, because it sums f16 in f16 on some devices."""
    if x.dtype not in _NATIVE or scales.dtype not in _NATIVE:
        ctx.refuse(f"mx.quantized_matmul of {x.dtype} with scales of {scales.dtype}")
    group = next((g for g in _GROUPS if block_size % g == 0), None)
    if group is None or size % block_size:
        ctx.refuse(f"mx.quantized_matmul takes rows of whole blocks of {', '.join(map(str, sorted(_GROUPS)))}")
    if x.rank < 2 or any(sizes.less_equal(1, d) is not True and isinstance(d, int) for d in (*x.dims, *weights.dims)):
        ctx.refuse("a vector or an empty operand")
    words = _words(ctx, weights, (weights.dims[0], size * bits // 32))
    factors, biases = _affine(ctx, scales, zero_points, 1 << (bits - 1), block_size // group)
    y = ctx.call(
        "mx.quantized_matmul", ctx.convert(x, dtypes.f32), words, factors, biases, group_size=group, bits=bits,
        dtype=dtypes.f32, dims=ctx.result_types[0].shape,
    )  # fmt: skip
    return ctx.convert(y, x.dtype)


def _words(ctx, weights, dims):
    """Bytes as words of 32 bits, the first byte lowest."""
    constant = ctx.constant_of(1)
    if constant is None:
        return ctx.method(weights, "view", "mx.uint32", dtype=dtypes.u32, dims=dims)
    return ctx.typed(ctx.prepared(constant, "words", "{}.view(mx.uint32)", dims), dtypes.u32, dims)


def _affine(ctx, scales, zero_points, default, times):
    """(scales, -zero_point * scales) in f32, each `times` in a row; weights are brought into this form at load."""
    rows, blocks = scales.dims
    dims = (rows, blocks * times)
    constant, zeros = ctx.constant_of(2), ctx.constant_of(3)
    if constant is None or (zero_points is not None and zeros is None):
        scales = ctx.convert(scales, dtypes.f32)
        zero = -default if zero_points is None else ctx.negative(ctx.convert(zero_points, dtypes.f32))
        both = scales, ctx.infix("*", scales, zero)
        return both if times == 1 else [ctx.call("mx.repeat", v, times, axis=1, dims=dims) for v in both]
    wide = "{}" if scales.dtype is dtypes.f32 else "{}.astype(mx.float32)"
    minus = str(-default)
    if zeros is not None:
        ctx.emitter.weights[zeros.name] = zeros
        place = json.dumps(zeros.name, ensure_ascii=False).replace("{", "{{").replace("}", "}}")
        minus = f"-w[{place}].astype(mx.float32)"
    products = f"{wide} * {minus}"
    if times != 1:
        wide, products = (f"mx.repeat({v}, {times}, axis=1)" for v in (wide, products))
    biases = ctx.prepared(constant, "biases", products, dims, beside=True)
    factors = scales if wide == "{}" else ctx.prepared(constant, "wide", wide, dims)
    return ctx.typed(factors, dtypes.f32), ctx.typed(biases, dtypes.f32)
