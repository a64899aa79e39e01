"""MoE and QMoE: rows are sent through the experts that the router chooses, here through all, weighted with zeros."""

from __future__ import annotations

from functools import partial

from .....ir import dims as sizes
from .....ir import dtypes
from .....ir.ops.quantization.packed import unpacked
from ...registry import onnx_op as _onnx_op

onnx_op = partial(_onnx_op, domain="com.microsoft")

ACTIVATIONS = {
    "relu": lambda b, x: b.Relu(x),
    "gelu": lambda b, x: b.Gelu(x, approximate="tanh"),
    "silu": lambda b, x: b.Swish(x),
    "identity": lambda b, x: x,
}
"""gelu is the approximation, as in ONNX Runtime's kernels."""


def _routing(ctx, scores, values, k, normalize):
    """[rows, experts]: the weight of each expert, 0 for those that are not among the k with the highest scores.

    The softmax over all experts, or over the chosen ones where weights are normalized; or `values`, where given.
    """
    b, count = ctx.build, scores.dims[1]
    if not isinstance(count, int):
        ctx.refuse("the number of experts is known only at run time")
    if not 1 <= k <= count:
        ctx.fail(f"k must be from 1 to the number of experts {count}, got {k}")
    top, places = b.TopK(scores, k=k, axis=1)
    if values is not None:
        chosen = b.take_along_axis(values, places, axis=1)
        total = b.reduce(chosen, axes=(1,), kind="sum")
        chosen = b.divide(chosen, b.reshape(total, dims=(scores.dims[0], 1))) if normalize else chosen
    elif normalize:
        chosen = b.Softmax(top, axis=1)
    else:
        chosen = b.take_along_axis(b.Softmax(scores, axis=1), places, axis=1)
    experts = b.iota(dtype=places.dtype, dims=(1, 1, count), axis=2)
    hit = b.compare(b.reshape(places, dims=(*places.dims, 1)), experts, direction="eq")
    spread = b.select(hit, b.reshape(chosen, dims=(*chosen.dims, 1)), b.constant(0, chosen.dtype))
    return b.reduce(spread, axes=(1,), kind="sum")


def _activation(ctx, name, fusion, alpha, beta, limit):
    """A function of (product with fc1, product with fc3 or None)."""
    b = ctx.build
    if name in ACTIVATIONS:

        def plain(first, third):
            out = ACTIVATIONS[name](b, first)
            return out if third is None else b.multiply(out, third)

        return plain
    if name != "swiglu":
        ctx.refuse(f"the activation {name!r} is not supported, only {', '.join((*ACTIVATIONS, 'swiglu'))}")
    if fusion not in (0, 1, 2):
        ctx.fail(f"swiglu_fusion must be 0, 1 or 2, got {fusion}")

    def gated(first, third):
        gate, linear = _gate_and_linear(ctx, first, third, fusion)
        if limit is not None:
            gate = b.minimum(gate, limit)
            linear = b.clamp(b.constant(-limit, linear.dtype), linear, b.constant(limit, linear.dtype))
        return b.multiply(b.Swish(gate, alpha=alpha), linear if beta == 0 else b.add(linear, beta))

    return gated


def _gate_and_linear(ctx, first, third, fusion):
    """The two halves of SwiGLU: of fc1 and fc3, or interleaved (1) or one behind the other (2) in fc1."""
    b = ctx.build
    if fusion == 0:
        if third is None:
            ctx.fail("swiglu with swiglu_fusion 0 needs the weights of fc3")
        return first, third
    if third is not None:
        ctx.fail(f"swiglu_fusion {fusion} takes no weights of fc3")
    *rest, width = first.dims
    half = sizes.floordiv(width, 2)
    if fusion == 2:
        return b.Split(first, axis=first.rank - 1, sizes=(half, half))
    pairs = b.Split(b.reshape(first, dims=(*rest, half, 2)), axis=first.rank, sizes=(1, 1))
    return tuple(b.reshape(v, dims=(*rest, half)) for v in pairs)


def _mixed(ctx, x, router, values, k, normalize, sparse, count, expert):
    """Results of all experts, weighted by the router; `expert(rows, e)` is one of them."""
    if sparse:
        ctx.refuse("use_sparse_mixer is not supported")
    b = ctx.build
    rows = b.reshape(x, dims=(sizes.product(x.dims[:-1]), x.dims[-1]))
    weights = _routing(ctx, router, values, k, bool(normalize))
    total = None
    for e in range(count):
        share = b.slice(weights, starts=(0, e), limits=(rows.dims[0], e + 1), strides=(1, 1))
        part = b.multiply(expert(rows, e), share)
        total = part if total is None else b.add(total, part)
    return b.reshape(total, dims=x.dims)


def _of(ctx, x, e):
    """The part of expert e."""
    if x is None:
        return None
    rest = x.dims[1:]
    part = ctx.build.slice(x, starts=(e, *(0 for _ in rest)), limits=(e + 1, *rest), strides=(1,) * x.rank)
    return ctx.build.reshape(part, dims=rest)


def _count(ctx, weights):
    if weights.rank != 3:
        ctx.fail(f"the weights of experts must be [experts, outputs, inputs], got {weights.type}")
    if not isinstance(weights.dims[0], int):
        ctx.refuse("the number of experts is known only at run time")
    return weights.dims[0]


@onnx_op("MoE", absent=("b1", "b3"))
def moe(
    ctx, x, router, w1, b1, w2, b2=None, w3=None, b3=None, *, k=1, activation_type="relu", swiglu_fusion=0,
    activation_alpha=1.0, activation_beta=0.0, swiglu_limit=None, normalize_routing_weights=0, use_sparse_mixer=0,
    swiglu_limit_after_activation=0,
):  # fmt: skip
    if swiglu_limit_after_activation:
        ctx.refuse("swiglu_limit_after_activation is not supported")
    activate = _activation(ctx, activation_type, swiglu_fusion, activation_alpha, activation_beta, swiglu_limit)

    def layer(rows, weights, bias, e):
        if weights is None:
            return None
        y = ctx.build.MatMul(rows, ctx.build.transpose(_of(ctx, weights, e), permutation=(1, 0)))
        return y if bias is None else ctx.build.add(y, _of(ctx, bias, e))

    def expert(rows, e):
        return layer(activate(layer(rows, w1, b1, e), layer(rows, w3, b3, e)), w2, b2, e)

    return _mixed(ctx, x, router, None, k, normalize_routing_weights, use_sparse_mixer, _count(ctx, w1), expert)


@onnx_op("QMoE", absent=("s1", "b1", "s2"))
def qmoe(
    ctx, x, router, w1, s1, b1, w2, s2, b2=None, w3=None, s3=None, b3=None, z1=None, z2=None, z3=None,
    router_weights=None, g1=None, g2=None, a1=None, a2=None, c1=None, c2=None, *, k=1, activation_type="relu",
    swiglu_fusion=0, activation_alpha=1.0, activation_beta=0.0, swiglu_limit=None, normalize_routing_weights=0,
    use_sparse_mixer=0, expert_weight_bits=4, fc1_expert_weight_bits=None, fc2_expert_weight_bits=None,
    fc3_expert_weight_bits=None, block_size=0, quant_type="int", weights_prepacked=-1, accuracy_level=0,
    swiglu_limit_after_activation=0,
):  # fmt: skip
    """MoE with weights as MatMulNBits has them, in blocks of a row or (block_size 0) with one scale a row."""
    if quant_type != "int" or any(v is not None for v in (g1, g2, a1, a2, c1, c2)):
        ctx.refuse(f"weights of quant_type {quant_type!r} are not supported, only integers")
    if swiglu_limit_after_activation:
        ctx.refuse("swiglu_limit_after_activation is not supported")
    widths = [expert_weight_bits if v is None else v
              for v in (fc1_expert_weight_bits, fc2_expert_weight_bits, fc3_expert_weight_bits)]  # fmt: skip
    if any(v not in (2, 4, 8) for v in widths):
        ctx.refuse(f"weights of {max(widths)} bits are not supported, only of 2, 4 and 8")
    activate = _activation(ctx, activation_type, swiglu_fusion, activation_alpha, activation_beta, swiglu_limit)

    def layer(rows, weights, scales, zeros, bias, bits, e):
        if weights is None:
            return None
        if scales is None:
            ctx.fail("integer weights need scales")
        weights, scales, zeros = (_of(ctx, v, e) for v in (weights, scales, zeros))
        y = _quantized(ctx, rows, weights, scales, zeros, bits, block_size)
        return y if bias is None else ctx.build.add(y, _of(ctx, bias, e))

    def expert(rows, e):
        first, third = layer(rows, w1, s1, z1, b1, widths[0], e), layer(rows, w3, s3, z3, b3, widths[2], e)
        return layer(activate(first, third), w2, s2, z2, b2, widths[1], e)

    return _mixed(
        ctx, x, router, router_weights, k, normalize_routing_weights, use_sparse_mixer, _count(ctx, w1), expert
    )


def _quantized(ctx, rows, weights, scales, zeros, bits, block_size):
    """rows times the transpose of one expert's weights u8[N, K * bits / 8]; scales [N] or [N, blocks]."""
    b, (n, width) = ctx.build, weights.dims
    if weights.dtype is not dtypes.u8:
        ctx.refuse(f"weights of {weights.dtype} are not supported, only packed bytes")
    size = width * (8 // bits)
    one = block_size <= 0 or scales.rank == 1
    blocks = 1 if one else sizes.ceildiv(size, block_size)
    if zeros is not None:
        zeros = unpacked(b, zeros, bits)
        limits = (n,) if one else (n, blocks)
        zeros = b.slice(zeros, starts=(0,) * zeros.rank, limits=limits, strides=(1,) * zeros.rank)
        zeros = b.reshape(zeros, dims=(n, blocks))
    scales = b.reshape(scales, dims=(n, blocks))
    return b.QuantizedMatMul(rows, weights, scales, zeros, size=size, bits=bits, block_size=size if one else block_size)
