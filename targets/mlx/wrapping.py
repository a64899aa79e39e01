"""Breaks statements that are too long for a line at the commas and operators of their outermost brackets."""

from __future__ import annotations

COLUMNS = 120
_OPEN, _CLOSE = "([{", ")]}"


def wrapped(text: str, indent: int) -> list[str]:
    """Lines of a statement, indented; as many as it takes to stay within `COLUMNS` where brackets allow it."""
    margin = " " * indent
    if indent + len(text) <= COLUMNS:
        return [margin + text]
    start = _last_bracket(text)
    if start is None:
        return [margin + text]
    name, equals, value = text.partition(" = ")
    if equals and _match(text, start) < len(text) - 12 and indent + 4 + len(value) <= COLUMNS and "(" not in name:
        return [f"{margin}{name} = (", f"{margin}    {value}", f"{margin})"]
    head, inner, tail = text[: start + 1], text[start + 1 : _match(text, start)], text[_match(text, start) :]
    items = split(inner)
    before = head[:-1].rstrip()[-1:]
    subscript = text[start] == "[" and (before.isalnum() or before in ("_", ")", "]"))
    if len(items) > 1 or (text[start] != "(" and not subscript) or (text[start] == "(" and before.isalnum()):
        one = ", ".join(items)
        if indent + 4 + len(one) <= COLUMNS and text[start] == "(":
            body = [f"{margin}    {one}"]
        else:
            body = [line for item in items for line in wrapped(f"{item},", indent + 4)]
            body = _packed(items, indent + 4) if all(len(i) < 24 for i in items) else body
    else:
        body = wrapped(inner, indent + 4)
    return [margin + head, *body, margin + tail]


def _packed(items: list[str], indent: int) -> list[str]:
    """Short items, as many on a line as fit."""
    lines, line = [], ""
    for item in items:
        piece = f"{item},"
        if line and indent + len(line) + 1 + len(piece) > COLUMNS:
            lines.append(" " * indent + line)
            line = ""
        line = f"{line} {piece}" if line else piece
    return [*lines, " " * indent + line] if line else lines


def _last_bracket(text: str) -> int | None:
    """Where the bracket opens that closes last, if little follows it."""
    best, depth, opened, quote = None, 0, 0, ""
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in _OPEN:
            opened = i if depth == 0 else opened
            depth += 1
        elif c in _CLOSE:
            depth -= 1
            if depth == 0 and (best is None or i - opened >= _match(text, best) - best):
                best = opened
    return best


def _match(text: str, start: int) -> int:
    depth, quote = 0, ""
    for i in range(start, len(text)):
        c = text[i]
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in _OPEN:
            depth += 1
        elif c in _CLOSE:
            depth -= 1
            if depth == 0:
                return i
    raise AssertionError("brackets of emitted text match")


def split(text: str) -> list[str]:
    """Pieces between the commas that no bracket or quote holds."""
    out, depth, last, quote = [], 0, 0, ""
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in _OPEN:
            depth += 1
        elif c in _CLOSE:
            depth -= 1
        elif c == "," and depth == 0:
            out.append(text[last:i].strip())
            last = i + 1
    rest = text[last:].strip()
    return [*out, rest] if rest else out
