"""Where the axes of a value come from: reshapes, transposes and repetitions followed back to a source, as an algebra.

Every axis is a list of atoms, major first: pieces of the source's axes, and repetitions.  So any spelling of "heads
repeated for each group" (expand and reshape, tile, take, concatenation of equals) reads the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir import dims as sizes
from ...ir.build import Builder
from ...ir.dims import Size
from ...ir.graph import Constant, Node, Value
from ..pattern import equal, number


@dataclass(eq=False)
class Atom:
    """A piece of an axis of the source, or (`repeat`) an index that the value does not depend on."""

    size: Size
    repeat: bool = False


@dataclass
class Layout:
    """`axes[i]` are the atoms of the value's axis i; `source_axes` those of the source, none of them repeated."""

    source: Value
    source_axes: list[list[Atom]]
    axes: list[list[Atom]]
    factor: float = 1.0
    """The numbers that elements of the source are multiplied by on the way."""

    def split(self, atom: Atom, parts: list[Atom]) -> None:
        """Replace an atom by smaller ones everywhere."""
        for row in (*self.source_axes, *self.axes):
            if any(a is atom for a in row):
                at = next(i for i, a in enumerate(row) if a is atom)
                row[at : at + 1] = parts


_MOVES = (
    "reshape", "transpose", "broadcast_in_dim", "Tile", "take", "concatenate", "multiply", "divide", "convert",
)  # fmt: skip


def trace(value: Value, limit: int = 16) -> Layout:
    """The layout of a value; its source is as far back as the algebra can follow."""
    chain: list[Node] = []
    current = value
    while (node := current.node) is not None and node.op.name in _MOVES and len(chain) < limit:
        if not node.operands or node.operands[0] is None or not only_moves(node):
            break
        chain.append(node)
        current = node.operands[0]
    for start in range(len(chain), -1, -1):
        source = chain[start - 1].operands[0] if start else value
        assert source is not None
        layout = _forward(source, chain[:start][::-1])
        if layout is not None:
            return layout
    raise AssertionError("the empty chain is always followed")


def only_moves(node: Node) -> bool:
    """Whether elements of the first operand alone make the result: moved, repeated, scaled, widened."""
    x = node.operands[0]
    match node.op.name:
        case "concatenate":
            return all(v is x for v in node.operands)
        case "multiply" | "divide":
            return scaling(node) is not None
        case "convert":
            return x is not None and x.dtype.is_float and x.dtype.bits < node.result.dtype.bits
    return True


def scaling(node: Node) -> float | None:
    """What a multiplication or division by a number multiplies by, if the first operand has the result's rank."""
    x, y = node.operands
    by = number(y)
    if x is None or not by or not node.result.dtype.is_float or x.rank != node.result.rank:
        return None
    return 1 / by if node.op.name == "divide" else by


def _forward(source: Value, chain: list[Node]) -> Layout | None:
    axes = [[Atom(d)] for d in source.dims]
    layout = Layout(source, [list(a) for a in axes], axes)
    for node in chain:
        if not _STEPS[node.op.name](layout, node):
            return None
    return layout


def _reshape(layout: Layout, node: Node) -> bool:
    if 0 in node.result.dims:
        return False  # no size tells what it is a multiple of
    flat = [a for row in layout.axes for a in row if not equal(a.size, 1)]
    out: list[list[Atom]] = []
    for dim in node.result.dims:
        row: list[Atom] = []
        have: Size = 1
        while not equal(have, dim):
            if not flat:
                return False
            atom = flat.pop(0)
            need = sizes.floordiv(dim, have) if not (isinstance(have, int) and have == 0) else 0
            if equal(sizes.mod(need, atom.size), 0) and equal(have * need, dim):
                row.append(atom)
                have = have * atom.size
                continue
            if not (equal(have * need, dim) and equal(sizes.mod(atom.size, need), 0)):
                return False
            major, minor = Atom(need, atom.repeat), Atom(sizes.floordiv(atom.size, need), atom.repeat)
            layout.split(atom, [major, minor])
            row.append(major)
            flat.insert(0, minor)
            have = dim
        out.append(row or [Atom(1, True)])
    if flat:
        return False
    layout.axes = out
    return True


def _transpose(layout: Layout, node: Node) -> bool:
    layout.axes = [layout.axes[i] for i in node.keywords["permutation"]]
    return True


def _broadcast(layout: Layout, node: Node) -> bool:
    out = [[Atom(d, True)] for d in node.result.dims]
    x = node.operands[0]
    assert x is not None
    for axis, place in enumerate(node.keywords["broadcast_dimensions"]):
        if equal(x.dims[axis], node.result.dims[place]):
            out[place] = layout.axes[axis]
        elif not equal(x.dims[axis], 1):
            return False
    layout.axes = out
    return True


def _tile(layout: Layout, node: Node) -> bool:
    for axis, count in enumerate(node.keywords["repeats"]):
        if not equal(count, 1):
            layout.axes[axis] = _repeated(layout.axes[axis], count)
    return True


def _repeated(row: list[Atom], count: Size) -> list[Atom]:
    if len(row) == 1 and equal(row[0].size, 1):
        return [Atom(count, True)]
    return [Atom(count, True), *row]


def _concatenate(layout: Layout, node: Node) -> bool:
    axis = node.keywords["axis"]
    layout.axes[axis] = _repeated(layout.axes[axis], len(node.operands))
    return True


def _take(layout: Layout, node: Node) -> bool:
    """Indices 0 0 .. 1 1 ..: each element repeated."""
    indices, axis = node.operands[1], node.keywords["axis"]
    x = node.operands[0]
    if not isinstance(indices, Constant) or indices.data is None or indices.rank != 1 or x is None:
        return False
    size, found = x.dims[axis], indices.data.numpy()
    if not isinstance(size, int) or not size or len(found) % size:
        return False
    if not np.array_equal(found, np.repeat(np.arange(size), len(found) // size)):
        return False
    layout.axes[axis] = [*layout.axes[axis], Atom(len(found) // size, True)]
    return True


def _scale(layout: Layout, node: Node) -> bool:
    layout.factor *= scaling(node) or 1.0
    return True


_STEPS = {
    "multiply": _scale,
    "divide": _scale,
    "convert": lambda layout, node: True,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast_in_dim": _broadcast,
    "Tile": _tile,
    "concatenate": _concatenate,
    "take": _take,
}


def shaped(build: Builder, value: Value, dims: tuple[Size, ...]) -> Value:
    """The value with these dims; itself where it has them."""
    if value.rank == len(dims) and all(map(equal, value.dims, dims)):
        return value
    out: Value = build.reshape(value, dims=dims)
    return out


def is_rebuildable(layout: Layout, groups: list[list[Atom]]) -> bool:
    """Whether these groups hold every atom of the source (of size 1 or not) once, repetitions apart."""
    kept = {id(a) for group in groups for a in group}
    return all(id(a) in kept or equal(a.size, 1) for row in layout.source_axes for a in row)


def rebuilt(build: Builder, layout: Layout, source: Value, groups: list[list[Atom]]) -> Value:
    """A value of the source's dims with axes made of these atoms, repetitions left out."""
    wanted = [[a for a in group if not a.repeat] for group in groups]
    flat = [a for group in wanted for a in group]
    kept = {id(a) for a in flat}
    atoms = [a for row in layout.source_axes for a in row if id(a) in kept]
    value = shaped(build, source, tuple(a.size for a in atoms))
    permutation = tuple(next(i for i, a in enumerate(atoms) if a is b) for b in flat)
    if permutation != tuple(range(len(permutation))):
        value = build.transpose(value, permutation=permutation)
    return shaped(build, value, tuple(sizes.product([a.size for a in group]) for group in wanted))
