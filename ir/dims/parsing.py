"""The size that a text spells: the inverse of `str`, safe on hostile text."""

import re
from typing import NoReturn

from .polynomial import FUNCTIONS, MAX_BITS, MAX_DEPTH, MAX_TEXT, DimError, Size, checked, sum_of, symbol

_TOKEN = re.compile(r"[ \t]*(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|(//|[-+*%(),]))")


def parse(text: str) -> Size:
    """The size that a text such as `2*B*S + H//2 - 1` or `bcast(A, B)` spells, with Python's precedence.

    The inverse of `str`.  Raises DimError with the column, counted from 1.
    """
    if len(text) > MAX_TEXT:
        raise DimError(f"column {MAX_TEXT + 1}: size expression is longer than {MAX_TEXT} characters")
    parser = _Parser(text)
    size = parser.sum(0)
    if parser.token:
        parser.fail("an operator or the end")
    return size


class _Parser:
    """Recursive descent: sum = product {+- product}; product = factor {* // % factor}; factor = {-} primary."""

    __slots__ = ("column", "end", "source", "token")

    def __init__(self, source: str) -> None:
        self.source = source
        self.end = 0
        self.token = ""
        self.advance()

    def advance(self) -> str:
        """Step to the next token ("" at the end) and return the one left behind."""
        last = self.token
        found = _TOKEN.match(self.source, self.end)
        if found:
            self.token = found[found.lastindex or 0]
            self.end = found.end()
            self.column = self.end - len(self.token) + 1
            return last
        rest = self.source[self.end :].lstrip(" \t")
        self.column, self.token = len(self.source) - len(rest) + 1, ""
        self.end = len(self.source)
        if rest:
            raise DimError(f"column {self.column}: unexpected {rest[0]!r} in a size expression")
        return last

    def fail(self, expected: str) -> NoReturn:
        raise DimError(f"column {self.column}: expected {expected}, found {self.token[:40] or 'the end of the size'}")

    def expect(self, token: str) -> None:
        if self.token != token:
            self.fail(token)
        self.advance()

    def sum(self, depth: int) -> Size:
        terms = [self.product(depth)]
        while self.token in ("+", "-"):
            negative = self.advance() == "-"
            term = self.product(depth)
            terms.append(-term if negative else term)
        return sum_of(terms) if len(terms) > 1 else terms[0]

    def product(self, depth: int) -> Size:
        size = self.factor(depth)
        while self.token in ("*", "//", "%"):
            column = self.column
            operator = self.advance()
            other = self.factor(depth)
            try:
                size = size * other if operator == "*" else size // other if operator == "//" else size % other
                if isinstance(size, int):
                    checked(size)
            except ZeroDivisionError:
                raise DimError(f"column {column}: division by zero") from None
            except DimError as error:
                raise DimError(f"column {column}: {error}") from None
        return size

    def factor(self, depth: int) -> Size:
        negative = False
        while self.token == "-":
            self.advance()
            negative = not negative
        size = self.primary(depth)
        return -size if negative else size

    def primary(self, depth: int) -> Size:
        column, token = self.column, self.token
        if depth > MAX_DEPTH:
            raise DimError(f"column {column}: size expression nests deeper than {MAX_DEPTH}")
        if token == "(":
            self.advance()
            size = self.sum(depth + 1)
            self.expect(")")
            return size
        if token.isdigit():
            if len(token) > MAX_BITS // 3:
                raise DimError(f"column {column}: number of {len(token)} digits in a size expression")
            self.advance()
            return int(token)
        if not token or not (token[0].isalpha() or token[0] == "_"):
            self.fail("a number, a symbol, - or (")
        self.advance()
        if self.token != "(":
            return symbol(token)
        if token not in ("max", "min", "bcast"):
            raise DimError(f"column {column}: unknown function {token}; expected max, min or bcast")
        arguments: list[Size] = []
        while not arguments or self.token == ",":
            self.advance()
            arguments.append(self.sum(depth + 1))
        self.expect(")")
        try:
            return FUNCTIONS[token](*arguments)
        except DimError as error:
            raise DimError(f"column {column}: {error}") from None
