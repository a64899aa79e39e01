"""Writing statements: names, indentation, and which expressions are assigned to a name before they are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...ir.dims import Size
from ...ir.dtypes import DType
from .context import ATOM
from .expression import Expr, identifier
from .signature import Frame
from .wrapping import COLUMNS, wrapped


class Statements:
    """The lines of the function being written.  The emitter adds graphs, functions and constants to it."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._indent = 4
        self._frame = Frame(None)

    @contextmanager
    def tentative(self) -> Iterator[list[str]]:
        """Statements written inside it are taken back and stand in the list that it gives."""
        count, taken = len(self._lines), list[str]()
        yield taken
        taken += self._lines[count:]
        del self._lines[count:]

    def fresh(self, hint: str) -> str:
        """A name that the function does not use yet."""
        base = identifier(hint)
        name, number = base, 0
        while name in self._frame.names:
            number += 1
            name = f"{base}_{number}"
        self._frame.names.add(name)
        return name

    def line(self, text: str) -> None:
        """One statement."""
        self._lines += wrapped(text, self._indent)

    @contextmanager
    def indented(self, head: str) -> Iterator[None]:
        """A compound statement: what is written inside is its body."""
        self.line(head)
        self._indent += 4
        count = len(self._lines)
        yield
        if len(self._lines) == count:
            self.line("pass")
        self._indent -= 4

    def bind(self, expr: Expr, hint: str | None = None) -> None:
        """Assign to a name, unless it is plain."""
        core = expr.core
        if core.is_plain:
            return
        self.settle(core)
        text = self._short_enough(core)
        name = self.fresh(hint or expr.hint or core.hint or "t")
        self.line(f"{name} = {text}")
        core.variable = name

    def assign(self, names: Sequence[str], exprs: Sequence[Expr]) -> None:
        """`a, b = x, y`, all at once."""
        for expr in exprs:
            self.settle(expr)
        self.line(f"{', '.join(names)} = {', '.join(e.text() for e in exprs)}")

    def written(self, expr: Expr) -> str:
        """Source of an expression, ready to stand in a statement written next."""
        self.settle(expr)
        return self._short_enough(expr)

    def _short_enough(self, expr: Expr) -> str:
        """The text; inner values are assigned to names until it fits a line."""
        while self._indent + len(expr.text()) + 24 > COLUMNS:
            inner = [e for e in _descendants(expr) if not e.is_plain and e.hint is not None]
            if not inner:
                break
            self.bind(max(inner, key=lambda e: len(e.text())))
        return expr.text()

    def settle(self, expr: Expr) -> None:
        """Assign what the expression would write more than once to names."""
        counts: dict[Expr, int] = {}
        order: list[Expr] = []

        def visit(e: Expr) -> None:
            for child in e.children():
                core = child.core
                if core.is_plain:
                    continue
                counts[core] = counts.get(core, 0) + 1
                if counts[core] == 1:
                    visit(core)
                    order.append(core)

        visit(expr)
        for e in order:
            if counts[e] > 1:
                self.bind(e)

    def unpack(
        self, x: Expr, parts: Sequence[tuple[DType, Sequence[Size]]], hints: Sequence[str] = ()
    ) -> tuple[Expr, ...]:
        """See `Context.unpack`."""
        text = self.written(x)
        names = [self.fresh(hints[i] if i < len(hints) else "t") for i in range(len(parts))]
        self.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {text}")
        out = []
        for name, (dtype, dims) in zip(names, parts, strict=True):
            made = Expr((name,), ATOM, dtype, tuple(dims), trivial=True)
            made.variable = name
            out.append(made)
        return tuple(out)


def _descendants(expr: Expr) -> Iterator[Expr]:
    for child in expr.children():
        core = child.core
        if core is not expr:
            yield core
            yield from _descendants(core)
