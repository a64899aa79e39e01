"""Where the boxes of one graph stand: layers, order within a layer, x coordinates.  What is in a box is not known here.

A value that skips layers takes a lane through each of them, so that its line crosses no box; lanes of one value are
shared by all its consumers.  Everything but the sorting is linear in boxes, lines and lanes, and lanes are bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GAP = 22
"""Between neighbours of a layer."""
LANE = 6
"""Width of a line that passes through a layer."""
LANES_PER_BOX = 6
"""Values that would need more lanes than this on average are far: they get no line, only marks at both ends."""
HEAVY, THIN = 6, 1
"""What boxes and lanes weigh when a row is spread, and how hard their lines pull: equal, so chains stay straight."""
ROUNDS = 4


@dataclass(frozen=True)
class Line:
    """A value that is drawn: the box that defines it, and the boxes that use it."""

    source: int
    targets: tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """`x[i]` is the centre of box i, `layer[i]` its layer.  `lanes[v]` are the x of line v from its source's layer + 1
    on, None if the line is far."""

    x: list[int]
    layer: list[int]
    lanes: list[list[int] | None]
    width: int
    layers: int


def lay_out(widths: Sequence[int], lines: Sequence[Line], inputs: int = 0) -> Layout:
    """Places boxes of these widths, the first of which are inputs.  A line leads from a lower number to higher ones."""
    layer = _layers(len(widths), lines, inputs)
    spans = [max((layer[t] for t in line.targets), default=0) - layer[line.source] - 1 for line in lines]
    far = _far(spans, LANES_PER_BOX * len(widths) + 64)
    chart = _Chart(widths, layer)
    lanes: list[list[int] | None] = []
    for number, line in enumerate(lines):
        lanes.append(None if number in far else chart.add(line, spans[number]))
    chart.place()
    left = min((x - w / 2 for x, w in zip(chart.x, chart.width, strict=True)), default=0.0)
    right = max((x + w / 2 for x, w in zip(chart.x, chart.width, strict=True)), default=0.0)
    at = [round(x - left) for x in chart.x]
    placed = [None if chain is None else [at[e] for e in chain] for chain in lanes]
    return Layout(at[: len(widths)], layer, placed, round(right - left), len(chart.rows))


def _layers(count: int, lines: Sequence[Line], inputs: int) -> list[int]:
    """The longest way from a box without operands.  Inputs, and what needs none, stand right above their first user."""
    layer, needs = [0] * count, [box < inputs for box in range(count)]
    by_source: list[list[Line]] = [[] for _ in range(count)]
    for line in lines:
        by_source[line.source].append(line)
    for box in range(count):
        for line in by_source[box]:
            for target in line.targets:
                needs[target] |= needs[box]
                layer[target] = max(layer[target], layer[box] + 1)
    for box in reversed(range(count)):
        users = [layer[target] for line in by_source[box] for target in line.targets]
        if users and (box < inputs or not needs[box]):
            layer[box] = min(users) - 1
    return layer


def _far(spans: Sequence[int], budget: int) -> set[int]:
    """Lines left out, longest first, until the lanes of the others keep within the budget."""
    total = sum(max(s, 0) for s in spans)
    out: set[int] = set()
    for number in sorted(range(len(spans)), key=lambda i: (-spans[i], i)):
        if total <= budget:
            break
        total -= max(spans[number], 0)
        out.add(number)
    return out


class _Chart:
    """Boxes and lanes by layer, and which of the layers next to them each is tied to."""

    def __init__(self, widths: Sequence[int], layer: Sequence[int]) -> None:
        self.width: list[int] = list(widths)
        self.rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
        for box, at in enumerate(layer):
            self.rows[at].append(box)
        self.layer = layer
        self.above: list[list[tuple[int, int]]] = [[] for _ in widths]  # (element, weight)
        self.below: list[list[tuple[int, int]]] = [[] for _ in widths]
        self.x: list[float] = []

    def add(self, line: Line, span: int) -> list[int]:
        """The lanes of a line, by element number."""
        start = self.layer[line.source] + 1
        chain = [line.source]
        for depth in range(start, start + max(span, 0)):
            lane = len(self.width)
            self.width.append(LANE)
            self.above.append([])
            self.below.append([])
            self.rows[depth].append(lane)
            self._tie(chain[-1], lane, 4 if len(chain) > 1 else 2)
            chain.append(lane)
        for target in line.targets:
            depth = self.layer[target] - start
            self._tie(chain[depth], target, THIN if depth else HEAVY)
        return chain[1:]

    def _tie(self, upper: int, lower: int, weight: int) -> None:
        self.below[upper].append((lower, weight))
        self.above[lower].append((upper, weight))

    def place(self) -> None:
        """Sweeps down and up: first each row is sorted by where its neighbours stand, then the order stays."""
        self.x = [0.0] * len(self.width)
        for row in self.rows:
            self._spread(row, [0.0] * len(row))
        for sorting in (True, False):
            for _ in range(ROUNDS):
                for row in self.rows:
                    self._align(row, self.above, sorting)
                for row in reversed(self.rows):
                    self._align(row, self.below, sorting)

    def _align(self, row: list[int], ties: list[list[tuple[int, int]]], sorting: bool) -> None:
        wanted = {}
        for element in row:
            total = sum(weight for _, weight in ties[element])
            wanted[element] = (
                sum(self.x[other] * weight for other, weight in ties[element]) / total if total else self.x[element]
            )
        if sorting:
            row.sort(key=wanted.__getitem__)
        self._spread(row, [wanted[element] for element in row])

    def _spread(self, row: list[int], wanted: list[float]) -> None:
        """Places a row as near to `wanted` as its order and widths allow: least squares, by pooling neighbours."""
        offsets, edge = [], 0.0
        for element in row:
            offsets.append(edge + self.width[element] / 2)
            edge += self.width[element] + (GAP if self.width[element] > LANE else GAP / 2)
        pools: list[tuple[float, int, int]] = []  # (mean, weight, members); lanes give way to boxes
        for element, want, offset in zip(row, wanted, offsets, strict=True):
            mean, weight, members = want - offset, THIN if self.width[element] == LANE else HEAVY, 1
            while pools and pools[-1][0] > mean:
                before, heavy, count = pools.pop()
                mean = (mean * weight + before * heavy) / (weight + heavy)
                weight, members = weight + heavy, members + count
            pools.append((mean, weight, members))
        means = [mean for mean, _, members in pools for _ in range(members)]
        for element, mean, offset in zip(row, means, offsets, strict=True):
            self.x[element] = mean + offset
