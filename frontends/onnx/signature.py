"""ONNX types as IR types: element types, symbolic dims of the graph inputs, and the way back for schema functions."""

from __future__ import annotations

import re

import onnx

from ...ir import dims as sizes
from ...ir.dims import Dim, Size
from ...ir.dtypes import DType
from ...ir.errors import IrcError
from ...ir.types import OptionalType, SequenceType, TensorType, Type
from .reading import Source

_RESERVED = frozenset("max min mod floordiv bcast".split())
_EXPRESSION = re.compile(r"[+*/%(),^<>=]|-\s*\d|\s-\s")
_ANONYMOUS = re.compile(r"|\?|-?\d+|None|none")

ONNX_NAMES = {
    "f64": "double", "f32": "float", "f16": "float16", "bf16": "bfloat16", "bool": "bool", "string": "string",
    "f8e4m3fn": "float8e4m3fn", "f8e4m3fnuz": "float8e4m3fnuz", "f8e5m2": "float8e5m2", "f8e5m2fnuz": "float8e5m2fnuz",
    "f8e8m0fnu": "float8e8m0", "f4e2m1fn": "float4e2m1", "c64": "complex64", "c128": "complex128",
    **{f"{s}{b}": f"{'u' if s == 'u' else ''}int{b}" for s in "iu" for b in (2, 4, 8, 16, 32, 64)},
}  # fmt: skip
"""Element types as ONNX's type strings spell them."""
FROM_ONNX_NAMES = {spelled: DType.of(name) for name, spelled in ONNX_NAMES.items()}


class Symbols:
    """Symbolic dims of graph inputs: equal names are one symbol, anything that is not a plain name is a fresh one.

    `used` lists the symbols in order of first use.
    """

    def __init__(self, inputs: list[onnx.ValueInfoProto]) -> None:
        self._named: dict[str, str] = {}
        self._taken: set[str] = set(_RESERVED)
        self.used: list[str] = []
        for value in inputs:
            for dim in _all_dims(value.type):
                name = dim.dim_param
                if name and not is_anonymous(name) and name not in self._named:
                    self._named[name] = self._unique(name)

    @property
    def originals(self) -> dict[str, str]:
        """Symbols whose name in the ONNX model is another, with that name."""
        return {symbol: name for name, symbol in self._named.items() if symbol != name}

    def _unique(self, wanted: str) -> str:
        base = re.sub(r"[^A-Za-z0-9_]+", "_", wanted).strip("_") or "d"
        base = base if not base[0].isdigit() else f"d{base}"
        name, i = base, 1
        while name in self._taken:
            name, i = f"{base}_{i}", i + 1
        self._taken.add(name)
        return name

    def size(self, dim: onnx.TensorShapeProto.Dimension, owner: str, axis: int) -> Size:
        """The size of one declared dim of the input `owner`."""
        if dim.dim_value > 0:
            return int(dim.dim_value)
        name = self._named.get(dim.dim_param) or self._unique(f"{owner}_d{axis}")
        if name not in self.used:
            self.used.append(name)
        return sizes.symbol(name)


def is_anonymous(name: str) -> bool:
    """Whether a dim_param names nothing that could be shared: `?`, a number, or an expression such as `floor(h/2)`."""
    return bool(_ANONYMOUS.fullmatch(name.strip()) or _EXPRESSION.search(name))


def _all_dims(type_: onnx.TypeProto) -> list[onnx.TensorShapeProto.Dimension]:
    while True:
        match type_.WhichOneof("value"):
            case "tensor_type":
                return list(type_.tensor_type.shape.dim)
            case "sequence_type":
                type_ = type_.sequence_type.elem_type
            case "optional_type":
                type_ = type_.optional_type.elem_type
            case _:
                return []


def type_of(type_: onnx.TypeProto, owner: str, symbols: Symbols | None, source: Source) -> Type:
    """The type of an input; without `symbols` dims are dropped (a hint of which only the element type counts)."""
    wrappers: list[type[SequenceType] | type[OptionalType]] = []
    while True:
        match type_.WhichOneof("value"):
            case "tensor_type":
                break
            case "sequence_type":
                wrappers.append(SequenceType)
                type_ = type_.sequence_type.elem_type
            case "optional_type":
                wrappers.append(OptionalType)
                type_ = type_.optional_type.elem_type
            case other:
                raise source.fail(
                    f"{owner!r} has the type {other or 'nothing'}; expected a tensor, sequence or optional"
                )
        if len(wrappers) > 8:
            raise source.fail(f"{owner!r} has a type nested more than 8 deep")
    tensor = type_.tensor_type
    try:
        dtype = DType.from_onnx(tensor.elem_type)
    except IrcError as error:
        raise source.fail(f"{owner!r} has an unusable type: {error}") from None
    dims: tuple[Size, ...] | None = None
    if tensor.HasField("shape") and symbols is not None and SequenceType not in wrappers:
        dims = tuple(symbols.size(d, owner, i) for i, d in enumerate(tensor.shape.dim))
    out: Type = TensorType(dtype, dims)
    for wrapper in reversed(wrappers):
        out = wrapper(out)
    return out


def onnx_type(type_: Type) -> onnx.TypeProto:
    """The way back, for schema functions that depend on types; symbolic dims become dim_params."""
    if isinstance(type_, SequenceType):
        return onnx.helper.make_sequence_type_proto(onnx_type(type_.element))
    if isinstance(type_, OptionalType):
        return onnx.helper.make_optional_type_proto(onnx_type(type_.element))
    shape = None if type_.dims is None else [str(d) if isinstance(d, Dim) else d for d in type_.dims]
    return onnx.helper.make_tensor_type_proto(type_.dtype.onnx, shape)
