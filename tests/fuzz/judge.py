"""Judges every node of a run by what the target itself gave its operands, so that no error adds up along a graph.

Integers, bools, and operators that only move elements must agree to the bit.  Floats may differ by what the reference
itself changes when operands move by one unit in the last place (sixteen times the greatest of four such changes: a
result of a backward-stable method is the exact one of operands nearby), plus 64 roundings of its magnitude.  What a
composite is made of may cancel (1 + erf(x) far below 0), so its operands' magnitude counts too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irc.ir.errors import IrcError
from irc.ir.model import Constant, Model, Node
from irc.ir.operators import Trait
from irc.ir.reference import Evaluator, _Frame
from irc.testing.cases import ULPS

UNIT_SCALE = {"lgamma": 1e3, "digamma": 1e3}
"""Zeros away from 0, near which no library has relative accuracy; counts by the 1e-3 below as an absolute size."""


def fault(
    model: Model,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    left_out: frozenset[str] = frozenset(),
    dims: dict[str, int] | None = None,
) -> str | None:
    """The first node whose results are wrong, and how; None if all are right, those of operators `left_out` aside."""
    known: dict[Any, Any] = dict(zip(model.main.inputs, inputs, strict=True))
    known.update(zip(model.main.outputs, map(np.asarray, outputs), strict=True))
    evaluator = Evaluator(model)
    for node in (n for n in model.main.body.nodes if n.op.name not in left_out):
        operands = [None if v is None else _content(v, known, evaluator) for v in node.operands]
        frame = _Frame(dict(known), dict(dims or {}))
        want = evaluator.evaluate(node, operands, frame)
        for result, wanted in zip(node.results, want, strict=True):
            got = known[result]
            if (got.dtype, got.shape) != (wanted.dtype, wanted.shape):
                return f"{node.label}: {got.dtype}{list(got.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
            if (reason := _differs(evaluator, node, operands, frame, result.index, got, wanted)) is not None:
                return f"{node.label} {node.attributes.as_dict()} of {operands}: {reason}"
    return None


class Shaken(Evaluator):
    """An evaluator whose nodes round otherwise: float results, but not what is only moved, by one unit either way."""

    def __init__(self, model: Model, seed: int, *, trace: Any = None) -> None:
        super().__init__(model, trace=trace)
        self._rng = np.random.default_rng(seed)

    def _finish(self, node: Node, value: Any, result: Any, frame: _Frame) -> Any:
        made = super()._finish(node, value, result, frame)
        if Trait.MOVES_DATA in node.op.traits or not isinstance(made, np.ndarray):
            return made
        if made.dtype.kind == "c":
            with np.errstate(all="ignore"):
                return (made * (1 + self._rng.choice([-1, 0, 1], made.shape) * _eps(made.dtype))).astype(made.dtype)
        return _moved(self._rng, made, False)


def differs(got: Any, want: Any, shaken: Sequence[Any]) -> str | None:
    """How an output of a whole graph is wrong, beside what other roundings on the way to it make of it."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if want.dtype == object:
        return _spelled(got != want, got, want)
    if not _is_float(want.dtype) and want.dtype.kind != "c":
        open_ = np.zeros(want.shape, bool)
        for other in shaken:
            open_ |= other != want
        return _spelled((got != want) & ~open_, got, want)
    a, b = got.astype(np.complex128), want.astype(np.complex128)
    with np.errstate(all="ignore"):
        spread = np.zeros(want.shape)
        for other in shaken:
            c = other.astype(np.complex128)
            spread = np.maximum(spread, np.where((c == b) | (np.isnan(c) & np.isnan(b)), 0, np.abs(c - b)))
        size = np.abs(np.where(np.isfinite(b), b, 0)).max(initial=0)
        bound = 16 * spread + 256 * _eps(want.dtype) * size + 4 * _tiny(want.dtype)
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= bound) | np.isnan(spread)
    return _spelled(~same, got, want)


def _content(value: Any, known: dict[Any, Any], evaluator: Evaluator) -> Any:
    return evaluator.constant(value) if isinstance(value, Constant) else known[value]


def _differs(
    evaluator: Evaluator, node: Node, operands: list[Any], frame: _Frame, index: int, got: Any, want: Any
) -> str | None:
    if not _is_float(want.dtype) and want.dtype.kind != "c":
        wrong = got != want
        if not _is_float_made(node, want):
            return _spelled(wrong, got, want)
        return _spelled(wrong & (_changes(evaluator, node, operands, frame, index, want) == 0), got, want)
    exact = Trait.MOVES_DATA in node.op.traits
    finite = (np.isfinite(x.astype(np.complex128)).all() for x in operands if x is not None)
    if node.op.family == "convolution" and not all(finite):
        return None  # padding times NaN or infinity is NaN or nothing, as an algorithm has it
    a, b = got.astype(np.complex128), want.astype(np.complex128)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if exact or same.all():
            return _spelled(~same, got, want)
        spread = _changes(evaluator, node, operands, frame, index, want)
        size = np.nanmax(np.abs(np.where(np.isfinite(b), b, 0)), initial=0)
        eps = _eps(want.dtype)
        if node.op.is_composite:
            size = max([size, *(_greatest(x) for x in operands if x is not None and _is_float(x.dtype))])
        size = max(size, UNIT_SCALE.get(node.op.name, 0.0))
        units = max(64.0, ULPS.get(node.op.name, 0.0))
        least = size if node.op.is_composite else 1e-3 * size
        bound = 16 * spread + units * eps * np.maximum(np.abs(b), least) + 4 * _tiny(want.dtype)
        close = np.abs(a - b) <= bound
    return _spelled(~(same | close | np.isnan(spread)), got, want)


def _is_float_made(node: Node, want: Any) -> bool:
    """Whether an integer or bool result hangs on floats (comparisons, conversions, positions)."""
    return any(_is_float(v.dtype.numpy) for v in node.operands if v is not None)


def _changes(evaluator: Evaluator, node: Node, operands: list[Any], frame: _Frame, index: int, want: Any) -> Any:
    """How far results move when float operands do by one unit, and when their subnormal elements are 0.

    NaN where results stop being finite, or change at all.
    """
    rng = np.random.default_rng(0)
    spread = np.zeros(want.shape)
    captures = [v for g in node.all_graphs() for v in g.captures() if v in frame.values]
    for turn in range(5):
        moved = [_moved(rng, x, turn == 0) for x in operands]
        around = _Frame({**frame.values, **{v: _moved(rng, frame.values[v], turn == 0) for v in captures}}, frame.dims)
        try:
            other = evaluator.evaluate(node, moved, around)[index]
        except IrcError:
            return np.full(want.shape, np.nan)
        with np.errstate(all="ignore"):
            change = np.abs(other.astype(np.complex128) - want.astype(np.complex128))
            equal = (other == want) | ((other != other) & (want != want))
        spread = np.maximum(spread, np.where(equal, 0, change))
    return spread


def _moved(rng: Any, x: Any, flushed: bool) -> Any:
    if x is None or not _is_float(x.dtype) or x.dtype.itemsize < 2:
        return x
    wide = x.astype(np.float64)
    if flushed:
        return np.where(np.abs(wide) < _tiny(x.dtype), 0 * wide, wide).astype(x.dtype)
    with np.errstate(all="ignore"):
        return (wide * (1 + rng.choice([-1, 0, 1], wide.shape) * _eps(x.dtype))).astype(x.dtype)


def _greatest(x: Any) -> float:
    wide = np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))
    return float(wide[np.isfinite(wide)].max(initial=0))


def _is_float(dtype: Any) -> bool:
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def _eps(dtype: Any) -> float:
    import ml_dtypes

    if dtype.kind == "c":
        return float(np.finfo(dtype).eps)
    return float(ml_dtypes.finfo(dtype).eps)


def _tiny(dtype: Any) -> float:
    """Results below the least normal number may be flushed to zero."""
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).tiny) if dtype.kind != "c" else float(np.finfo(dtype).tiny)


def _spelled(wrong: Any, got: Any, want: Any) -> str | None:
    if not np.any(wrong):
        return None
    at = tuple(int(i) for i in np.argwhere(np.asarray(wrong))[0])
    return f"{int(np.sum(wrong))} of {want.size} differ, first at {at}: {got[at]!r} instead of {want[at]!r}"
