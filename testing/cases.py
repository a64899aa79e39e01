"""One-operator models with inputs, shared by the operator tests of all targets; no target is named here.

The cases cover every core operator over its element types, empty tensors and edge values.  `expected` runs the
reference; `check` compares: bitwise for integers, bools and moved data, else within `Case.ulps` units in the last place
(of `scale`, where a case has one: the magnitude that errors are relative to).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import build, dtypes
from ..ir.dtypes import DType
from ..ir.model import Model
from ..ir.operators import ELEMENTWISE, all_operators, get
from ..ir.reference import evaluate
from ..ir.types import TensorType

FLOATS = (dtypes.f32, dtypes.f64, dtypes.f16, dtypes.bf16)
SMALL_FLOATS = (
    dtypes.f8e4m3fn, dtypes.f8e4m3fnuz, dtypes.f8e5m2, dtypes.f8e5m2fnuz, dtypes.f8e8m0fnu, dtypes.f4e2m1fn,
)  # fmt: skip
INTEGERS = (
    dtypes.i8, dtypes.i16, dtypes.i32, dtypes.i64, dtypes.u8, dtypes.u16, dtypes.u32, dtypes.u64,
    dtypes.i4, dtypes.u4, dtypes.i2, dtypes.u2,
)  # fmt: skip
COMPLEX = (dtypes.c64, dtypes.c128)
ALL = (*FLOATS, *SMALL_FLOATS, *INTEGERS, dtypes.bool_, *COMPLEX)


@dataclass(frozen=True)
class Case:
    """`body(build, *values)` is the model; `arrays` are its inputs.  `ulps` 0 means bitwise (any NaN is a NaN)."""

    id: str
    op: str
    arrays: tuple[Any, ...]
    body: Callable[..., Any]
    ulps: float = 0
    scale: float | None = None

    @property
    def dtypes(self) -> tuple[DType, ...]:
        return tuple(DType.from_numpy(a.dtype) for a in self.arrays)

    def model(self) -> Model:
        """The model, typed for these arrays."""
        model = Model(self.op)
        types = [TensorType(DType.from_numpy(a.dtype), a.shape) for a in self.arrays]
        build.function(model, "main", [(f"x{i}", t) for i, t in enumerate(types)], self.body)
        return model

    def expected(self, model: Model) -> tuple[Any, ...]:
        return evaluate(model, self.arrays)


def check(case: Case, results: Any, expected: Any, *, ulps: float | None = None) -> None:
    """Assert that results are those expected; `ulps` replaces the case's bound."""
    assert len(results) == len(expected)
    for got, wanted in zip(results, expected, strict=True):
        got = np.asarray(got)
        assert got.dtype == wanted.dtype, f"{case.id}: dtype {got.dtype}, expected {wanted.dtype}"
        assert got.shape == wanted.shape, f"{case.id}: shape {got.shape}, expected {wanted.shape}"
        right = _right(got, wanted, case.ulps if ulps is None else ulps, case.scale)
        if not right.all():
            i = tuple(np.argwhere(~right)[0]) if right.ndim else ()
            inputs = [a[i] for a in case.arrays if a.shape == got.shape]
            raise AssertionError(
                f"{case.id}: {np.count_nonzero(~right)} of {right.size} differ; at {i} got {got[i]!r}, "
                f"expected {wanted[i]!r} for {inputs}"
            )


def _right(got: Any, wanted: Any, ulps: float, scale: float | None) -> Any:
    dtype = DType.from_numpy(wanted.dtype)
    if dtype.is_complex:
        # Errors of a part are relative to the modulus, as complex arithmetic has them.
        size = np.maximum(np.abs(wanted), scale or 0)
        unit = np.finfo(wanted.dtype).eps * np.where(np.isfinite(size), size, 1)
        parts = [(p(got), p(wanted)) for p in (np.real, np.imag)]
        with np.errstate(all="ignore"):
            near = [(g == w) | (np.isnan(g) & np.isnan(w)) | (np.abs(g - w) <= ulps * unit) for g, w in parts]
        return np.logical_and(*near)
    if not dtype.is_float:
        return got == wanted
    g, w = got.astype(np.float64), wanted.astype(np.float64)
    same = (g == w) & (np.signbit(g) == np.signbit(w)) if ulps == 0 and scale is None else g == w
    same |= np.isnan(g) & np.isnan(w)
    info = dtype.finfo()
    tiny = float(info.smallest_normal)
    flushed = (np.abs(w) < tiny) & (g == 0) if dtype.bits >= 16 else np.zeros(g.shape, bool)
    with np.errstate(all="ignore"):
        unit = float(info.eps) * np.maximum(np.abs(w), scale or tiny)
        return same | flushed | (np.abs(g - w) <= ulps * unit)


# ------------------------------------------------------------------------------------------------------------- inputs


def rng(*key: object) -> np.random.Generator:
    """Seeded by the case, so that adding one changes no other."""
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def values(
    dtype: DType, dims: tuple[int, ...], *key: object, special: bool = True, low: float = -6, high: float = 6
) -> Any:
    """Random elements, with the type's edge values in front unless `special` is off."""
    r = rng(dtype.name, dims, *key)
    size = int(np.prod(dims))
    if dtype.is_bool:
        return r.integers(0, 2, dims).astype(bool)
    if dtype.is_complex:
        return (r.uniform(low, high, dims) + 1j * r.uniform(low, high, dims)).astype(dtype.numpy)
    with np.errstate(all="ignore"):
        if dtype.is_integer:
            least, most = int(dtype.min_value()), int(dtype.max_value())
            first, last = (min(max(least, int(v * 20)), most) for v in (low, high))
            out = r.integers(first, last, size, endpoint=True).astype(dtype.numpy)
            edges: list[float] = [0, 1, least, most, least + 1, most - 1, *([-1, -2] if least else [2, 3])]
        else:
            out = r.uniform(low, high, size).astype(dtype.numpy)
            edges = [
                0.0,
                -0.0,
                1.0,
                -1.0,
                np.inf,
                -np.inf,
                np.nan,
                0.5,
                -0.5,
                2.5,
                -2.5,
                100.0,
                -100.0,
                1e-3,
                0.49999997,
            ]
        if special:
            edges = edges[:size]
            out[: len(edges)] = np.array(edges, np.float64 if dtype.is_float else object).astype(dtype.numpy)
    return out.reshape(dims)


def pairs(dtype: DType, *key: object) -> tuple[Any, Any]:
    """Two arrays in which every edge value meets every other one."""
    edges = values(dtype, (18,), *key)
    return np.repeat(edges, 18), np.tile(edges, 18)


# -------------------------------------------------------------------------------------------------------- elementwise

ULPS: dict[str, float] = {
    "exponential": 2, "exponential_minus_one": 4, "log": 2, "log_plus_one": 4, "logistic": 4, "tanh": 6, "sqrt": 1,
    "rsqrt": 2, "cbrt": 4, "sine": 4, "cosine": 4, "tan": 8, "asin": 8, "acos": 8, "atan": 6, "sinh": 16, "cosh": 16,
    "asinh": 8, "acosh": 8, "atanh": 16, "erf": 8, "erfc": 32, "erf_inv": 32, "lgamma": 64, "digamma": 64,
    "power": 16, "atan2": 8, "divide": 1, "add": 0, "subtract": 0, "multiply": 0,
}  # fmt: skip
"""Bounds for floats of 32 bits and more that good libraries meet; narrower ones are rounded once: 1."""

_COMPLEX_ULPS = 32
_UNIT_SCALE = {"lgamma": 1.0, "digamma": 4.0, "sine": 1.0, "cosine": 1.0}
"""Operators with zeros away from 0, where no float library has relative accuracy: errors count against this size."""

_TYPED = {"convert", "bitcast_convert", "reduce_precision", "compare", "select", "complex", "optimization_barrier"}


def _ulps(op: str, dtype: DType) -> float:
    if op not in ULPS:
        return _COMPLEX_ULPS if dtype.is_complex and op in ("abs", "sign") else 0
    if dtype.is_complex:
        return _COMPLEX_ULPS
    if not dtype.is_float:
        return 0
    return ULPS[op] if dtype.bits >= 32 else min(ULPS[op], 1)


def _elementwise() -> list[Case]:
    out = []
    for op in all_operators():
        if op.is_composite or ELEMENTWISE not in op.traits or op.name in _TYPED:
            continue
        for dtype in ALL:
            if not all(o.constraint.accepts(dtype) for o in op.operands):
                continue
            if dtype is dtypes.f8e8m0fnu and op.name in ("lgamma", "power"):
                continue  # results near 0, which this type has not
            makers: dict[int, Callable[[DType], Any]] = {1: lambda d: (values(d, (5, 7)),), 2: pairs, 3: _triples}
            arrays = makers[len(op.operands)](dtype)
            scale = _UNIT_SCALE.get(op.name) if dtype.is_float else None
            out.append(_case(op.name, dtype.name, arrays, ulps=_ulps(op.name, dtype), scale=scale))
        first = next(d for d in ALL if all(o.constraint.accepts(d) for o in op.operands))
        empty = tuple(values(first, (0, 3)) for _ in op.operands)
        out.append(_case(op.name, f"{first}-empty", empty))
        if len(op.operands) == 2:
            mixed = (values(first, (2, 1, 3), "l", special=False), values(first, (4, 1), "r", special=False))
            out.append(_case(op.name, f"{first}-broadcast", mixed, ulps=_ulps(op.name, first)))
            out.append(_case(op.name, f"{first}-scalar", (mixed[0], mixed[1][0, 0]), ulps=_ulps(op.name, first)))
    return out


def _triples(dtype: DType) -> tuple[Any, Any, Any]:
    edges = values(dtype, (9,))
    return np.repeat(edges, 81), np.tile(np.repeat(edges, 9), 9), np.tile(edges, 81)


def _case(op: str, label: str, arrays: Any, **attributes: Any) -> Case:
    """A case that applies one operator to its inputs; `ulps` and `scale` are the case's, all else attributes."""
    ulps, scale = attributes.pop("ulps", 0), attributes.pop("scale", None)
    arrays = tuple(np.asarray(a) for a in arrays)
    variadic = get(op).groups
    name = op + "_" if op in ("not", "and", "or", "if", "while") else op

    def body(b: Any, *xs: Any) -> Any:
        return getattr(b, name)(xs, **attributes) if variadic else getattr(b, name)(*xs, **attributes)

    return Case(f"{op}:{label}", op, arrays, body, ulps, scale)


def _typed() -> list[Case]:
    out = []
    for source in ALL:
        x = values(source, (6, 7), "convert", low=-300, high=300)
        out += [_case("convert", f"{source}-{d}", (x,), dtype=d) for d in ALL if d is not source]
        out += [_case("select", source.name, (values(dtypes.bool_, (6, 1)), x, values(source, (7,), "y")))]
        out += [_case("optimization_barrier", source.name, (x,))]
        directions = ("eq", "ne") if source.is_complex else ("eq", "ne", "lt", "le", "gt", "ge")
        out += [_case("compare", f"{source}-{d}", pairs(source), direction=d) for d in directions]
    for source in FLOATS:
        x = values(source, (40,), "saturate", low=-70000, high=70000)
        out += [_case("convert", f"{source}-{d}-saturate", (x,), dtype=d, saturate=True) for d in SMALL_FLOATS]
        for e, m in ((5, 10), (8, 7), (4, 3)):
            y = values(source, (5, 9))
            out += [_case("reduce_precision", f"{source}-{e}-{m}", (y,), exponent_bits=e, mantissa_bits=m)]
    wide = rng("bitcast").integers(0, 256, (3, 8), np.uint8)
    out += [_case("bitcast_convert", f"u8-{d}", (wide,), dtype=d) for d in (dtypes.i8, dtypes.u4, dtypes.i4)]
    for d in (dtypes.u16, dtypes.i32, dtypes.f32, dtypes.f64):
        grouped = wide.reshape(3, -1, d.itemsize)
        out += [_case("bitcast_convert", f"u8[{d.itemsize}]-{d}", (grouped,), dtype=d)]
    out += [
        _case("bitcast_convert", f"f32-{d}", (values(dtypes.f32, (4, 5)),), dtype=d) for d in (dtypes.i32, dtypes.u16)
    ]
    for d in (dtypes.f32, dtypes.f64):
        out += [_case("complex", d.name, (values(d, (4, 5), special=False), values(d, (5,), "im", special=False)))]
    return out


# -------------------------------------------------------------------------------------------------------------- shape


def _shape() -> list[Case]:
    out = []
    for d in ALL:
        x = values(d, (2, 3, 4), "shape")
        out += [
            _case("broadcast_in_dim", d.name, (values(d, (3, 1)),), dims=(2, 3, 5), broadcast_dimensions=(1, 2)),
            _case("reshape", d.name, (x,), dims=(4, 6)),
            _case("transpose", d.name, (x,), permutation=(2, 0, 1)),
            _case("concatenate", d.name, (x, values(d, (2, 1, 4), "more")), axis=1),
            _case("slice", d.name, (x,), starts=(0, 1, 1), limits=(2, 3, 4), strides=(1, 1, 2)),
            _case(
                "pad",
                d.name,
                (x, values(d, (), "pad", special=False)),
                low=(1, -1, 0),
                high=(0, 2, -1),
                interior=(0, 1, 2),
            ),
            _case("reverse", d.name, (x,), axes=(0, 2)),
        ]
        if not d.is_bool:
            out.append(_case("iota", d.name, (), dtype=d, dims=(2, 3, 2), axis=1))
    empty = values(dtypes.f32, (2, 0, 3))
    out += [
        _case("iota", "i64-empty", (), dtype=dtypes.i64, dims=(0,), axis=0),
        _case("dimensions", "vector", (), dims=(2, 3)),
        _case("dimensions", "scalar", (), dims=(7,), scalar=True),
        _case("dimensions", "empty", (), dims=()),
        _case("broadcast_in_dim", "scalar", (np.float32(2.5),), dims=(2, 3), broadcast_dimensions=()),
        _case("broadcast_in_dim", "empty", (empty,), dims=(4, 2, 0, 3), broadcast_dimensions=(1, 2, 3)),
        _case("reshape", "empty", (empty,), dims=(0, 5)),
        _case("reshape", "scalar", (values(dtypes.f32, (1, 1)),), dims=()),
        _case("transpose", "empty", (empty,), permutation=(1, 2, 0)),
        _case("concatenate", "empty", (empty, values(dtypes.f32, (2, 4, 3))), axis=1),
        _case("slice", "empty", (empty,), starts=(1, 0, 3), limits=(1, 0, 3), strides=(1, 1, 1)),
        _case("pad", "empty", (empty, np.float32(1)), low=(0, 1, 0), high=(0, 1, 0), interior=(0, 3, 0)),
        _case("reverse", "empty", (empty,), axes=(1,)),
    ]
    return out


def cases() -> list[Case]:
    """The cases of this file, in a fixed order; `cases_of_families` has the others."""
    return [*_elementwise(), *_typed(), *_shape()]
