"""Canonical rewrites of operators that move elements: identities go, chains merge."""

from __future__ import annotations

from collections.abc import Callable

from ...ir import dims as sizes
from ...ir.dims import Size
from ...ir.facts import Fact
from ...ir.graph import Node, Value
from ...ir.operators import Trait
from ...ir.rewrite import Rewriter
from .table import inferred, maker, ranked, rewrite, same, same_dims, same_type


@rewrite(
    "reshape", "broadcast_in_dim", "slice", "pad", "PadMode", "Tile", "StridedSlice", "transpose", "reverse",
    "concatenate", "DepthToSpace", "SpaceToDepth", "Split",
)  # fmt: skip
def identity(rewriter: Rewriter, node: Node) -> Value | None:
    """Nothing moves: the operand itself."""
    x = node.operands[0]
    if x is None or not ranked(x) or len(node.results) != 1 or not same_type(x, node.result):
        return None
    return x if _IS_IDENTITY[node.op.name](node) else None


def _zero_padding(node: Node) -> bool:
    a = node.keywords
    return all(same(s, 0) for s in (*a["low"], *a["high"], *a.get("interior", ())))


def _whole(node: Node) -> bool:
    a = node.keywords
    return all(same(s, 0) for s in a["starts"]) and all(s == 1 for s in a["strides"])


def _in_order(axes: tuple[int, ...]) -> bool:
    return axes == tuple(range(len(axes)))


def _size_one_axes(node: Node) -> bool:
    return all(same(node.result.dims[axis], 1) for axis in node.keywords["axes"])


# What must hold besides the operand and the result having one type.
_IS_IDENTITY: dict[str, Callable[[Node], bool]] = {
    "reshape": lambda node: True,
    "broadcast_in_dim": lambda node: _in_order(node.keywords["broadcast_dimensions"]),
    "slice": _whole,
    "StridedSlice": _whole,
    "pad": _zero_padding,
    "PadMode": _zero_padding,
    "Tile": lambda node: all(same(r, 1) for r in node.keywords["repeats"]),
    "transpose": lambda node: _in_order(node.keywords["permutation"]),
    "reverse": _size_one_axes,
    "concatenate": lambda node: len(node.operands) == 1,
    "DepthToSpace": lambda node: node.keywords["blocksize"] == 1,
    "SpaceToDepth": lambda node: node.keywords["blocksize"] == 1,
    "Split": lambda node: True,
}


@rewrite("reshape")
def merge_reshapes(rewriter: Rewriter, node: Node) -> Value | None:
    inner = maker(node.operands[0], "reshape")
    if inner is None or not ranked(inner.operands[0]):
        return None
    return _value(rewriter.before(node, sources=(inner,)).reshape(inner.operands[0], dims=node.result.dims))


@rewrite("transpose")
def merge_transposes(rewriter: Rewriter, node: Node) -> Value | None:
    inner = maker(node.operands[0], "transpose")
    if inner is None:
        return None
    first, second = inner.keywords["permutation"], node.keywords["permutation"]
    return _value(
        rewriter.before(node, sources=(inner,)).transpose(
            inner.operands[0], permutation=tuple(first[i] for i in second)
        )
    )


@rewrite("transpose")
def transpose_to_reshape(rewriter: Rewriter, node: Node) -> Value | None:
    """Only axes of size 1 change their place: a reshape."""
    x = node.operands[0]
    if x is None or not ranked(x):
        return None
    moved = [axis for axis in node.keywords["permutation"] if not same(x.dims[axis], 1)]
    if moved != sorted(moved):
        return None
    return _value(rewriter.before(node).reshape(x, dims=node.result.dims))


@rewrite("transpose")
def transpose_of_broadcast(rewriter: Rewriter, node: Node) -> Value | None:
    """The broadcast places the axes where they go, if their order among themselves stays."""
    inner = maker(node.operands[0], "broadcast_in_dim")
    if inner is None or len(inner.result.uses) != 1:
        return None
    place = node.keywords["permutation"].index
    axes = tuple(place(axis) for axis in inner.keywords["broadcast_dimensions"])
    if list(axes) != sorted(axes):
        return None
    return _value(
        rewriter.before(node, sources=(inner,)).broadcast_in_dim(
            inner.operands[0], dims=node.result.dims, broadcast_dimensions=axes
        )
    )


@rewrite("reverse")
def merge_reversals(rewriter: Rewriter, node: Node) -> Value | None:
    inner = maker(node.operands[0], "reverse")
    if inner is None:
        return None
    axes = tuple(sorted({*node.keywords["axes"]} ^ {*inner.keywords["axes"]}))
    x = inner.operands[0]
    return _value(rewriter.before(node, sources=(inner,)).reverse(x, axes=axes)) if axes else x


@rewrite("broadcast_in_dim")
def merge_broadcasts(rewriter: Rewriter, node: Node) -> Value | None:
    inner = maker(node.operands[0], "broadcast_in_dim")
    if inner is None or not ranked(inner.operands[0]):
        return None
    x = inner.operands[0]
    assert x is not None
    outer_axes = node.keywords["broadcast_dimensions"]
    axes = tuple(outer_axes[a] for a in inner.keywords["broadcast_dimensions"])
    if not all(same(d, 1) or same(d, node.result.dims[a]) for d, a in zip(x.dims, axes, strict=True)):
        return None
    return _value(
        rewriter.before(node, sources=(inner,)).broadcast_in_dim(x, dims=node.result.dims, broadcast_dimensions=axes)
    )


@rewrite("broadcast_in_dim")
def broadcast_to_reshape(rewriter: Rewriter, node: Node) -> Value | None:
    """Nothing repeats, axes of size 1 appear: a reshape."""
    x = node.operands[0]
    if x is None or not ranked(x):
        return None
    placed = dict(zip(node.keywords["broadcast_dimensions"], x.dims, strict=True))
    if not all(same(d, placed.get(axis, 1)) for axis, d in enumerate(node.result.dims)):
        return None
    return _value(rewriter.before(node).reshape(x, dims=node.result.dims))


@rewrite("broadcast_in_dim")
def broadcast_of_reshape(rewriter: Rewriter, node: Node) -> Value | None:
    """The reshape before only puts in axes of size 1: the broadcast does that itself."""
    inner = maker(node.operands[0], "reshape")
    if inner is None or not ranked(inner.operands[0]):
        return None
    x = inner.operands[0]
    assert x is not None
    kept = unit_axes(x.dims, inner.result.dims)
    if kept is None or None in kept:
        return None
    outer_axes = node.keywords["broadcast_dimensions"]
    axes = tuple(outer_axes[k] for k in kept if k is not None)
    return _value(
        rewriter.before(node, sources=(inner,)).broadcast_in_dim(x, dims=node.result.dims, broadcast_dimensions=axes)
    )


@rewrite("reshape")
def reshape_of_broadcast(rewriter: Rewriter, node: Node) -> Value | None:
    """Axes of size 1 come or go after a broadcast that nothing else uses: the broadcast to the new axes."""
    inner = maker(node.operands[0], "broadcast_in_dim")
    if inner is None or len(inner.result.uses) != 1 or not ranked(inner.operands[0]):
        return None
    x = inner.operands[0]
    assert x is not None
    kept = unit_axes(inner.result.dims, node.result.dims)
    if kept is None:
        return None
    places = [kept[a] for a in inner.keywords["broadcast_dimensions"]]
    build = rewriter.before(node, sources=(inner,))
    if None in places:
        x = build.reshape(x, dims=tuple(d for d, place in zip(x.dims, places, strict=True) if place is not None))
    axes = tuple(place for place in places if place is not None)
    return _value(build.broadcast_in_dim(x, dims=node.result.dims, broadcast_dimensions=axes))


def unit_axes(old: tuple[Size, ...], new: tuple[Size, ...]) -> list[int | None] | None:
    """Where each old axis is among the new ones (None: an axis of size 1 that went), if only axes of size 1 differ."""
    kept: list[int | None] = []
    at = 0
    for dim in old:
        while at < len(new) and not same(dim, new[at]) and same(new[at], 1):
            at += 1
        if at < len(new) and same(dim, new[at]):
            kept.append(at)
            at += 1
        elif same(dim, 1):
            kept.append(None)
        else:
            return None
    return kept if all(same(d, 1) for d in new[at:]) else None


@rewrite("slice")
def merge_slices(rewriter: Rewriter, node: Node) -> Value | None:
    inner = maker(node.operands[0], "slice")
    if inner is None:
        return None
    middle = inner.result.dims
    a, b = inner.keywords, node.keywords
    starts: list[Size] = []
    limits: list[Size] = []
    strides: list[int] = []
    for i in range(len(middle)):
        if a["strides"][i] == 1:
            starts.append(a["starts"][i] + b["starts"][i])
            limits.append(a["starts"][i] + b["limits"][i])
            strides.append(b["strides"][i])
        elif same(b["starts"][i], 0) and same(b["limits"][i], middle[i]) and b["strides"][i] == 1:
            starts.append(a["starts"][i])
            limits.append(a["limits"][i])
            strides.append(a["strides"][i])
        else:
            return None
    build = rewriter.before(node, sources=(inner,))
    return _value(build.slice(inner.operands[0], starts=tuple(starts), limits=tuple(limits), strides=tuple(strides)))


@rewrite("StridedSlice")
def forward_slice(rewriter: Rewriter, node: Node) -> Value | None:
    """Only forward steps: the core slice.  A limit before the start is not one, so it must be provably in order."""
    a = node.keywords
    in_order = all(sizes.less_equal(s, e) is True for s, e in zip(a["starts"], a["limits"], strict=True))
    if not in_order or any(s < 1 for s in a["strides"]):
        return None
    return _value(rewriter.before(node).slice(node.operands[0], **node.attributes.as_dict()))


@rewrite("concatenate")
def flatten_concatenation(rewriter: Rewriter, node: Node) -> Value | None:
    """Empty pieces go; a concatenation along the same axis that nothing else uses is taken apart."""
    axis = node.keywords["axis"]
    pieces: list[Value] = []
    for x in node.operands:
        assert x is not None
        inner = maker(x, "concatenate")
        if inner is not None and inner.keywords["axis"] == axis and len(x.uses) == 1:
            pieces.extend(v for v in inner.operands if v is not None)
        elif not (ranked(x) and same(x.dims[axis], 0)):
            pieces.append(x)
    if len(pieces) == len(node.operands) or not pieces:
        return None
    return _value(rewriter.before(node).concatenate(tuple(pieces), axis=axis))


@rewrite()
def narrow_broadcast_operand(rewriter: Rewriter, node: Node) -> None:
    """An elementwise operator broadcasts by itself: it takes the narrower value where its results keep their types."""
    if Trait.ELEMENTWISE not in node.op.traits:
        return
    for i, operand in enumerate(node.operands):
        wide = maker(operand, "broadcast_in_dim")
        if wide is None or not ranked(wide.operands[0]):
            continue
        x = wide.operands[0]
        assert x is not None
        dims = _narrow_dims(x, wide)
        if not _keeps_types(rewriter, node, i, x.fact.with_dims(dims)):
            continue
        narrow = x if same_dims(x.dims, dims) else rewriter.before(node).reshape(x, dims=dims)
        rewriter.set_operand(node, i, narrow)


def _narrow_dims(x: Value, wide: Node) -> tuple[Size, ...]:
    """Dims under which NumPy's rules place x's axes where the broadcast places them."""
    axes = wide.keywords["broadcast_dimensions"]
    if not axes:
        return ()
    dims: list[Size] = [1] * (wide.result.rank - axes[0])
    for axis, dim in zip(axes, x.dims, strict=True):
        dims[axis - axes[0]] = dim
    return tuple(dims)


def _keeps_types(rewriter: Rewriter, node: Node, index: int, fact: Fact) -> bool:
    """Whether the node's results keep their types, without new assumptions, if operand `index` were as `fact` says."""
    facts = [None if v is None else v.fact for v in node.operands]
    facts[index] = fact
    found = inferred(rewriter.model, node, facts)
    return bool(found) and all(f.type == r.type for f, r in zip(found, node.results, strict=True))


def _value(value: Value) -> Value:
    """What the builder made of a single-result operator (its methods are not typed)."""
    return value
