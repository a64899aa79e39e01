"""Convolutions."""

import math

import numpy as np

from . import types
from .linalg import from_sums, precision_config, product_types
from .lowering import lower
from .mlir import hlo, ir


def _numbers(lhs_spec, rhs_spec, out_spec, rank):
    spatial = [str(i) for i in range(rank)]
    return hlo.ConvDimensionNumbers.get(
        lhs_spec.index("b"), lhs_spec.index("f"), [lhs_spec.index(s) for s in spatial],
        rhs_spec.index("i"), rhs_spec.index("o"), [rhs_spec.index(s) for s in spatial],
        out_spec.index("b"), out_spec.index("f"), [out_spec.index(s) for s in spatial],
    )  # fmt: skip


@lower("convolution")
def convolution(
    ctx, x, w, *, lhs_spec, rhs_spec, out_spec, window_strides, padding, lhs_dilation, rhs_dilation, window_reversal,
    feature_group_count, batch_group_count, precision, result,
):  # fmt: skip
    result, dims = ctx.result_types[0]
    depth = math.prod(n for n, s in zip(w.dims, rhs_spec, strict=True) if s != "o")
    if 0 in dims or 0 in x.dims or 0 in w.dims:
        return ctx.full(0, result, dims)
    operand, wide = product_types(x, w, result, depth)
    value = hlo.convolution(
        types.tensor(wide, dims),
        ctx.convert(x, operand).value,
        ctx.convert(w, operand).value,
        _numbers(lhs_spec, rhs_spec, out_spec, x.rank - 2),
        ir.IntegerAttr.get(ir.IntegerType.get_signless(64), feature_group_count),
        ir.IntegerAttr.get(ir.IntegerType.get_signless(64), batch_group_count),
        window_strides=ir.DenseI64ArrayAttr.get(list(window_strides)),
        padding=ir.DenseIntElementsAttr.get(np.array(padding, np.int64).reshape(-1, 2)),
        lhs_dilation=ir.DenseI64ArrayAttr.get(list(lhs_dilation)),
        rhs_dilation=ir.DenseI64ArrayAttr.get(list(rhs_dilation)),
        window_reversal=ir.DenseBoolArrayAttr.get(list(window_reversal)),
        precision_config=precision_config(precision),
    )
    return from_sums(ctx, ctx.wrap(value, wide), result)
