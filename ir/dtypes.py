"""Element types of tensors, one `DType` each: name, kind, width, NumPy view, ONNX number; targets name them anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import ml_dtypes
import numpy as np

from .errors import IrcError

Kind = Literal["float", "int", "uint", "bool", "complex", "string"]


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One element type.  Instances are singletons, compared by identity; look one up by name with `DType.of("f32")`.

    `numpy` is the dtype of its NumPy view (ml_dtypes for what NumPy lacks; object for strings); sub-byte types use one
    byte an element there.  `bits` is the logical width (0 for strings).  `onnx` is the number in TensorProto.DataType.
    """

    name: str
    kind: Kind
    bits: int
    numpy: np.dtype[Any]
    onnx: int

    @staticmethod
    def of(name: str) -> DType:
        """The type called `name` (`"f32"`); IrcError lists the names if there is none."""
        try:
            return _BY_NAME[name]
        except KeyError:
            raise IrcError(f"no element type is called {name!r}; expected one of {', '.join(_BY_NAME)}") from None

    @staticmethod
    def from_numpy(dtype: Any) -> DType:
        """The type whose NumPy view is `dtype`; str, bytes and object arrays are strings."""
        d = np.dtype(dtype)
        if d.kind in "OSUT":
            return string
        try:
            return _BY_NUMPY[d.newbyteorder("=")]
        except KeyError:
            raise IrcError(f"NumPy dtype {d} has no element type in irc") from None

    @staticmethod
    def from_onnx(number: int) -> DType:
        """The type with that number in ONNX's `TensorProto.DataType`."""
        try:
            return _BY_ONNX[number]
        except KeyError:
            raise IrcError(
                f"ONNX element type {number} is not known; the newest known one is {max(_BY_ONNX)}"
            ) from None

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned integer (bool is not one)."""
        return self.kind in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        return self.kind in ("int", "float", "complex")

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @property
    def is_string(self) -> bool:
        return self.kind == "string"

    @property
    def itemsize(self) -> int:
        """Bytes an element takes in its NumPy view."""
        return int(self.numpy.itemsize)

    def finfo(self) -> Any:
        """`numpy.finfo`-like limits of a floating-point type."""
        return ml_dtypes.finfo(self.numpy)  # type: ignore[no-untyped-call]  # ml_dtypes has no types here

    def min_value(self) -> Any:
        """The least value: -inf where the type has it, else the most negative finite value; False for bool."""
        return _extreme(self, lowest=True)

    def max_value(self) -> Any:
        """The greatest value: +inf where the type has it, else the greatest finite value; True for bool."""
        return _extreme(self, lowest=False)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (DType.of, (self.name,))

    def __deepcopy__(self, memo: object) -> DType:
        return self


def _extreme(dtype: DType, *, lowest: bool) -> Any:
    if dtype.kind == "bool":
        return np.bool_(not lowest)
    if dtype.kind in ("int", "uint"):
        unsigned = dtype.kind == "uint"
        low = 0 if unsigned else -(1 << (dtype.bits - 1))
        high = (1 << dtype.bits) - 1 if unsigned else (1 << (dtype.bits - 1)) - 1
        return np.array(low if lowest else high, dtype.numpy)[()]
    if dtype.kind == "float":
        with np.errstate(all="ignore"):
            infinity = np.array(-np.inf if lowest else np.inf).astype(dtype.numpy)
        if np.isinf(infinity.astype(np.float64)):
            return infinity[()]
        info = dtype.finfo()
        return np.array(info.min if lowest else info.max, dtype.numpy)[()]
    raise IrcError(f"{dtype} has no order, so no least or greatest value")


f64: Final = DType("f64", "float", 64, np.dtype(np.float64), 11)
f32: Final = DType("f32", "float", 32, np.dtype(np.float32), 1)
f16: Final = DType("f16", "float", 16, np.dtype(np.float16), 10)
bf16: Final = DType("bf16", "float", 16, np.dtype(ml_dtypes.bfloat16), 16)
f8e4m3fn: Final = DType("f8e4m3fn", "float", 8, np.dtype(ml_dtypes.float8_e4m3fn), 17)
f8e4m3fnuz: Final = DType("f8e4m3fnuz", "float", 8, np.dtype(ml_dtypes.float8_e4m3fnuz), 18)
f8e5m2: Final = DType("f8e5m2", "float", 8, np.dtype(ml_dtypes.float8_e5m2), 19)
f8e5m2fnuz: Final = DType("f8e5m2fnuz", "float", 8, np.dtype(ml_dtypes.float8_e5m2fnuz), 20)
f8e8m0fnu: Final = DType("f8e8m0fnu", "float", 8, np.dtype(ml_dtypes.float8_e8m0fnu), 24)
f6e2m3fn: Final = DType("f6e2m3fn", "float", 6, np.dtype(ml_dtypes.float6_e2m3fn), 27)
f6e3m2fn: Final = DType("f6e3m2fn", "float", 6, np.dtype(ml_dtypes.float6_e3m2fn), 28)
f4e2m1fn: Final = DType("f4e2m1fn", "float", 4, np.dtype(ml_dtypes.float4_e2m1fn), 23)
i64: Final = DType("i64", "int", 64, np.dtype(np.int64), 7)
i32: Final = DType("i32", "int", 32, np.dtype(np.int32), 6)
i16: Final = DType("i16", "int", 16, np.dtype(np.int16), 5)
i8: Final = DType("i8", "int", 8, np.dtype(np.int8), 3)
i4: Final = DType("i4", "int", 4, np.dtype(ml_dtypes.int4), 22)
i2: Final = DType("i2", "int", 2, np.dtype(ml_dtypes.int2), 26)
u64: Final = DType("u64", "uint", 64, np.dtype(np.uint64), 13)
u32: Final = DType("u32", "uint", 32, np.dtype(np.uint32), 12)
u16: Final = DType("u16", "uint", 16, np.dtype(np.uint16), 4)
u8: Final = DType("u8", "uint", 8, np.dtype(np.uint8), 2)
u4: Final = DType("u4", "uint", 4, np.dtype(ml_dtypes.uint4), 21)
u2: Final = DType("u2", "uint", 2, np.dtype(ml_dtypes.uint2), 25)
bool_: Final = DType("bool", "bool", 1, np.dtype(np.bool_), 9)
c64: Final = DType("c64", "complex", 64, np.dtype(np.complex64), 14)
c128: Final = DType("c128", "complex", 128, np.dtype(np.complex128), 15)
string: Final = DType("string", "string", 0, np.dtype(object), 8)

ALL: Final[tuple[DType, ...]] = (
    f64, f32, f16, bf16, f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0fnu, f6e2m3fn,
    f6e3m2fn, f4e2m1fn, i64, i32, i16, i8, i4, i2, u64, u32, u16, u8, u4, u2, bool_, c64, c128, string,
)  # fmt: skip
_BY_NAME: Final = {d.name: d for d in ALL}
_BY_NUMPY: Final = {d.numpy: d for d in ALL if d is not string}
_BY_ONNX: Final = {d.onnx: d for d in ALL}
