"""The fusion of attention: a softmax of scaled, masked products of queries and keys, times values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from ...ir import dims as sizes
from ...ir.build import Builder
from ...ir.dims import Size
from ...ir.dtypes import DType
from ...ir.graph import Node, Value
from ..pattern import Match, Tracer, equal, fusion
from .contraction import Contraction, Label, arranged, contraction
from .layout import Atom, Layout, is_rebuildable, only_moves, rebuilt, scaling, shaped, trace
from .masking import Visible, check_leading, finish_mask, grouped, is_finite, visible
from .scores import Scores, scores_of, sink_vector


@dataclass
class Side:
    """An operand: its axes' labels, which of them lead, and where its elements come from if that is followed back."""

    value: Value
    labels: tuple[Label, ...]
    lead: tuple[Label, ...]
    last: tuple[Label, ...]
    layout: Layout | None = None
    groups: list[list[Atom]] = field(default_factory=list)

    @property
    def factor(self) -> float:
        """The numbers that are taken off the operand when it is built."""
        return _factor_of(self.value) if self.layout is None else self.layout.factor


@dataclass
class Plan:
    """What `check` found and `rewrite` builds."""

    scores: Scores
    lead: tuple[Size, Size]
    q: Side
    k: Side
    v: Side
    result: Contraction
    result_labels: tuple[Label, ...]
    masks: Visible
    scale: float
    guarded: bool
    weights_lead: tuple[Size, ...]
    """Dims of the weights before queries and keys."""


@fusion("attention", after=("softmax", "rotary"), near=3)
class FuseAttention:
    """MatMul(Softmax(scale * MatMul(q, k^T) + mask), v)   ->   Attention(q, k, v, mask) {scale}

    Scales are taken from the scores, q and k; keys and values repeated for groups of heads are taken unrepeated;
    softcaps, sinks, guards against NaN, 3-D forms and any order of axes are followed back.  Weights that are hidden a
    second time, behind the softmax, by the mask of the scores say that a query without keys gives 0.
    """

    def pattern(self, p: Tracer, v: Any) -> Any:
        weights = p.bind("weights", p.Softmax(p.any("scores"), axis=p.attribute("axis")))
        plain = p.past(["convert", "reshape"], weights)
        is_nan = p.any_of(p.IsNaN(plain), p.compare(plain, plain, direction="ne"))
        is_number = p.any_of(p.not_(is_nan), p.compare(plain, plain, direction="eq"))
        guard = p.any_of(p.select(is_nan, 0.0, plain), p.select(is_number, plain, 0.0))
        hidden = p.any_of(p.select(p.any("hidden"), 0.0, plain), p.select(p.any("shown"), plain, 0.0))
        inner = p.any_of(p.bind("guard", guard), p.bind("again", hidden), plain)
        kept = p.bind("kept", p.past(["convert", "reshape", "slice"], inner))
        moved = p.any_of(kept, p.bind("turned", p.transpose(kept)))
        return p.any_of(
            p.MatMul(moved, v), p.MatMul(v, moved), p.dot_general(moved, v), p.dot_general(v, moved),
            p.Einsum((moved, v)), p.Einsum((v, moved)),
        )  # fmt: skip

    def check(self, m: Match) -> None:
        scores = scores_of(m, m.scores)
        self._check_escapes(m, scores)
        m.plan = self._plan(m, scores)
        for node in scores.nodes:
            m.nodes.setdefault(node)

    def _check_escapes(self, m: Match, scores: Scores) -> None:
        """The weights are needed by others: computing them apart would double the work."""
        inside = {*m.nodes, *scores.nodes, m.root}
        for node in (m.weights.node, *scores.nodes):
            for user, _ in node.results[0].uses:
                others = user not in inside
                m.need(not others, "the attention weights or scores are also used elsewhere", node)

    def _plan(self, m: Match, scores: Scores) -> Plan:
        qk, order = self._ordered(m, scores)
        sums = [x for x in qk.labels[0] if x in qk.labels[1] and x not in qk.out]
        m.need(len(sums) == 1, "queries and keys are not multiplied along one axis", qk.node)
        m.need(qk.out[-1] not in qk.labels[0], "the last axis of the scores is not the keys'", qk.node)
        row, column, lead = qk.out[-2], qk.out[-1], qk.out[:-2]
        m.need(row in qk.labels[0] and row not in qk.labels[1], "the scores have no axis of queries", qk.node)
        pv, wide = self._values(m)
        if order is not None:
            wide = tuple(wide[i] for i in order)
        m.need(wide[-1] in pv.labels[1] and wide[-1] not in pv.out, "the weights are not multiplied by keys", m.root)
        m.need(wide[-2] in pv.out and wide[-2] not in pv.labels[1], "the weights' queries are no axis of the result",
               m.root)  # fmt: skip
        free = [x for x in pv.labels[1] if x is not None and x not in wide]
        m.need(len(free) == 1 and all(x in pv.out for x in wide[:-1]), "the values have no single axis of features",
               m.root)  # fmt: skip
        self._check_sinks(m, scores)
        weights, dims, product, leads = m.kept.dims, m.scores.dims, scores.dims, [*scores.leads, m.kept.dims[:-2]]
        if order is not None:
            weights, dims, product = (tuple(x[i] for i in order) for x in (weights, dims, product))
            leads = [weights[:-2]]
        q = Side(qk.operands[0], qk.labels[0], lead, (row, sums[0]))
        final = _batch_and_heads(leads, q)
        k = Side(qk.operands[1], qk.labels[1], lead, (column, sums[0]))
        v = Side(m.v, pv.labels[1], wide[:-2], (wide[-1], free[0]))
        _follow_back(q, k, v, final, product[:-2], weights[:-2])
        scale = scores.scale * q.factor * k.factor
        m.need(math.isfinite(scale), f"the scale is {scale}", qk.node)
        for gain in scores.gains:
            check_leading(m, gain, final)
        again = m.again is not None and self._hides_again(m, scores)
        masks = visible(m, scores.masks, final, dims[-2:], scores.floor)
        labels = (*wide[:-2], wide[-2], free[0])
        guarded = (again or m.guard is not None) and not masks.every_row_sees
        return Plan(scores, final, q, k, v, pv, labels, masks, scale, guarded, weights[:-2])

    def _ordered(self, m: Match, scores: Scores) -> tuple[Contraction, tuple[int, ...] | None]:
        """The product with queries first, and the order of the scores as [.., queries, keys] if they are not."""
        qk, rank = scores.product, m.scores.rank
        column = m.axis % rank
        if column == rank - 1:
            qk = qk.swapped() if qk.out[-1] in qk.labels[0] else qk
            return qk, None
        m.expect(rank == len(qk.out) == m.kept.rank, "the softmax is along no axis of a product")
        m.need(not scores.masks and not scores.gains and scores.sinks is None and m.guard is None and m.again is None,
               "masks of scores whose softmax is not along the last axis", m.weights)  # fmt: skip
        plain = all(map(equal, m.kept.dims, m.scores.dims)) and all(map(equal, m.scores.dims, scores.dims))
        m.need(plain, "the scores or the weights are reshaped", m.weights)
        key = qk.out[column]
        qk = qk.swapped() if key in qk.labels[0] else qk
        rows = [i for i, x in enumerate(qk.out) if x in qk.labels[0] and x not in qk.labels[1]]
        m.need(len(rows) == 1, "the scores have no single axis of queries", qk.node)
        order = (*(i for i in range(rank) if i not in (rows[0], column)), rows[0], column)
        return replace(qk, out=tuple(qk.out[i] for i in order)), order

    def _values(self, m: Match) -> tuple[Contraction, tuple[Label, ...]]:
        """The product with the values, the weights first, and the labels of the weights' axes."""
        pv = contraction(m.root)
        m.need(pv is not None, "the product with the values has another form", m.root)
        assert pv is not None
        weights = m.kept if m.turned is None else m.turned
        if pv.operands[0] is not weights:
            pv = pv.swapped()
        m.need(len(pv.labels[0]) >= 2 and None not in pv.labels[0], "the weights are broadcast", m.root)
        if m.turned is None:
            return pv, pv.labels[0]
        permutation = m.turned.node.keywords["permutation"]
        return pv, tuple(pv.labels[0][permutation.index(i)] for i in range(len(permutation)))

    def _hides_again(self, m: Match, scores: Scores) -> bool:
        """Weights become 0 where a mask, the only one that may hide, hides their scores: it hides for good then."""
        predicate, inverted = (m.hidden, True) if m.hidden is not None else (m.shown, False)
        own = [x for x in scores.masks if x.value is predicate and x.fill is not None and x.inverted == inverted]
        m.need(len(own) == 1, "the weights are hidden by another mask than the scores", m.again)
        others = [x for x in scores.masks if x is not own[0]]
        finite = all(x.fill is None and is_finite(x.value) for x in others) and own[0].fill == -math.inf
        m.need(scores.floor is None and (finite or not others), "others may hide what this mask shows", m.again)
        own[0].fill = -math.inf
        return True

    def _check_sinks(self, m: Match, scores: Scores) -> None:
        """With sinks one column is cut off after the softmax, without them none."""
        cut = 1 if scores.sinks is not None else 0
        if m.axis % m.scores.rank != m.scores.rank - 1:
            return  # nothing is cut there: the weights have the scores' dims
        keys = scores.dims[-1]
        m.need(equal(m.scores.dims[-1] - cut, keys), "the softmax runs over other columns than the keys", m.weights)
        m.need(equal(m.kept.dims[-1], keys), "columns of the weights are cut off", m.kept)
        m.need(equal(m.kept.dims[-2], m.scores.dims[-2]), "rows of the weights are cut off", m.kept)
        for node in m.nodes:
            if node.op.name == "slice":
                starts = node.keywords["starts"]
                m.need(all(equal(s, 0) for s in starts), "a slice leaves out the first weights", node)

    def rewrite(self, m: Match) -> Any:
        plan: Plan = m.plan
        b, heads = m.build, plan.lead[1]
        q = built(b, plan.q, plan.lead)
        k = built(b, plan.k, plan.lead)
        v = built(b, plan.v, plan.lead)
        v = v if plan.v.factor == 1.0 else b.multiply(v, plan.v.factor)
        gains = [grouped(b, gain, plan.lead) for gain in plan.scores.gains]
        wide = max((x.dtype for x in (q, k, v, *gains)), key=lambda d: d.bits)
        q, k, v = (_in(b, x, wide) for x in (q, k, v))
        for gain in gains:
            q = b.multiply(q, _in(b, gain, wide))
        sinks = None
        if plan.scores.sinks is not None:
            vector, size = sink_vector(m, plan.scores.sinks, heads)
            sinks = shaped(b, vector, (size,))
        mask, keywords = finish_mask(b, plan.masks, plan.lead)
        y = b.Attention(
            q,
            k,
            v,
            mask,
            sinks,
            scale=plan.scale,
            softcap=plan.scores.softcap,
            zero_masked_rows=plan.guarded,
            **keywords,
        )
        y = _in(b, y, m.result.dtype, narrow=True)
        y = shaped(b, y, (*plan.weights_lead, *y.dims[2:]))
        return arranged(b, y, plan.result_labels, plan.result.out)


def _in(build: Builder, value: Value, dtype: DType, narrow: bool = False) -> Value:
    if value.dtype is dtype or (value.dtype.bits > dtype.bits and not narrow):
        return value
    out: Value = build.convert(value, dtype=dtype)
    return out


def _batch_and_heads(leads: list[tuple[Size, ...]], q: Side) -> tuple[Size, Size]:
    """How the leading axes of the scores are grouped: as written where there are two, else the batch is the first."""
    for lead in leads:
        if len(lead) == 2:
            return lead[0], lead[1]
    longest = max(leads, key=len)
    if len(longest) > 2:
        return longest[0], sizes.product(longest[1:])
    if not longest:
        return 1, 1
    index = q.labels.index(q.lead[0]) if q.lead and q.lead[0] in q.labels else None
    if index is not None:
        atoms = [a for a in trace(q.value).axes[index] if not equal(a.size, 1)]
        if len(atoms) == 2 and not any(a.repeat for a in atoms):
            return atoms[0].size, atoms[1].size
    return longest[0], 1


_MOVED = ("reshape", "transpose", "convert", "broadcast_in_dim", "multiply", "divide")


def _chain(value: Value) -> tuple[list[Node], Value]:
    """Movements and scalings above the operand proper: (nodes, what they start from)."""
    chain: list[Node] = []
    current = value
    last_useful, start = 0, value
    while (node := current.node) is not None and len(chain) < 24:
        below = node.operands[0] if node.operands else None
        if below is None or node.op.name not in _MOVED or not only_moves(node):
            break
        chain.append(node)
        current = below
        if node.op.name in ("multiply", "divide", "convert"):
            last_useful, start = len(chain), current
    return chain[:last_useful], start


def _factor_of(value: Value) -> float:
    return math.prod(scaling(node) or 1.0 for node in _chain(value)[0] if node.op.name in ("multiply", "divide"))


def _unscaled(build: Builder, value: Value) -> Value:
    """The operand without scalings and widening conversions: its movements are written again."""
    chain, current = _chain(value)
    for node in reversed(chain):
        if node.op.name in ("multiply", "divide", "convert"):
            continue
        keywords = node.attributes.as_dict()
        current = build.apply(node.op, current, **keywords)
    return current


def _follow_back(
    q: Side, k: Side, v: Side, final: tuple[Size, Size], scores: tuple[Size, ...], weights: tuple[Size, ...]
) -> None:
    """Take keys and values unrepeated where both are provably repeated alike; else they stay as they are."""
    found = [repeats_of(side, final, lead) for side, lead in ((k, scores), (v, weights), (q, scores))]
    if not equal(found[0], found[1]):
        k.layout = v.layout = None
    if not equal(found[2], 1):
        q.layout = None


def repeats_of(side: Side, final: tuple[Size, Size], lead: tuple[Size, ...]) -> Size:
    """Repetitions of the heads of one operand, minor to its own heads: axes it lacks, or atoms that repeat."""
    layout = trace(side.value)
    atoms: list[Atom] = []
    for label, size in zip(side.lead, lead, strict=True):
        if label in side.labels:
            atoms.extend(layout.axes[side.labels.index(label)])
        else:
            atoms.append(Atom(size, True))
    atoms = [a for a in atoms if not equal(a.size, 1)]
    batch: list[Atom] = []
    have: Size = 1
    while atoms and not equal(have, final[0]):
        batch.append(atoms.pop(0))
        have = have * batch[-1].size
    repeats: Size = 1
    while atoms and atoms[-1].repeat:
        repeats = repeats * atoms.pop().size
    if not equal(have, final[0]) or any(a.repeat for a in (*batch, *atoms)):
        return 1
    groups = [batch, atoms, *(layout.axes[side.labels.index(label)] for label in side.last)]
    if not is_rebuildable(layout, groups):
        return 1
    side.layout, side.groups = layout, groups
    return repeats


def built(build: Builder, side: Side, final: tuple[Size, Size]) -> Value:
    """[B, heads, time, features]: the operand as it is, or the source of its repetitions."""
    if side.layout is not None:
        return rebuilt(build, side.layout, side.layout.source, side.groups)
    value = _unscaled(build, side.value)
    present = [x for x in side.lead if x in side.labels]
    value = arranged(build, value, side.labels, (*present, *side.last))
    if len(present) != len(side.lead):
        value = _spread(build, value, side, present, final)
    return shaped(build, value, (*final, *value.dims[-2:]))


def _spread(build: Builder, value: Value, side: Side, present: list[Label], final: tuple[Size, Size]) -> Value:
    """Axes that the operand lacks, where there are exactly two: repeated."""
    if len(side.lead) != 2:
        return value
    places = [side.lead.index(x) for x in present]
    out: Value = build.broadcast_in_dim(value, dims=(*final, *value.dims[-2:]), broadcast_dimensions=(*places, 2, 3))
    return out
