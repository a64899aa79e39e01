"""com.microsoft positions: rotary embeddings and learnt biases of the scores."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from .....ir import dims as sizes
from .....ir import dtypes
from ...attention import heads, joined
from ...registry import onnx_op as _onnx_op
from .merged import of_rank_3

onnx_op = partial(_onnx_op, domain="com.microsoft")


@onnx_op("RotaryEmbedding")
def rotary_embedding(
    ctx, x, position_ids, cos, sin, *, interleaved=0, num_heads=0, rotary_embedding_dim=0, scale=1.0,
    is_packed_batching=0,
):  # fmt: skip
    """position_ids: one offset for all, or [B, S].  No kernel of ONNX Runtime applies `scale`.

    Packed batches (of tokens without padding) have [B, S] too, and rotate as others do.
    """
    b, flat = ctx.build, x.rank == 3
    _check_positions(ctx, position_ids, (0, 1, 2))
    x = _by_heads(ctx, x, num_heads, cos, rotary_embedding_dim)
    if position_ids.rank < 2:
        steps = b.iota(dtype=position_ids.dtype, dims=(1, x.dims[2]), axis=1)
        position_ids = b.add(b.reshape(position_ids, dims=(1, 1)), steps)
    cos, sin = (b.take(table, position_ids, axis=0) for table in (cos, sin))
    out = b.RotaryEmbedding(x, cos, sin, interleaved=bool(interleaved))
    return joined(ctx, out) if flat else out


def _by_heads(ctx, x, num_heads, cos, turned):
    """[B, N, S, D], also from [B, S, N * D]; without num_heads all of a head turns, which tells its size."""
    if cos.rank != 2 or (turned and sizes.equal(cos.dims[1] * 2, turned) is False):
        wanted = f"half of the rotary_embedding_dim {turned}" if turned else "half of the features that turn"
        ctx.fail(f"the tables must be [positions, {wanted}], got {cos.type}")
    if x.rank == 3:
        x = heads(ctx, x, num_heads or sizes.floordiv(x.dims[2], 2 * cos.dims[1]))
    if x.rank != 4:
        ctx.fail(f"needs [batch, time, features] or [batch, heads, time, features], got {x.type}")
    return x


def _check_positions(ctx, positions, ranks):
    if not positions.dtype.is_integer or positions.rank not in ranks:
        ctx.fail(f"position_ids must be integers of rank {' or '.join(map(str, ranks))}, got {positions.type}")


@onnx_op("MRotaryEmbedding")
def m_rotary_embedding(
    ctx, x, position_ids, cos, sin, *, mrope_section, mrope_layout=0, interleaved=0, num_heads=0,
    rotary_embedding_dim=0, scale=1.0, is_packed_batching=0,
):  # fmt: skip
    """Angles in three sections, one each for the positions in time, height and width: position_ids [3, B, S].

    mrope_layout 0: section after section.  1: columns 1, 4, .. are height's and 2, 5, .. width's, as many as their
    sections have, the others time's.
    """
    b, flat = ctx.build, x.rank == 3
    _check_positions(ctx, position_ids, (3,))
    width = cos.dims[1]
    if len(mrope_section) != 3 or min(mrope_section) < 0 or sizes.equal(sum(mrope_section), width) is False:
        ctx.fail(f"mrope_section must have three sizes that add up to {width}, got {list(mrope_section)}")
    x = _by_heads(ctx, x, num_heads, cos, rotary_embedding_dim)
    owner = np.repeat(np.arange(3), mrope_section)
    if mrope_layout:
        column = np.arange(len(owner))
        owner = column % 3 * (column < 3 * np.take(mrope_section, column % 3))
    rows = [b.reshape(p, dims=p.dims[1:]) for p in b.Split(position_ids, axis=0, sizes=(1, 1, 1))]

    def mixed(table):
        out = b.take(table, rows[0], axis=0)
        for i in (1, 2):
            out = b.select(b.constant(owner == i), b.take(table, rows[i], axis=0), out)
        return out

    out = b.RotaryEmbedding(x, mixed(cos), mixed(sin), interleaved=bool(interleaved))
    return joined(ctx, out) if flat else out


@onnx_op("GemmaRotaryEmbedding")
def gemma_rotary_embedding(ctx, angles, q, q_turned, k, k_turned):
    """q cos + q_turned sin, and so for k: the features come turned by a quarter (their halves swapped, one negated)."""
    b = ctx.build
    if angles.rank != 3 or q.rank != 4 or k.rank != 4:
        ctx.fail(f"needs angles of rank 3 and states of rank 4, got {angles.type}, {q.type} and {k.type}")
    batch, length, width = angles.dims
    cos, sin = (
        b.reshape(b.convert(table, dtype=q.dtype), dims=(batch, 1, length, width))
        for table in (b.cosine(angles), b.sine(angles))
    )
    return tuple(b.add(b.multiply(x, cos), b.multiply(turned, sin)) for x, turned in ((q, q_turned), (k, k_turned)))


@onnx_op("RelativePositionBias")
def relative_position_bias(ctx, table, query_length, key_length, *, max_distance, is_bidirectional=0):
    """T5's learnt bias: table [buckets, heads] -> [1, heads, query_length, key_length]."""
    b = ctx.build
    if table.rank != 2 or not (query_length.dtype.is_integer and key_length.dtype.is_integer):
        ctx.fail(f"needs a table of rank 2 and whole lengths, got {table.type}, {query_length.type}, {key_length.type}")
    queries, keys = ctx.size(query_length, "query_length"), ctx.size(key_length, "key_length")
    buckets, count = table.dims
    if not isinstance(buckets, int):
        ctx.refuse("the number of buckets is known only at run time")
    place = b.subtract(
        b.iota(dtype=dtypes.i64, dims=(1, keys), axis=1), b.iota(dtype=dtypes.i64, dims=(queries, 1), axis=0)
    )
    base = b.constant(0, dtypes.i64)
    if is_bidirectional:
        buckets //= 2
        base = b.select(b.compare(place, 0, direction="gt"), b.constant(buckets, dtypes.i64), base)
        distance = b.abs(place)
    else:
        distance = b.negate(b.minimum(place, 0))
    exact = buckets // 2
    far = b.log(b.divide(b.convert(b.maximum(distance, 1), dtype=dtypes.f32), float(exact)))
    far = b.multiply(b.divide(far, math.log(max_distance / exact)), float(buckets - exact))
    far = b.minimum(b.add(b.convert(far, dtype=dtypes.i64), exact), buckets - 1)
    bucket = b.add(base, b.select(b.compare(distance, exact, direction="lt"), distance, far))
    bias = b.transpose(b.take(table, bucket, axis=0), permutation=(2, 0, 1))
    return b.reshape(bias, dims=(1, count, queries, keys))


@onnx_op("GatedRelativePositionBias")
def gated_relative_position_bias(ctx, q, q_bias, rel_pos, weight, bias, eco_a, token_offset=None, *, num_heads):
    """rel_pos [1, N, S, S] times a gate of each query and head: u (r a - 1) + 2, u and r from its features."""
    if token_offset is not None:
        ctx.refuse("batches without padding are not supported; export without padding removal")
    b = ctx.build
    x = heads(ctx, b.add(of_rank_3(ctx, q, "query"), q_bias), num_heads)
    gates = b.add(b.MatMul(x, weight), bias)
    half = sizes.floordiv(gates.dims[3], 2)
    parts = b.Split(gates, axis=3, sizes=(half, half))
    u, r = (b.reshape(b.logistic(b.reduce(p, axes=(3,), kind="sum")), dims=(*p.dims[:3], 1)) for p in parts)
    return b.multiply(b.add(b.multiply(u, b.subtract(b.multiply(r, eco_a), 1.0)), 2.0), rel_pos)
