"""What `check` and `rewrite` of a fusion get as `m`: captured values, questions about dims, the builder, refusal."""

from __future__ import annotations

from typing import Any, NoReturn

from ...ir import dims as sizes
from ...ir.build import Builder
from ...ir.dims import Size
from ...ir.graph import Node, Value
from ...ir.model import Model
from ...ir.types import TensorType
from .matching import source
from .scalars import number


class Refused(Exception):
    """A fusion does not fire here; `node` is where the reason lies."""

    def __init__(self, why: str, node: Node | None = None) -> None:
        self.node = node
        super().__init__(why)


class NotNear(Refused):
    """A fusion does not fire, and nobody would expect it to: no near miss."""


class Match:
    """One way in which a pattern fits.  Captured names are attributes: values, floats of scalars, attributes of nodes.

    A name that stands only in an absent optional part, or in another alternative, is None.
    """

    def __init__(
        self,
        model: Model,
        root: Node,
        results: tuple[Value, ...],
        nodes: dict[Node, None],
        captures: dict[str, Any],
        names: frozenset[str],
        build: Builder,
    ) -> None:
        self.model = model
        self.root = root
        self.results = results
        self.nodes = nodes
        self.build = build
        self.plan: Any = None
        """What `check` worked out for `rewrite`."""
        self._captures = captures
        self._names = names
        self._symbols: dict[str, Size] = {}

    def __getattr__(self, name: str) -> Any:
        captures = self.__dict__.get("_captures", {})
        if name in captures:
            return captures[name]
        if name in self.__dict__.get("_names", ()):
            return None
        raise AttributeError(f"the pattern captures no {name!r}; it captures {', '.join(sorted(self._names))}")

    @property
    def result(self) -> Value:
        """The value that the pattern's (first) result replaces."""
        return self.results[0]

    def need(self, condition: bool | None, why: str, *values: Value | Node | None) -> None:
        """Refuse unless the condition is True; None (cannot tell) refuses too."""
        if condition is not True:
            self.refuse(why, *values)

    def expect(self, condition: bool | None, why: str) -> None:
        """As `need`, for what tells the pattern from mere lookalikes: no near miss is recorded."""
        if condition is not True:
            raise NotNear(why)

    def refuse(self, why: str, *values: Value | Node | None) -> NoReturn:
        """Do not fire.  `values` are shown behind the reason; the first one made by a node says where it lies."""
        shown = ", ".join(v.op.name if isinstance(v, Node) else f"%{v.name or '?'}: {v.type}" for v in values if v)
        nodes = [v if isinstance(v, Node) else v.node for v in values if v is not None]
        raise Refused(f"{why} ({shown})" if shown else why, next((n for n in nodes if n is not None), None))

    def dims(self, value: Value, spelling: str) -> tuple[Size, ...]:
        """The dims of a value, one letter or number each: equal letters must be provably equal, `_` is anything."""
        letters = spelling.split()
        if not isinstance(value.type, TensorType) or value.type.dims is None:
            self.refuse(f"expected [{spelling}], the rank is unknown", value)
        if value.rank != len(letters):
            self.refuse(f"expected rank {len(letters)} [{spelling}]", value)
        for letter, dim in zip(letters, value.dims, strict=True):
            if letter == "_":
                continue
            known = int(letter) if letter.isdigit() else self._symbols.setdefault(letter, dim)
            if not equal(known, dim):
                self.refuse(f"expected {letter} = {known}, got {dim}", value)
        return value.dims

    def dim(self, letter: str) -> Size:
        """What `dims` bound a letter to."""
        return self._symbols[letter]

    def number(self, value: Value | None) -> float | None:
        """The number that fills a constant, or None."""
        return number(value)

    def source(self, value: Value) -> Value:
        """The value below conversions that lose nothing."""
        return source(value)


def equal(a: Size, b: Size) -> bool:
    """Whether two sizes are equal for all values of their symbols."""
    return a == b or sizes.equal(a, b) is True
