"""Text to tokens, and a cursor over them that reports errors with line, column and a caret.  Knows no grammar.

Tokens are plain strings, told apart by their first character; where each stands is found again only for a message.
Comments are whole lines that start with `//`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

from ..errors import FormatError

_STRING = (
    r'"(?:[^"\\\n]|\\[^\n])*+"?'  # an unterminated one is a token too, or finding that out would take quadratic time
)
_TOKEN: Final = re.compile(
    r"(?:^[ \t]*//[^\n]*+|\s)*+("
    rf"[%#@](?:{_STRING}|[A-Za-z0-9_/][A-Za-z0-9_./]*)"
    r"|[A-Za-z_][A-Za-z0-9_]*"
    r"|0x[0-9a-fA-F]+|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
    rf"|{_STRING}"
    r"|->|//|==|<=|\S)",
    re.MULTILINE,
)
_PLAIN_LABEL: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./]*")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPED: Final = re.compile(r'\\(?:(["\\])|([nrt])|u\{([0-9a-fA-F]{1,6})\})|\\')
_CONTROL: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_SHOWN: Final = 160
_MANY: Final = 5000

END: Final = "\0"
"""The token after the last one."""


def quote(text: str) -> str:
    """A string literal: backslash escapes, `\\u{hex}` for what does not print."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_CONTROL.get(c) or (c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in text) + '"'


def unquote(token: str) -> str | None:
    """The inverse of `quote`; None if the token is unterminated or holds an unknown escape."""
    if len(token) < 2 or token[-1] != '"':
        return None
    text = token[1:-1]
    if "\\" not in text:
        return text
    faulty = False

    def replaced(match: re.Match[str]) -> str:
        nonlocal faulty
        same, letter, code = match.groups()
        if same:
            return same
        if letter:
            return {"n": "\n", "r": "\r", "t": "\t"}[letter]
        if code and int(code, 16) <= 0x10FFFF:
            return chr(int(code, 16))
        faulty = True
        return ""

    out = _ESCAPED.sub(replaced, text)
    return None if faulty else out


def label(name: str) -> str:
    """A value's, constant's or function's name as it stands behind its sigil: plain if it can be, else quoted.

    Digits alone stand for "no name", so a name of digits is quoted.
    """
    return name if _PLAIN_LABEL.fullmatch(name) else quote(name)


def key(name: str) -> str:
    """A key of metadata or marks: an identifier, or quoted."""
    return name if _IDENTIFIER.fullmatch(name) else quote(name)


def is_identifier(token: str) -> bool:
    return _IDENTIFIER.fullmatch(token) is not None


class Cursor:
    """Tokens of one text, the place reached, and how to complain about it."""

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.filename = filename
        self.tokens: list[str] = _TOKEN.findall(f"{text}\n{END}")
        self.at = 0

    @property
    def token(self) -> str:
        return self.tokens[self.at]

    def error(self, message: str, at: int | None = None) -> FormatError:
        """An error at a token (default: the current one) with `file:line:column`, the line and a caret."""
        index = min(self.at if at is None else at, len(self.tokens) - 1)
        offset = next(islice(_TOKEN.finditer(f"{self.text}\n{END}"), index, None)).start(1)
        if index == len(self.tokens) - 1:
            offset = len(self.text.rstrip())
        start = self.text.rfind("\n", 0, offset) + 1
        stop = self.text.find("\n", offset)
        line = self.text[start : len(self.text) if stop < 0 else stop]
        number, column = self.text.count("\n", 0, start) + 1, offset - start
        first = max(0, column - _SHOWN // 2)
        shown = line[first : first + _SHOWN]
        caret = "".join("\t" if c == "\t" else " " for c in shown[: column - first]) + "^"
        return FormatError(f"{self.filename}:{number}:{column + 1}: error: {message}\n  {shown}\n  {caret}")

    def expected(self, what: str, at: int | None = None) -> FormatError:
        """The error that `what` should stand here."""
        index = self.at if at is None else at
        token = self.tokens[index]
        found = token if len(token) <= 40 else token[:40] + "..."
        found = found if found.isprintable() else ascii(found)
        found = "the end of the text" if index == len(self.tokens) - 1 else found
        return self.error(f"expected {what}, found {found}", at)

    def accept(self, token: str) -> bool:
        """Step over the token if it stands here."""
        if self.tokens[self.at] == token:
            self.at += 1
            return True
        return False

    def expect(self, token: str, what: str = "") -> None:
        if self.tokens[self.at] != token:
            raise self.expected(f"{token!r}{what and ' '}{what}")
        self.at += 1

    def identifier(self, what: str) -> str:
        token = self.tokens[self.at]
        if not is_identifier(token):
            raise self.expected(what)
        self.at += 1
        return token

    def string(self, what: str = "a string") -> str:
        token = self.tokens[self.at]
        if token[0] != '"':
            raise self.expected(what)
        text = unquote(token)
        if text is None:
            raise self.error(
                'this string is not terminated, or holds an escape other than \\" \\\\ \\n \\r \\t \\u{hex}'
            )
        self.at += 1
        return text

    def sigil(self, sign: str, what: str) -> str:
        """The name behind `%`, `#` or `@`."""
        token = self.tokens[self.at]
        if token[0] != sign or len(token) < 2:
            raise self.expected(what)
        name: str | None = token[1:]
        if token[1] == '"':
            name = unquote(token[1:])
        if name is None:
            raise self.error('this name is not terminated, or holds an escape other than \\" \\\\ \\n \\r \\t \\u{hex}')
        self.at += 1
        return name

    def key(self, what: str) -> str:
        """An identifier or a string."""
        return self.string() if self.tokens[self.at][0] == '"' else self.identifier(what)


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing when nothing is close (or there is too much to search)."""
    names = list(known)
    close = get_close_matches(name[:100], names, n=1) if len(names) <= _MANY else []
    return f"; did you mean {close[0]!r}?" if close else ""
