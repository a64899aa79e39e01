"""Prints models, functions and single nodes; unsound ones too, so that what is wrong with them can be seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..attributes import AttributeKind, bits
from ..data import SplatData
from ..dtypes import DType
from ..errors import IrcError
from ..model import Constant, Function, Graph, Location, Model, Node, Value
from ..operators import RegionSpec
from ..plugins import distribution_of, namespace
from ..types import TensorType
from .lexer import key, label, quote
from .literals import attribute_text, constant_text, contents_text, splat_text
from .version import SYNTAX, VOCABULARY

LINE = 120
"""A sub-graph of at most one node stands on one line if it fits into this many columns."""

MAX_DEPTH = 64
"""Sub-graphs within sub-graphs; deeper ones are neither printed nor parsed."""

RESULT_TYPES = AttributeKind("type", depth=1)
"""Kind of an attribute `results` that only repeats the types behind the colon, and is therefore left out."""


def print_model(model: Model, *, locations: bool = True, inline_weights: bool = False) -> str:
    """The text of a model.  With locations it is the canonical text, which `parse_model` takes back without loss.

    Contents of named constants are not part of it, but for splats; `inline_weights` prints those of small ones too.
    """
    printer = _Printer(locations)
    lines = [f"irc {SYNTAX} vocabulary {VOCABULARY}", f"model {quote(model.name)} {{"]
    lines += _metadata(model.metadata, "  ")
    lines += _requirements(model)
    derived = dict.fromkeys(model.derived)
    for constant in model.constants.values():
        if constant not in derived:
            lines.append(f"  weight {_weight(constant, inline_weights)}")
    if len(model.init) or model.derived:
        lines += printer.init(model)
    for function in model.functions.values():
        lines += printer.function(function, "  ")
    return "\n".join([*lines, "}", ""])


def print_function(function: Function, *, locations: bool = True, labels: bool = True) -> str:
    """The text of one function, as it stands in the model's but without indentation; values only numbered if wanted."""
    return "\n".join([*_Printer(locations, labels).function(function, ""), ""])


def print_node(node: Node, *, locations: bool = False, sub_graphs: bool = True) -> str:
    """The text of one node, sub-graphs included if wanted.  Unnamed values get numbers that hold for this text only."""
    printer = _Printer(locations)
    return "\n".join(printer.node(node, "", 0)) if sub_graphs else printer.head(node, "")


def is_in_text(constant: Constant) -> bool:
    """Whether the canonical text holds the contents of a constant, so that a container need not."""
    return constant.data is not None and (constant.name is None or isinstance(constant.data, SplatData))


def _requirements(model: Model) -> list[str]:
    """The plug-ins whose operators the model holds, so that a reader who lacks one learns what to install."""
    names = {namespace(n.op.name) for graph in model.graphs() for n in graph.nodes if "." in n.op.name}
    known = [(name, distribution_of(name)) for name in sorted(names)]
    return [f"  requires {name} from {quote(dist)}" for name, dist in known if dist is not None]


def _metadata(metadata: Mapping[str, str], indent: str) -> list[str]:
    return [f"{indent}metadata {key(k)} = {quote(v)}" for k, v in metadata.items()]


def _marks(marks: Mapping[str, str]) -> str:
    return "{" + ", ".join([f"{key(k)} = {quote(v)}" for k, v in marks.items()]) + "}"


def _constant_head(constant: Constant) -> str:
    """Name, original label (kept as the metadata `label`) and other metadata."""
    rest = {k: v for k, v in constant.metadata.items() if k != "label"}
    parts = [f"#{label(constant.name or '')}"]
    if "label" in constant.metadata:
        parts.append(quote(constant.metadata["label"]))
    return " ".join([*parts, _marks(rest)] if rest else parts)


def _weight(constant: Constant, inline: bool) -> str:
    text = f"{_constant_head(constant)} : {constant.type}"
    data = constant.data
    if isinstance(data, SplatData):
        return f"{text} = {splat_text(data)}"
    return f"{text} = {contents_text(data)}" if inline and data is not None and data.is_inline else text


def _location(location: Location) -> str:
    if not location.source and location.rewrite is None:
        return ""
    parts = [", ".join([quote(s) for s in location.source])] if location.source else []
    if location.rewrite is not None:
        parts.append(f"by {quote(location.rewrite)}")
    return f" loc({' '.join(parts)})"


def region_word(spec: RegionSpec) -> str:
    """How a sub-graph is introduced: `else` for `else_`."""
    return spec.name.rstrip("_")


class _Printer:
    """Names of one scope (a function, `init`) and the lines of what is in it."""

    def __init__(self, locations: bool, labels: bool = True) -> None:
        self.locations = locations
        self.labels = labels
        self._elements: dict[Constant, str] = {}
        self._begin()

    def _begin(self) -> None:
        self._names: dict[Value, str] = {}
        self._taken: set[str] = set()
        self._suffix: dict[str, int] = {}
        self._unnamed = 0
        self._captures: dict[Graph, tuple[Value, ...]] = {}

    # Values.

    def name(self, value: Value) -> str:
        """`%label`, made unique by a number; `%0`, `%1`, ... for values without a label."""
        text = self._names.get(value)
        if text is None:
            text = self._names[value] = self._fresh(value.name if self.labels else None)
        return text

    def _fresh(self, name: str | None) -> str:
        if name is None:
            self._unnamed += 1
            return f"%{self._unnamed - 1}"
        if name in self._taken:
            count = self._suffix.get(name, 1)
            while f"{name}_{count}" in self._taken:
                count += 1
            self._suffix[name] = count + 1
            name = f"{name}_{count}"
        self._taken.add(name)
        return f"%{label(name)}"

    def value(self, value: Value | None, like: DType | None = None) -> str:
        """A use of a value.  `like` is the element type that a bare number would have here."""
        if value is None:
            return "_"
        if not isinstance(value, Constant):
            return self.name(value)
        if value.name is not None or value.data is None:
            return f"#{label(value.name or '')}"
        if value.dtype is not like or value.dims != ():
            return constant_text(value.data)
        text = self._elements.get(value)
        if text is None:
            text = self._elements[value] = contents_text(value.data)
        return text

    def values(self, values: Iterable[Value | None]) -> str:
        return ", ".join([self.value(v) for v in values])

    def typed(self, value: Value, marks: Mapping[str, str] | None = None) -> str:
        """An input of a graph, with its marks and known integers."""
        ints = ""
        if value.ints is not None:
            ints = " holds [" + ", ".join(["_" if i is None else str(i) for i in value.ints]) + "]"
        return f"{self.name(value)}{f' {_marks(marks)}' if marks else ''}: {value.type}{ints}"

    # Nodes.

    def node(self, node: Node, indent: str, depth: int) -> list[str]:
        head = self.head(node, indent)
        lines = [head]
        for spec in node.op.regions:
            for graph in node.graphs.get(spec.name, ()):
                lines += self._region(region_word(spec), graph, indent + "  ", depth + 1)
        return lines

    def head(self, node: Node, indent: str) -> str:
        """The line of a node, up to its sub-graphs."""
        names = ", ".join([self.name(r) for r in node.results])
        operands = node.operands
        if not node.op.groups:
            while operands and operands[-1] is None:
                operands = operands[:-1]
        like = next(
            (
                v.type.dtype
                for v in operands
                if v is not None and not isinstance(v, Constant) and isinstance(v.type, TensorType)
            ),
            None,
        )
        listed = ", ".join([self.value(v, like) for v in operands])
        text = f"{indent}{names}{' = ' if names else ''}{node.op.name}({listed})"
        if node.op.regions and (captures := self._captured(node)):
            text += f" captures({self.values(captures)})"
        if node.op.fields:
            text += self._attributes(node)
        if node.results:
            text += f" : {', '.join([str(r.type) for r in node.results])}"
        return text + _location(node.location) if self.locations else text

    def _attributes(self, node: Node) -> str:
        parts = []
        for name, kind, default in node.op.fields:
            value = getattr(node.attributes, name)
            if type(value) is type(default) and bits(value) == bits(default):
                continue
            if name == "results" and kind == RESULT_TYPES and value == tuple(r.type for r in node.results):
                continue
            parts.append(f"{name} = {attribute_text(value, kind)}")
        return " {" + ", ".join(parts) + "}" if parts else ""

    def _captured(self, node: Node) -> list[Value]:
        """Outer values that the sub-graphs use, in order of first use."""
        found: dict[Value, None] = {}
        for spec in node.op.regions:
            for graph in node.graphs.get(spec.name, ()):
                found.update(dict.fromkeys(self._captures_of(graph)))
        return list(found)

    def _captures_of(self, graph: Graph) -> tuple[Value, ...]:
        """`graph.captures()`, computed once for all graphs nested in it."""
        if graph not in self._captures:
            self._captures[graph] = graph.captures()
        return self._captures[graph]

    def _region(self, word: str, graph: Graph, indent: str, depth: int) -> list[str]:
        if depth > MAX_DEPTH:
            raise IrcError(f"sub-graphs nest deeper than {MAX_DEPTH}; such a model has no text")
        inputs = f"({', '.join([self.typed(v) for v in graph.inputs])})" if graph.inputs else ""
        body: list[str] = []
        for node in graph.nodes:
            body += self.node(node, indent + "  ", depth)
        last = f"yield {self.values(graph.outputs)}".rstrip()
        if len(graph) <= 1 and len(body) == len(graph):
            line = f"{indent}{word}{inputs} {{ {''.join([b.strip() + '  ' for b in body])}{last} }}"
            if len(line) <= LINE:
                return [line]
        return [f"{indent}{word}{inputs} {{", *body, f"{indent}  {last}", f"{indent}}}"]

    # Functions and init.

    def function(self, function: Function, indent: str) -> list[str]:
        self._begin()
        marks = [*function.input_attributes, *[{}] * len(function.inputs)]
        inputs = ", ".join([self.typed(v, m) for v, m in zip(function.inputs, marks, strict=False)])
        names: Sequence[str | None] = [*function.output_names, *[None] * len(function.outputs)]
        outputs = ", ".join(
            [
                str(v.type) if n is None else f"%{label(n)}: {v.type}"
                for v, n in zip(function.outputs, names, strict=False)
            ]
        )
        words = f"{'' if function.public else 'private '}{'host ' if function.kind == 'host' else ''}func"
        dims = f"<{', '.join(function.dims)}>" if function.dims else ""
        inner = indent + "  "
        lines = [f"{indent}{words} @{label(function.name)}{dims}({inputs}) -> ({outputs}) {{"]
        lines += _metadata(function.metadata, inner)
        for a in function.assumptions:
            relation = f"bcast({a.lhs}, {a.rhs})" if a.relation == "bcast" else f"{a.lhs} {a.relation} {a.rhs}"
            lines.append(f"{inner}assume {relation} {'sometimes ' if a.sometimes else ''}from {quote(a.node)}")
        lines += self._body(function.body, inner)
        return [*lines, f"{inner}return {self.values(function.outputs)}".rstrip(), f"{indent}}}"]

    def init(self, model: Model) -> list[str]:
        self._begin()
        lines = ["  init {", *self._body(model.init, "    ")]
        pairs = zip(model.init.outputs, model.derived, strict=False)
        yields = ", ".join([f"{self.value(v)} as {_constant_head(c)}" for v, c in pairs])
        return [*lines, f"    yield {yields}".rstrip(), "  }"]

    def _body(self, graph: Graph, indent: str) -> list[str]:
        lines: list[str] = []
        for node in graph.nodes:
            lines += self.node(node, indent, 0)
        return lines
