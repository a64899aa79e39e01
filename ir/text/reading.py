"""Reads sizes, types, elements of constants and attribute values from tokens.  The spelling half is in literals.py."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from .. import dims as sizes
from .. import dtypes
from ..attributes import AttributeKind, Symbol
from ..data import ArrayData, Data, SplatData
from ..dims import DimError, Size
from ..dtypes import DType
from ..facts import Ints
from ..types import OptionalType, SequenceType, TensorType, Type
from .lexer import Cursor, is_identifier, suggestion, unquote
from .literals import DoesNotFit, FloatBits, array_of, part_type

DTYPES: Final = {d.name: d for d in dtypes.ALL}
MAX_RANK: Final = 64  # NumPy's
MAX_BYTES: Final = 1 << 62
MAX_DIGITS: Final = 1000
MAX_TYPE_NESTING: Final = 16
MAX_NESTING: Final = 64  # of lists in a literal


class Reader(Cursor):
    """A cursor that reads the leaves of the grammar."""

    def __init__(self, text: str, filename: str) -> None:
        super().__init__(text, filename)
        self._sizes: dict[str, Size] = {}
        self._types: dict[str, TensorType] = {}

    # Numbers and elements.

    def integer(self, what: str = "an integer") -> int:
        start = self.at
        negative = self.accept("-")
        digits = self.token
        if not (digits.isdecimal() and digits.isascii()):
            raise self.expected(what, start)
        if len(digits) > MAX_DIGITS:
            raise self.error(f"an integer of {len(digits)} digits; at most {MAX_DIGITS} are read")
        self.at += 1
        return -int(digits) if negative else int(digits)

    def number(self, what: str = "a number") -> float | FloatBits:
        """A float: a decimal, inf, nan, or bits in hexadecimal."""
        start = self.at
        negative = self.accept("-")
        token = self.token
        if token[:2] == "0x" and not negative:
            if len(token) > 18:
                raise self.error("more than 64 bits in hexadecimal")
            self.at += 1
            return FloatBits(int(token, 16))
        if token == "nan" and not negative:
            self.at += 1
            return math.nan
        if token != "inf" and not ("0" <= token[0] <= "9" and token[:2] != "0x"):
            raise self.expected(what, start)
        if len(token) > MAX_DIGITS:
            raise self.error(f"a number of {len(token)} characters; at most {MAX_DIGITS} are read")
        self.at += 1
        value = float(token)
        return -value if negative else value

    def boolean(self) -> bool:
        if self.accept("true"):
            return True
        if self.accept("false"):
            return False
        raise self.expected("true or false")

    def element(self, dtype: DType) -> Any:
        """One element of a constant, not yet rounded to its type."""
        match dtype.kind:
            case "bool":
                return self.boolean()
            case "int" | "uint":
                return self.integer(f"an integer ({dtype})")
            case "float":
                return self.number(f"a number ({dtype})")
            case "complex":
                self.expect("(", f"and two numbers ({dtype})")
                real = self.element(part_type(dtype))
                self.expect(",")
                imaginary = self.element(part_type(dtype))
                self.expect(")")
                return real, imaginary
            case _:
                return self.string()

    def array(self, values: list[Any], places: list[int], dtype: DType) -> np.ndarray[Any, Any]:
        try:
            return array_of(values, dtype)
        except DoesNotFit as error:
            raise self.error(f"this value does not fit in an element of type {dtype}", places[error.index]) from None

    def scalar(self, dtype: DType) -> Data:
        """A bare element as a rank-0 constant."""
        start = self.at
        return ArrayData(self.array([self.element(dtype)], [start], dtype).reshape(()), dtype)

    def contents(self, type_: Type, at: int) -> Data:
        """Elements of a constant: nested lists by shape, `splat x`, or a bare element.  Its type is token `at`."""
        dtype, dims = self.static(type_, at)
        if self.accept("splat"):
            start = self.at
            value = self.array([self.element(dtype)], [start], dtype)
            return SplatData(value.reshape(()), dtype, dims)
        if not math.prod(dims):
            self.expect("[", "]: the constant is empty")
            self.expect("]", ": the constant is empty")
            return ArrayData(np.zeros(dims, dtype.numpy), dtype)
        values: list[Any] = []
        places: list[int] = []
        self._nested(dtype, dims, 0, values, places)
        return ArrayData(self.array(values, places, dtype).reshape(dims), dtype)

    def _nested(self, dtype: DType, dims: tuple[int, ...], axis: int, values: list[Any], places: list[int]) -> None:
        if axis == len(dims):
            places.append(self.at)
            values.append(self.element(dtype))
            return
        self.expect("[", f"and {dims[axis]} elements (axis {axis})")
        for i in range(dims[axis]):
            if i:
                self.expect(",", f"and {dims[axis] - i} more elements (axis {axis})")
            self._nested(dtype, dims, axis + 1, values, places)
        self.expect("]", f"after {dims[axis]} elements (axis {axis})")

    def static(self, type_: Type, at: int) -> tuple[DType, tuple[int, ...]]:
        """Element type and dims of a constant: numbers, of which a computer can hold the product."""
        if not isinstance(type_, TensorType) or not type_.is_static:
            raise self.error(f"a constant needs a type with numbers for dims, not {type_}", at)
        dims = tuple(int(d) for d in type_.shape)
        if len(dims) > MAX_RANK:
            raise self.error(f"a constant of rank {len(dims)}; at most {MAX_RANK} is possible", at)
        if math.prod(max(d, 1) for d in dims) * type_.dtype.itemsize > MAX_BYTES:
            raise self.error(f"a constant of type {type_} is too large for any memory", at)
        return type_.dtype, dims

    def constant(self) -> Data:
        """A constant with its type: `i64[2] [1, 2]`."""
        start = self.at
        return self.contents(self.type(), start)

    # Sizes and types.

    def size(self) -> Size:
        """A size expression, as far as it goes."""
        tokens, start = self.tokens, self.at
        stop = self._end_of_size(start)
        text = " ".join(tokens[start:stop])
        size = self._sizes.get(text)
        if size is None:
            try:
                size = self._sizes[text] = sizes.parse(text)
            except DimError as error:
                raise self.error(f"in this size: {error}") from None
        self.at = stop
        return size

    def _end_of_size(self, at: int) -> int:
        """The first token that cannot belong to the size starting at `at`; whether the size is right is not judged."""
        tokens, depth, operand = self.tokens, 0, True
        while True:
            token = tokens[at]
            if operand:
                if token == "(":
                    depth += 1
                elif token.isdecimal() or is_identifier(token):
                    operand = False
                elif token != "-":
                    return at
            elif token in ("+", "-", "*", "//", "%"):
                operand = True
            elif token[0] == "%":  # H%2: the lexer takes it for a value's name
                pass
            elif token == "(" and is_identifier(tokens[at - 1]):
                depth, operand = depth + 1, True
            elif token == "," and depth:
                operand = True
            elif token == ")" and depth:
                depth -= 1
            else:
                return at
            at += 1

    def type(self) -> Type:
        wrappers: list[Any] = []
        while self.token in ("sequence", "optional"):
            if len(wrappers) == MAX_TYPE_NESTING:
                raise self.error(f"a type nests deeper than {MAX_TYPE_NESTING}")
            wrappers.append(SequenceType if self.token == "sequence" else OptionalType)
            self.at += 1
            self.expect("<")
        out: Type = self.tensor_type()
        for wrapper in reversed(wrappers):
            self.expect(">")
            out = wrapper(out)
        return out

    def tensor_type(self) -> TensorType:
        tokens, start = self.tokens, self.at
        dtype = DTYPES.get(tokens[start])
        if dtype is None or tokens[start + 1] != "[":
            known = suggestion(tokens[start], DTYPES) if dtype is None and is_identifier(tokens[start]) else ""
            raise self.expected(f"a type such as f32[B,64]{known and ' (' + known[2:] + ')'}")
        try:
            stop = tokens.index("]", start) + 1
        except ValueError:
            raise self.error("the dims of this type are not closed by ]") from None
        text = " ".join(tokens[start:stop])
        type_ = self._types.get(text)
        if type_ is None:
            self.at = start + 2
            type_ = self._types[text] = TensorType(dtype, self._dims())
        self.at = stop
        return type_

    def _dims(self) -> tuple[Size, ...] | None:
        if self.accept("*"):
            self.expect("]")
            return None
        dims: list[Size] = []
        while not self.accept("]"):
            if dims:
                self.expect(",", "or ]")
            place = self.at
            dim = self.size()
            if isinstance(dim, int) and not 0 <= dim < MAX_BYTES:
                raise self.error(f"{dim} is no size of an axis", place)
            dims.append(dim)
        return tuple(dims)

    def ints(self) -> Ints:
        """Known elements of an input: `[3, B, _]`."""
        out: list[Size | None] = []
        self.expect("[")
        while not self.accept("]"):
            if out:
                self.expect(",", "or ]")
            out.append(None if self.accept("_") else self.size())
        return tuple(out)

    # Attributes.

    def attribute(self, kind: AttributeKind) -> Any:
        """A value of a declared kind."""
        if kind.optional and self.accept("none"):
            return None
        return self._attribute(kind, kind.depth)

    def _attribute(self, kind: AttributeKind, depth: int) -> Any:
        if depth:
            self.expect("[", f"({kind})")
            out: list[Any] = []
            while not self.accept("]"):
                if out:
                    self.expect(",", "or ]")
                out.append(self._attribute(kind, depth - 1))
            return tuple(out)
        match kind.base:
            case "int":
                return self.integer()
            case "float":
                return self.python_float()
            case "bool":
                return self.boolean()
            case "str":
                return self.string(f"a string{f' ({kind})' if kind.choices else ''}")
            case "size":
                return self.size()
            case "dtype":
                return self.dtype()
            case "type":
                return self.type()
            case "symbol":
                return Symbol(self.sigil("@", "a function's name (@name)"))
            case _:
                return self.payload(0)

    def dtype(self) -> DType:
        dtype = DTYPES.get(self.token)
        if dtype is None:
            raise self.expected(f"an element type (one of {', '.join(DTYPES)})")
        self.at += 1
        return dtype

    def python_float(self) -> float:
        value = self.number()
        return float(array_of([value], dtypes.f64)[0]) if isinstance(value, FloatBits) else value

    def payload(self, depth: int) -> Any:
        """Any literal; its Python type follows from how it is spelled."""
        token = self.token
        if depth > MAX_NESTING:
            raise self.error(f"a literal nests deeper than {MAX_NESTING}")
        match token:
            case "none" | "true" | "false":
                self.at += 1
                return {"none": None, "true": True, "false": False}[token]
            case "[":
                return self._payload_list(depth)
            case "{":
                return self._payload_mapping(depth)
            case "size" if self.tokens[self.at + 1] == "(":
                self.at += 2
                size = self.size()
                self.expect(")")
                return size
            case "bytes":
                self.at += 1
                return self._bytes()
            case "sequence" | "optional":
                return self.type()
        if token[0] == '"':
            return self.string()
        if token[0] == "@":
            return Symbol(self.sigil("@", "a function's name (@name)"))
        if token in DTYPES:
            if self.tokens[self.at + 1] != "[":
                return self.dtype()
            start = self.at
            type_ = self.tensor_type()
            return type_ if self.token in (",", "]", "}") else self.contents(type_, start)
        digits = self.tokens[self.at + 1] if token == "-" else token
        return self.integer() if digits.isdecimal() else self.python_float()

    def _payload_list(self, depth: int) -> tuple[Any, ...]:
        self.expect("[")
        out: list[Any] = []
        while not self.accept("]"):
            if out:
                self.expect(",", "or ]")
            out.append(self.payload(depth + 1))
        return tuple(out)

    def _payload_mapping(self, depth: int) -> dict[str, Any]:
        self.expect("{")
        out: dict[str, Any] = {}
        while not self.accept("}"):
            if out:
                self.expect(",", "or }")
            name = self.key("a key")
            self.expect("=")
            out[name] = self.payload(depth + 1)
        return out

    def _bytes(self) -> bytes:
        text = unquote(self.token) if self.token[0] == '"' else None
        try:
            value = bytes.fromhex(text) if text is not None else None
        except ValueError:
            value = None
        if value is None:
            raise self.expected("a string of hexadecimal digits")
        self.at += 1
        return value
