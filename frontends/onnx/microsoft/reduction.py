"""IsAllFinite of ONNX Runtime."""

from __future__ import annotations

import functools

from ..registry import onnx_op


@onnx_op("IsAllFinite", domain="com.microsoft")
def is_all_finite(ctx, *xs, isinf_only=0, isnan_only=0):
    """Whether no element of any input is infinite or NaN; only one of the two counts if the attributes say so."""
    if isinf_only and isnan_only:
        ctx.fail("isinf_only and isnan_only cannot both be set")
    b = ctx.build

    def bad(x):
        infinite = None if isnan_only else b.IsInf(x)
        nan = None if isinf_only else b.IsNaN(x)
        return infinite if nan is None else nan if infinite is None else b.or_(infinite, nan)

    found = [b.reduce(bad(x), axes=tuple(range(x.rank)), kind="or") for x in xs]
    return b.not_(functools.reduce(b.or_, found))
