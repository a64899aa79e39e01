"""Parses nodes: operands, attributes, sub-graphs, results, results.  Models and functions are parser.py's.

Every node is typed again by inference, so what comes out is as checked as what a builder makes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .. import dims as sizes
from .. import infer as inference
from ..dtypes import DType
from ..errors import IrcError, did_you_mean
from ..facts import Fact
from ..model import Function, Graph, Location, Model, Node, Value
from ..operators import Operator, all_operators, find, missing_plugin
from ..plugins import PluginError, namespace
from ..types import TensorType, Type
from .lexer import END, is_identifier, label, suggestion
from .printer import MAX_DEPTH, RESULT_TYPES, region_word
from .reading import DTYPES, Reader


@dataclass
class Scope:
    """Names visible at one place: of the function or `init`, and of the sub-graphs that are open there."""

    function: Function | None
    names: dict[str, tuple[Value, int]] = field(default_factory=dict)
    """Label -> the value and how many sub-graphs are around its definition."""
    defined: list[list[str]] = field(default_factory=lambda: [[]])
    """Labels by sub-graph, the body first; they go when it ends."""
    captures: list[dict[Value, None]] = field(default_factory=list)
    """Outer values used in each open sub-graph."""


class NodeReader(Reader):
    """Reads the nodes of one scope at a time into graphs of the model `out`."""

    def __init__(self, text: str, filename: str) -> None:
        super().__init__(text, filename)
        self.out = Model()
        self.scope = Scope(None)
        self.required: dict[str, str] = {}
        """Namespaces of operators of plug-ins, and the distributions that have them."""

    # Values.

    def marks(self) -> dict[str, str]:
        """`{role = "random_key"}`, or nothing."""
        out: dict[str, str] = {}
        if self.accept("{"):
            while not self.accept("}"):
                if out:
                    self.expect(",", "or }")
                name = self.key("a key")
                self.expect("=")
                out[name] = self.string()
        return out

    def inputs(self, graph: Graph, marks: list[dict[str, str]] | None) -> list[tuple[str, int]]:
        """Inputs of a graph; what the text calls them and where, to make them visible in the body."""
        keys: list[tuple[str, int]] = []
        while not self.accept(")"):
            if keys:
                self.expect(",", "or )")
            name, key = self.value_label()
            keys.append((key, self.at - 1))
            if marks is not None:
                marks.append(self.marks())
            self.expect(":")
            place = self.at
            type_ = self.type()
            value = graph.add_input(type_, name)
            if self.accept("holds"):
                value.set_fact(Fact(type_, self.ints()))
                if value.ints is None:
                    raise self.error(f"a value of type {type_} has no known integers", place)
                if sizes.equal(value.tensor.size, len(value.ints)) is False:
                    raise self.error(f"{len(value.ints)} known integers for a value of type {type_}", place)
        return keys

    def value_label(self) -> tuple[str | None, str]:
        """A value's label (None for a number, which stands for no label), and the key it is found under."""
        token = self.token
        name = self.sigil("%", "a value's name (%name)")
        return (None, name) if name.isdecimal() and token[1] != '"' else (name, label(name))

    def define(self, value: Value, key: str, at: int) -> None:
        """Make a value visible."""
        scope = self.scope
        if key in scope.names:
            raise self.error(f"%{key} is defined already", at)
        scope.names[key] = value, len(scope.captures)
        scope.defined[-1].append(key)

    def used_value(self) -> Value:
        """A value, a named constant, or a constant with its type."""
        token = self.token
        match token[0]:
            case "%":
                return self.known_value(token)
            case "#":
                name = self.sigil("#", "a constant's name (#name)")
                constant = self.out.constants.get(name)
                if constant is None:
                    raise self.error(
                        f"there is no constant #{label(name)}{suggestion(name, self.out.constants)}", self.at - 1
                    )
                return constant
        if token in DTYPES:
            return self.out.inline_constant(self.constant())
        raise self.expected("a value (%name), a constant (#name) or a constant with its type (i64[2] [1, 2])")

    def known_value(self, token: str) -> Value:
        found = self.scope.names.get(token[1:])
        if found is None:
            name = self.sigil("%", "a value's name (%name)")
            self.at -= 1
            found = self.scope.names.get(label(name)) if token[1] == '"' else None
            if found is None:
                raise self.error(f"there is no value {token[:40]} here{suggestion(token[1:], self.scope.names)}")
        self.at += 1
        value, level = found
        for captures in self.scope.captures[level:]:
            captures[value] = None
        return value

    def used_values(self) -> list[Value]:
        """Values up to the closing brace."""
        out: list[Value] = []
        while self.token != "}":
            if out:
                self.expect(",", "or }")
            out.append(self.used_value())
        return out

    # Nodes.

    def nodes(self, graph: Graph, last: str) -> None:
        """Nodes up to the statement `last`, whose word is stepped over."""
        while not self.accept(last):
            if self.token[0] != "%" and (self.token in ("}", "return", "yield") or not is_identifier(self.token)):
                raise self.expected(f"a node (%name = operator(...)) or {last}")
            self.node(graph, last)

    def node(self, graph: Graph, last: str) -> None:
        names, keys, places = self.result_names()
        place = self.at
        op = self.operator(last)
        operands = self.operands(op)
        captures = self.captures() if self.token == "captures" else None
        attributes = self.attributes(op)
        types: list[Type] = []
        place_of_types = self.at
        if self.accept(":"):
            types.append(self.type())
            while self.accept(","):
                types.append(self.type())
        location = self.location() if self.token == "loc" else Location()
        graphs = self.regions(op, captures)
        if op.kinds.get("results") == RESULT_TYPES:
            attributes.setdefault("results", tuple(types))
        node, facts = self.typed(op, operands, attributes, graphs, location, place)
        if not len(facts) == len(names) == len(types):
            raise self.error(
                f"{op.name} has {len(facts)} results here; {len(names)} names and {len(types)} types are given", place
            )
        results = []
        for i, (fact, type_) in enumerate(zip(facts, types, strict=True)):
            if fact.type != type_ and not self.agree(fact.type, type_):
                raise self.error(
                    f"result {i} of {op.name} has type {fact.type}, not {type_} as declared", place_of_types
                )
            value = Value(type_, names[i], node, i)
            value.set_fact(Fact(type_, fact.ints))
            results.append(value)
        node.results = tuple(results)
        graph._insert(node, None)
        for value, key, at in zip(results, keys, places, strict=True):
            self.define(value, key, at)

    def operator(self, last: str) -> Operator:
        """`Name`, or `namespace.Name` of a plug-in."""
        place = self.at
        name = self.identifier("the name of an operator")
        if self.accept("."):
            name = f"{name}.{self.identifier('the name of an operator of a plug-in')}"
        try:
            op = find(name)
        except PluginError as error:
            raise self.error(str(error), place) from error
        if op is None:
            hint = missing_plugin(name, self.required.get(namespace(name)))
            if not hint:
                hint = suggestion(name, [*(o.name for o in all_operators()), last])
            raise self.error(f"no operator is called {name[:40]!r}{hint}", place)
        return op

    def result_names(self) -> tuple[list[str | None], list[str], list[int]]:
        """Labels of results, the keys they are found under, and where they stand."""
        names: list[str | None] = []
        keys: list[str] = []
        places: list[int] = []
        while self.token[0] == "%":
            places.append(self.at)
            name, key = self.value_label()
            names.append(name)
            keys.append(key)
            if not self.accept(","):
                self.expect("=", "behind the names of the results")
                break
        return names, keys, places

    def operands(self, op: Operator) -> list[Value | None]:
        self.expect("(", f"and the operands of {op.name}")
        out: list[Value | None] = []
        bare: list[tuple[int, int]] = []
        like: DType | None = None
        while not self.accept(")"):
            if out:
                self.expect(",", "or )")
            token = self.token
            if token[0] == "%":
                value = self.known_value(token)
                out.append(value)
                if like is None and isinstance(value.type, TensorType):
                    like = value.type.dtype
            elif token == "_":
                self.at += 1
                out.append(None)
            elif token[0] == "#" or (token in DTYPES and self.tokens[self.at + 1] == "["):
                out.append(self.used_value())
            else:
                bare.append((len(out), self.at))
                out.append(None)
                self.skip_bare()
        end = self.at
        for index, self.at in bare:
            if like is None:
                raise self.error(
                    "a bare number takes its type from an operand that is no constant; here it needs its own: f32[] 6.0"
                )
            out[index] = self.out.inline_constant(self.scalar(like))
        self.at = end
        return out

    def skip_bare(self) -> None:
        """Step over what may be a bare element; it is read once the operand that decides its type is known."""
        token = self.token
        if token == "(":
            while self.token not in (")", END):
                self.at += 1
            if self.token == END:
                raise self.expected("')' behind the parts of a complex number")
        elif token == "-":
            self.at += 1
            token = self.token
        if not (token[0] in '("' or token in ("true", "false", "inf", "nan") or "0" <= token[0] <= "9"):
            raise self.expected("an operand: a value (%name), a constant (#name, 6.0, i64[2] [1, 2]) or _")
        self.at += 1

    def captures(self) -> tuple[int, list[Value]]:
        """The declared captures and where they stand."""
        place = self.at
        self.at += 1
        self.expect("(")
        out: list[Value] = []
        while not self.accept(")"):
            if out:
                self.expect(",", "or )")
            out.append(self.known_value(self.token) if self.token[0] == "%" else self.used_value())
        return place, out

    def attributes(self, op: Operator) -> dict[str, Any]:
        out: dict[str, Any] = {}
        if self.accept("{"):
            while not self.accept("}"):
                if out:
                    self.expect(",", "or }")
                name = self.identifier(f"an attribute of {op.name}")
                kind = op.kinds.get(name)
                if kind is None:
                    hint = did_you_mean(name, op.kinds) if op.kinds else "; it has none"
                    raise self.error(f"{op.name} has no attribute {name[:40]!r}{hint}", self.at - 1)
                if name in out:
                    raise self.error(f"attribute {name} is given twice", self.at - 1)
                self.expect("=")
                out[name] = self.attribute(kind)
        return out

    def location(self) -> Location:
        self.at += 1
        self.expect("(")
        source: list[str] = []
        while self.token[0] == '"':
            source.append(self.string())
            if not self.accept(","):
                break
        rewrite = self.string() if self.accept("by") else None
        self.expect(")")
        return Location(tuple(source), rewrite)

    def regions(self, op: Operator, captures: tuple[int, list[Value]] | None) -> dict[str, tuple[Graph, ...]]:
        words = {region_word(spec): spec for spec in op.regions}
        out: dict[str, tuple[Graph, ...]] = {}
        used: dict[Value, None] = {}
        while (spec := words.get(self.token)) is not None:
            if spec.name in out and not spec.variadic:
                raise self.error(f"{op.name} has one graph {self.token}; this is the second")
            self.at += 1
            out[spec.name] = (*out.get(spec.name, ()), self.region(used))
        if captures is not None and set(captures[1]) != set(used):
            names = ", ".join([f"%{label(v.name) if v.name is not None else '?'}" for v in used])
            raise self.error(f"the sub-graphs of this {op.name} capture ({names})", captures[0])
        return out

    def region(self, used: dict[Value, None]) -> Graph:
        scope = self.scope
        if len(scope.captures) == MAX_DEPTH:
            raise self.error(f"sub-graphs nest deeper than {MAX_DEPTH}")
        graph = Graph()
        scope.captures.append({})
        scope.defined.append([])
        if self.accept("("):
            keys = self.inputs(graph, None)
            for value, (key, at) in zip(graph.inputs, keys, strict=True):
                self.define(value, key, at)
        self.expect("{")
        self.nodes(graph, "yield")
        graph.set_outputs(self.used_values())
        self.close_body("yield")
        used.update(scope.captures.pop())
        for key in scope.defined.pop():
            del scope.names[key]
        return graph

    def close_body(self, word: str) -> None:
        if self.token != "}":
            raise self.expected(f"}} after {word}")
        self.at += 1

    # Types.

    def typed(
        self,
        op: Operator,
        operands: list[Value | None],
        attributes: dict[str, Any],
        graphs: dict[str, tuple[Graph, ...]],
        location: Location,
        place: int,
    ) -> tuple[Node, tuple[Fact, ...]]:
        """The node, and facts of its results.  Relations that it needs are not recorded: the text has them."""
        ctx = inference.InferContext(self.out, self.scope.function, op.name)
        try:
            checked = op.make_attributes(attributes)
            facts = inference.infer(ctx, op, [None if v is None else v.fact for v in operands], checked, graphs)
        except IrcError as error:
            raise self.error(str(error), place) from error
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            # An infer rule met what it does not expect: its defect, but a file must not bring the reader down.
            raise self.error(f"{op.name} cannot be typed: {type(error).__name__}: {error}", place) from error
        return Node(op, operands, checked, graphs, location), (facts,) if isinstance(facts, Fact) else facts

    def agree(self, inferred: Type, declared: Type) -> bool:
        """Whether two types differ only in how equal sizes are spelled, for the verifier."""
        from ..verify.nodes import same_type

        return same_type(inferred, declared, self.scope.function)
