"""The errors a user can meet.  All derive from `IrcError`; a bare traceback of another kind is a defect of irc."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches


class IrcError(Exception):
    """Base of every error that irc raises for a fault of the model, the input or the request."""


class FormatError(IrcError):
    """A file (container, text, ONNX) that is not what it claims to be."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a model: a rule id (`V007`), the place, what was expected and got, and optional notes."""

    rule: str
    message: str
    where: str = ""
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return "\n".join([f"{place}error[{self.rule}]: {self.message}", *(f"  note: {n}" for n in self.notes)])


class DiagnosticError(IrcError):
    """An error made of several findings, all reported at once.  `.diagnostics` holds them."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__("\n".join(str(d) for d in self.diagnostics))


class VerifyError(DiagnosticError):
    """A model that breaks a rule of the verifier."""


class InferenceError(IrcError):
    """Operands or attributes that an operator's definition does not allow."""


class UnsupportedError(DiagnosticError):
    """Operators that a front door cannot import or a target cannot run; lists all of them."""


class AssumptionError(IrcError):
    """A call whose concrete sizes break an assumption that the model was typed under."""


class InputError(IrcError):
    """A call with a wrong input: name, rank, dtype or shape; says expected and got."""


LISTED = 12
"""Names that an error lists."""


def did_you_mean(name: str, known: Iterable[str], command: str = "") -> str:
    """`"; did you mean 'x'?"`, or what there is when nothing is close.  Starts with a separator.

    Of many names the first are listed, and `command`, which lists all.
    """
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    if len(names) <= LISTED:
        return f"; expected one of {', '.join(names)}"
    rest = f"`{command}` lists all {len(names)}" if command else f"{len(names)} in all"
    return f"; expected one of {', '.join(names[:LISTED])}, ... ({rest})"
