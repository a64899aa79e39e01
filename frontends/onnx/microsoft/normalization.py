"""com.microsoft normalizations: residual sums, embeddings and groups with a normalization behind, BiasSoftmax."""

from __future__ import annotations

from functools import partial

from ....ir import dims as sizes
from ....ir import dtypes
from ..normalization import flat_softmax, inverse_of_rms
from ..registry import onnx_op as _onnx_op

onnx_op = partial(_onnx_op, domain="com.microsoft")


def _residual(ctx, x, skip, bias):
    """x + skip + bias; skip may lack the batch."""
    if skip.rank not in (2, 3) or x.rank not in (2, 3):
        ctx.fail(f"needs operands [batch, time, features] or [time, features], got {x.type} and {skip.type}")
    total = ctx.build.add(x, skip)
    return total if bias is None else ctx.build.add(total, bias)


@onnx_op("SkipLayerNormalization")
def skip_layer_normalization(ctx, x, skip, gamma, beta=None, bias=None, *, epsilon=1e-12):
    total = _residual(ctx, x, skip, bias)
    out, mean, inverse = ctx.build.LayerNormalization(total, gamma, beta, axis=total.rank - 1, epsilon=epsilon)
    return out, mean, inverse, total


@onnx_op("SkipSimplifiedLayerNormalization")
def skip_simplified_layer_normalization(ctx, x, skip, gamma, bias=None, *, epsilon=1e-12):
    """The second result, a mean that it does not subtract, is 0 from ONNX Runtime."""
    total = _residual(ctx, x, skip, bias)
    axis = total.rank - 1
    y = ctx.build.RMSNormalization(total, gamma, axis=axis, epsilon=epsilon)
    mean = ctx.build.full(0.0, dtypes.f32, (*total.dims[:axis], 1)) if ctx.wants(1) else None
    return y, mean, inverse_of_rms(ctx, total, axis, epsilon) if ctx.wants(2) else None, total


@onnx_op("EmbedLayerNormalization", absent=("segment_ids", "segments"))
def embed_layer_normalization(
    ctx, ids, segment_ids, words, positions, segments, gamma, beta, mask=None, position_ids=None, *,
    epsilon=1e-12, mask_index_type=None,
):  # fmt: skip
    """LayerNormalization of the sum of embeddings; and how many elements of each row of the mask are 1."""
    b = ctx.build
    if ids.rank != 2 or words.rank != 2 or positions.rank != 2:
        ctx.fail(f"needs ids and tables of rank 2, got {ids.type}, {words.type} and {positions.type}")
    rows, length = ids.dims
    if position_ids is None:
        place = b.slice(positions, starts=(0, 0), limits=(length, positions.dims[1]), strides=(1, 1))
    else:
        place = b.take(positions, position_ids, axis=0)
    total = b.add(b.take(words, ids, axis=0), place)
    if segment_ids is not None:
        if segments is None:
            ctx.fail("segment_ids need segment_embedding")
        total = b.add(total, b.take(segments, segment_ids, axis=0))
    out = b.LayerNormalization(total, gamma, beta, axis=2, epsilon=epsilon)[0]
    if mask is None:
        counted = b.full(0, dtypes.i32, (rows,))
    else:
        ones = b.convert(b.compare(mask, 1, direction="eq"), dtype=dtypes.i32)
        counted = b.reduce(ones, axes=(1,), kind="sum")
    return out, counted, total


@onnx_op("GroupNorm")
def group_norm(ctx, x, gamma, beta, *, groups, activation, channels_last=1, epsilon=1e-5):
    return _grouped(ctx, x, gamma, beta, groups, activation, channels_last, epsilon)


@onnx_op("SkipGroupNorm")
def skip_group_norm(ctx, x, gamma, beta, skip, bias=None, *, groups, activation, channels_last=1, epsilon=1e-5):
    b = ctx.build
    if skip.rank == 2:
        skip = b.reshape(skip, dims=(skip.dims[0], 1, 1, skip.dims[1]))
    total = b.add(x, skip)
    if bias is not None:
        total = b.add(total, bias if channels_last else b.reshape(bias, dims=(bias.dims[0], 1, 1)))
    return _grouped(ctx, total, gamma, beta, groups, activation, channels_last, epsilon), total


def _grouped(ctx, x, gamma, beta, groups, activation, channels_last, epsilon):
    """GroupNormalization of [N, H, W, C] or [N, C, H, W] with gamma and beta in f32, and SiLU where asked for."""
    if x.rank != 4 or activation not in (0, 1):
        ctx.fail(f"needs an operand of rank 4 and activation 0 or 1, got {x.type} and {activation}")
    b, dtype = ctx.build, x.dtype
    if channels_last:
        x = b.transpose(x, permutation=(0, 3, 1, 2))
    gamma, beta = (b.convert(v, dtype=dtypes.f32) for v in (gamma, beta))
    y = b.GroupNormalization(b.convert(x, dtype=dtypes.f32), gamma, beta, num_groups=groups, epsilon=epsilon)
    y = b.convert(b.Swish(y) if activation else y, dtype=dtype)
    return b.transpose(y, permutation=(0, 2, 3, 1)) if channels_last else y


@onnx_op("BiasSoftmax")
def bias_softmax(ctx, x, bias, *, is_inner_broadcast, axis=1):
    """Softmax of x + bias over all axes from `axis` on; bias broadcasts as NumPy has it, whichever way it is called."""
    total = ctx.build.add(x, bias)
    if total.rank != x.rank or any(sizes.equal(a, d) is False for a, d in zip(total.dims, x.dims, strict=True)):
        ctx.fail(f"the bias {bias.type} does not broadcast to {x.type}")
    return flat_softmax(ctx, "Softmax", total, axis)
