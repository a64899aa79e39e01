"""The type that narrow numbers are computed in, for references and decompositions.  Defines no operators."""

import numpy as np

from ..dims import Size, product
from ..dtypes import DType, f32, f64


def wide_type(dtype: DType) -> DType:
    """f32 for f16, bf16 and narrower floats; every other type is its own."""
    return f32 if dtype.is_float and dtype.bits < 32 else dtype


def statistics_type(dtype: DType) -> DType:
    """The type that sums over many floats are kept in: f64 for f64, else f32."""
    return f64 if dtype is f64 else f32


def converted(b, x, dtype: DType):
    """x in `dtype`; x itself if it has that type already."""
    return x if x.dtype is dtype else b.convert(x, dtype=dtype)


def widened(b, x):
    """x in `wide_type` of its type."""
    return converted(b, x, wide_type(x.dtype))


def count(b, dims: tuple[Size, ...], dtype: DType):
    """A scalar of `dtype`: the number of elements that `dims` span."""
    n = product(dims)
    return b.constant(n, dtype) if isinstance(n, int) else b.convert(b.dimensions(dims=(n,), scalar=True), dtype=dtype)


def wide_array(x: np.ndarray) -> np.ndarray:
    """Floats as f64, complex as c128, integers as i64 or u64, so that a reference rounds or wraps once, at the end."""
    dtype = DType.from_numpy(x.dtype)
    if dtype.is_float:
        return x.astype(np.float64)
    if dtype.is_complex:
        return x.astype(np.complex128)
    if dtype.is_integer:
        return x.astype(np.int64 if dtype.is_signed else np.uint64)
    return x


def saturated(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Floats as `convert` brings them into an integer type: truncated, limited, NaN to 0.  Other types: x itself."""
    if not dtype.is_integer:
        return x
    low, high = int(dtype.min_value()), int(dtype.max_value())
    inside = (x > low) & (x < high)
    whole = np.where(inside, x, 0).astype(np.int64 if dtype.is_signed else np.uint64)
    return np.where(inside | np.isnan(x), whole, np.where(x <= low, low, high).astype(whole.dtype))
