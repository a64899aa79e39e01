"""LAPACK routines as custom calls, on CPU only.  `pjrt` registers the kernels before it compiles or loads a program."""

from typing import Any

import numpy as np

from ...ir import dtypes
from . import types
from .context import Context, Expr
from .mlir import hlo, ir

PREFIX = {dtypes.f32: "s", dtypes.f64: "d", dtypes.c64: "c", dtypes.c128: "z"}


def _layout(rank: int, matrix: int) -> Any:
    """Minor-to-major order: the last `matrix` axes column-major, batch axes outside."""
    inner = [rank - 2, rank - 1] if matrix else []
    outer = [a for a in reversed(range(rank)) if a not in inner]
    return np.array(inner + outer, np.int64)


def cholesky(ctx: Context, a: Expr, lower: bool) -> Expr:
    """The factor, NaN where `a` is not positive definite; the other triangle is not cleared."""
    batch = a.dims[:-2]
    operation = hlo.CustomCallOp(
        [types.tensor(a.dtype, a.dims), types.tensor(dtypes.i32, batch)],
        [a.value],
        call_target_name=ir.StringAttr.get(f"lapack_{PREFIX[a.dtype]}potrf_ffi"),
        api_version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4),
        backend_config=ir.DictAttr.get(
            {"uplo": ir.IntegerAttr.get(ir.IntegerType.get_unsigned(8), ord("L" if lower else "U"))}
        ),
        operand_layouts=ir.ArrayAttr.get([_index_attribute(_layout(a.rank, 2))]),
        result_layouts=ir.ArrayAttr.get(
            [_index_attribute(_layout(a.rank, 2)), _index_attribute(_layout(a.rank - 2, 0))]
        ),
    )
    factor, info = (
        Expr(v, d, s) for v, d, s in zip(operation.results, (a.dtype, dtypes.i32), (a.dims, batch), strict=True)
    )
    sound = ctx.compare(info, 0, "eq")
    return ctx.select(ctx.reshape(sound, (*batch, 1, 1)), factor, ctx.full(np.nan, a.dtype))


def _index_attribute(order: Any) -> Any:
    return ir.DenseIntElementsAttr.get(order, type=ir.IndexType.get())
