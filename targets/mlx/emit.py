"""Writes a legal model as one Python module for MLX: functions, graphs, names and weights.

Single operators are lowered by the rules in the family files.  A value with one use and a short expression is written
where it is used; every other value is assigned to a name, the model's own where it has one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...ir import dims as sizes
from ...ir.data import SplatData
from ...ir.dims import Size
from ...ir.dtypes import DType
from ...ir.errors import IrcError
from ...ir.loops import trip_count
from ...ir.model import Constant, Function, Graph, Model, Node, Value
from ...ir.operators import Trait
from ...ir.types import TensorType
from . import recipes
from .context import ATOM, POSTFIX, Context
from .expression import Expr, identifier
from .linalg import bias_of
from .loading import loading
from .lowering import load
from .signature import Frame, shape_lines, signature
from .statements import Statements
from .wrapping import COLUMNS, wrapped

INLINE_ELEMENTS = 8
"""Named constants of at most this many elements are written out."""
SHORT = 48
"""Characters of an expression that may be written inside another one."""


@dataclass
class Emitted:
    """A module, and what it needs to run."""

    text: str
    weights: dict[str, Constant]
    """Constants that `prepare` takes, by name."""
    takes_weights: bool
    inputs: list[DType]
    outputs: list[DType]
    is_straight: bool
    """No value is read on the host, so that mx.compile can trace `main`."""
    traps: list[str]


class Emitter(Statements):
    """Writes one module.  Use `emit`."""

    def __init__(self, model: Model | None) -> None:
        super().__init__()
        self.model = model
        self.context = Context(self)
        self.table = load()
        self.transposed: dict[Expr, tuple[Expr, tuple[int, ...]]] = {}
        self.layouts: set[Expr] = set()
        self.products: dict[Expr, tuple[Expr, Expr]] = {}
        """Operands of products with a matrix that a sum may take in (`linalg.biased`)."""
        self.weights: dict[str, Constant] = {}
        self.traps: list[str] = []
        self.is_straight = True
        self._prepared: dict[str, tuple[str, str]] = {}
        self._recipes: dict[str, None] = {}
        self._values: dict[Value, Expr] = {}
        self._reserved: dict[str, str] = {}
        self._functions: dict[str, tuple[str, bool]] = {}
        self._labels = _labels(model)
        self._written: list[str] = []
        self._inlined: set[Graph] = set()
        self._unread = _conditions_not_written(model)

    def emit(self, entry: str) -> Emitted:
        assert self.model is not None
        function = self.model.entry(entry)
        main = self._function(function, "main")
        body = recipes.source(list(self._recipes)) + self._written + loading(self.weights, self._prepared)
        imports = [f"import {name}" for name, use in (("math", "math."), ("mlx.core as mx", "mx.")) if _uses(body, use)]
        head = [f'"""{_sentence(self.model.name, entry)}"""', *imports]
        text = "\n\n".join(head) + "\n\n\n" + "\n\n\n".join(b.rstrip("\n") for b in body) + "\n"
        return Emitted(
            text, self.weights, main, [v.dtype for v in function.inputs], [v.dtype for v in function.outputs],
            self.is_straight, self.traps,
        )  # fmt: skip

    # Functions

    def _function(self, function: Function, name: str) -> bool:
        """Write a function; whether it takes the weights."""
        outer = (self._frame, self._lines, self._indent)
        self._frame, self._lines, self._indent = Frame(function), [], 4
        frame = self._frame
        frame.names |= {name, *self._labels.values(), *(s for s in self._recipes)}
        for symbol in sorted({s for v in function.inputs if isinstance(v.type, TensorType) for s in _type_symbols(v)}):
            frame.symbols[symbol] = self.fresh(symbol)
        self._reserved, frame.symbols = frame.symbols, {}
        parameters = []
        for value, label in zip(function.inputs, function.input_names, strict=True):
            parameters.append(self.fresh(label))
            self._values[value] = self._name(parameters[-1], value)
        self.block(function.body)
        outputs = ", ".join(self.value(v).text() for v in function.outputs)
        self.line(
            f"return {outputs}{',' if len(function.outputs) == 1 and name != 'main' else ''}"
            if outputs
            else "return ()"
        )
        if frame.takes_weights:
            parameters.append("w")
        head = wrapped(f"def {name}({', '.join(parameters)}):", 0)
        sizes_read = shape_lines(frame, self._values, self.symbol)
        lines = [*head, *signature(function), *sizes_read, *_used(frame.header, self._lines), *self._lines]
        takes = frame.takes_weights
        self._frame, self._lines, self._indent = outer
        self._written.append("\n".join(lines))
        return takes

    def symbol(self, name: str) -> str:
        """The Python name of a size."""
        frame = self._frame
        if name not in frame.symbols:
            frame.symbols[name] = self._reserved.get(name) or self.fresh(name)
        return frame.symbols[name]

    def bind_symbol(self, name: str, text: str) -> None:
        """Give a size a value that is read at run time."""
        self.is_straight = False
        self.line(f"{self.symbol(name)} = {text}")
        self._frame.bound.add(name)

    def call(self, name: str, operands: Sequence[Expr], results: Sequence[Value]) -> tuple[Expr, ...]:
        """Results of a function of the model, which is written at its first call."""
        assert self.model is not None
        if name not in self._functions:
            label = self._labels[name]
            self._functions[name] = (label, False)
            reserved = self._reserved
            self._functions[name] = (label, self._function(self.model.functions[name], label))
            self._reserved = reserved
        label, takes = self._functions[name]
        self._frame.takes_weights |= takes
        made = self.context.call(label, *operands, *(["w"] if takes else []))
        return self.unpack(made, [(r.dtype, r.dims) for r in results], [r.name or label for r in results])

    # Graphs

    def block(self, graph: Graph) -> None:
        """Write the nodes of a graph here."""
        for node in graph.nodes:
            self.node(node)

    def node(self, node: Node) -> None:
        entry = self.table.find(node.op.name)
        if entry is None:
            raise IrcError(f"{node.label}: mlx has no lowering of {node.op.name}")
        for graph in node.all_graphs():
            for outer in graph.captures() if graph not in self._unread else ():
                self.bind(self.value(outer))
        outer_node, self.context.node = self.context.node, node
        operands = [None if v is None else self.value(v) for v in node.operands]
        out = self._channels_last(node, entry.rule, operands)
        if out is None:
            out = entry.rule(self.context, *node.op.group(operands), **node.keywords)
        results = out if isinstance(out, tuple) else () if out is None else (out,)
        for value, expr in zip(node.results, results, strict=True):
            self.define(value, expr)
        self.context.node = outer_node

    def _channels_last(self, node: Node, rule: Any, operands: list[Expr | None]) -> Expr | None:
        """Apply an elementwise rule to what a convolution made, before it is brought into the model's layout."""
        if Trait.ELEMENTWISE not in node.op.traits or len(node.results) != 1:
            return None
        views = [o for o in operands if o is not None and o.core in self.layouts]
        if not views:
            return None
        permutation = self.transposed[views[0].core][1]
        inner: list[Expr | None] = []
        for o in operands:
            if o is None or (o.number is not None and o.rank <= len(permutation)):
                inner.append(o)
            elif o.core in self.layouts and self.transposed[o.core][1] == permutation:
                inner.append(self.transposed[o.core][0])
            elif (turned := self._turned(o, permutation)) is not None:
                inner.append(turned)
            else:
                return None
        out = rule(self.context, *node.op.group(inner), **node.keywords)
        made = self.context.typed(
            out, node.result.dtype, [node.result.dims[permutation.index(a)] for a in range(len(permutation))]
        )
        return self.context.channels_first(made)

    def _turned(self, x: Expr, permutation: tuple[int, ...]) -> Expr | None:
        """A small operand of shape [C, 1, ..] as the vector [C] that it is with channels last."""
        if x.rank >= len(permutation) - 1 and all(
            d == 1 for i, d in enumerate(x.dims) if i != x.rank - len(permutation) + 1
        ):
            return self.context.reshape(x, (x.dims[x.rank - len(permutation) + 1],))
        return None

    @contextmanager
    def inlining(self, graph: Graph) -> Iterator[None]:
        """Inside it, what the graph only yields is written where its result goes, not assigned to a name first."""
        self._inlined.add(graph)
        yield
        self._inlined.discard(graph)

    def named(self, name: str, value: Value) -> Expr:
        """The expression of a value that statements assign to `name`."""
        return self._name(name, value)

    def define_name(self, name: str, value: Value) -> None:
        """The value is what `name` holds."""
        self._values[value] = self._name(name, value)

    def define(self, value: Value, expr: Expr) -> None:
        """The expression is the value: write it down, unless its one use is near and it is short."""
        hint = identifier(value.name) if value.name else _hint(value)
        core = expr.core
        if core in self.layouts and core.variable is None:
            source = self.transposed[core][0]
            source.core.hint = source.core.hint or hint
            single = len(value.uses) == 1 and not value.is_output
            if not (single and len(source.text()) <= SHORT):
                self.bind(source, hint)
            core.trivial = core.trivial or source.is_plain
            self._values[value] = expr
            expr.hint = hint
            return
        if core.hint is None and not core.is_plain:
            core.hint = hint
        if expr.data is not None and expr is core:
            pass
        elif expr.dtype is not value.dtype or expr.dims != value.dims or expr.hint is not None:
            made = self.context.typed(expr, value.dtype, value.dims)
            expr = made
        expr.hint = expr.hint or hint
        self._values[value] = expr
        uses = [u for u in value.uses if not isinstance(u[0], Node) or u[0].graph not in self._unread]
        if not uses or expr.is_plain:
            return
        user = uses[0][0]
        if len(uses) == 1 and user in self._inlined:
            return
        near = user if len(uses) == 1 and isinstance(user, Node) and user.graph is value.graph else None
        near = None if near is None or any(near.all_graphs()) else near
        if near is not None and core in self.products and bias_of(near, value) is not None:
            return
        if near is None or len(expr.text()) > SHORT or (core.hint == hint and value.name and _depth(core) > 2):
            self.bind(expr)

    def value(self, value: Value) -> Expr:
        """The expression of an operand."""
        if not isinstance(value, Constant):
            return self._values[value]
        if value not in self._frame.constants:
            self._frame.constants[value] = self._constant(value)
        return self._frame.constants[value]

    def _name(self, name: str, value: Value) -> Expr:
        out = Expr((name,), ATOM, value.dtype, value.dims, trivial=True)
        out.variable = name
        return out

    # Constants

    def is_weight(self, constant: Constant) -> bool:
        """Whether it is loaded rather than written out."""
        if constant.name is None or isinstance(constant.data, SplatData):
            return False
        size = constant.tensor.size
        return constant.data is None or (isinstance(size, int) and size > INLINE_ELEMENTS)

    def _constant(self, constant: Constant) -> Expr:
        if self.is_weight(constant):
            assert constant.name is not None
            self.weights[constant.name] = constant
            return self.weight(constant.name, constant.dtype, constant.dims)
        assert constant.data is not None
        if isinstance(constant.data, SplatData) and constant.data.size > 1:
            return self.context.full(constant.data.splat, constant.dtype, constant.dims)
        array = constant.data.numpy()
        out = self.context.array(array, constant.dtype)
        if array.size > 1 and len(out.text()) > SHORT:
            name = self.fresh(identifier(constant.name or "constant"))
            self._frame.header[name] = wrapped(f"{name} = {out.text()}", 4)
            out.variable = name
        return out

    def weight(self, key: str, dtype: DType, dims: Sequence[Size]) -> Expr:
        """`w["key"]`."""
        self._frame.takes_weights = True
        return Expr((f"w[{json.dumps(key, ensure_ascii=False)}]",), POSTFIX, dtype, tuple(dims), trivial=True)

    def prepared(
        self, constant: Constant, suffix: str, make: str, dims: tuple[Size, ...], beside: bool = False
    ) -> Expr:
        """See `Context.prepared`."""
        assert constant.name is not None
        self.weights[constant.name] = constant
        alone = len(constant.uses) == 1 and not beside
        key = constant.name if alone else f"{constant.name}.{suffix}"
        self._prepared[key] = (constant.name, make)
        return self.weight(key, constant.dtype, dims)

    def need(self, recipe: str) -> None:
        """The module uses this recipe."""
        self._recipes[recipe] = None

    def elementwise_function(self, graph: Graph, name: str, dims: Sequence[Sequence[Size]]) -> str:
        """See `Context.function`."""
        for node in graph.nodes:
            if Trait.ELEMENTWISE not in node.op.traits:
                self.context.refuse(f"a body with {node.op.name}: MLX runs bodies on whole arrays, elementwise")
        label = self.fresh(name)
        parameters = [self.fresh(v.name or "a") for v in graph.inputs]
        for value, parameter, shape in zip(graph.inputs, parameters, dims, strict=True):
            made = Expr((parameter,), ATOM, value.dtype, tuple(shape), trivial=True)
            made.variable = parameter
            self._values[value] = made
        with self.indented(f"def {label}({', '.join(parameters)}):"):
            self.block(graph)
            exprs = [self.value(v) for v in graph.outputs]
            self.line(f"return {', '.join(self.written(e) for e in exprs)}")
        self._lines.append("")
        return label

    def trap(self, message: str) -> None:
        """Raise at run time."""
        self.is_straight = False
        self.traps.append(message)
        self.line(f"raise RuntimeError({json.dumps(message)})")


def _used(header: Mapping[str, list[str]], lines: Sequence[str]) -> list[str]:
    """Statements of the names that the lines mention: some constants turn out to be needed in another form."""
    words = set(re.findall(r"\w+", " ".join(lines))) if header else set()
    return [line for name, made in header.items() if name in words for line in made]


def _uses(body: Sequence[str], module: str) -> bool:
    """Whether code, signatures in docstrings apart, mentions a module."""
    return any(re.search(rf"(?<![\w.]){re.escape(module)}", line) for text in body for line in text.splitlines())


def _conditions_not_written(model: Model | None) -> set[Graph]:
    """Conditions of loops that become `for`."""
    if model is None:
        return set()
    loops = (n for n in model.nodes() if n.op.name == "while")
    return {n.graphs["cond"][0] for n in loops if trip_count(n) is not None}


def _depth(expr: Expr) -> int:
    """Levels of values written inside."""
    return max(
        ((e.hint is not None) + _depth(e) for e in (c.core for c in expr.children()) if not e.is_plain), default=0
    )


def _hint(value: Value) -> str:
    return value.node.op.name.lower() if value.node is not None else "v"


def _type_symbols(value: Value) -> tuple[str, ...]:
    return tuple(s for d in value.dims if not isinstance(d, int) for s in sizes.symbols(d))


def _sentence(name: str, entry: str) -> str:
    label = name.replace("\\", "/").replace('"', "'").replace("\n", " ")
    return f"MLX code of {label if entry == 'main' else f'{label}, entry {entry}'}, written by irc."[: COLUMNS - 6]


def _labels(model: Model | None) -> dict[str, str]:
    """What each function of the model is called in the module; no value of a function may have one of these names."""
    out: dict[str, str] = {}
    for name in model.functions if model is not None else ():
        label = identifier(name)
        taken = {*out.values(), "main", "load", "prepare", "mx", "math", "w"}
        out[name] = next(n for n in (label, *(f"{label}_{i}" for i in range(1, len(taken) + 2))) if n not in taken)
    return out


def emit(model: Model, entry: str) -> Emitted:
    """The Python module of an entry of a legal model."""
    return Emitter(model).emit(entry)


def dry_run(node: Node) -> None:
    """Run a node's rule on stand-ins for its operands; Refusal says why it cannot be lowered.

    Sub-graphs are left out where their nodes are asked by themselves: those of control flow.
    """
    if node.op.name in ("if", "case", "while", "call", "trap", "bind_dim"):
        return
    emitter = Emitter(None)
    for i, operand in enumerate(node.operands):
        if operand is not None and not isinstance(operand, Constant):
            emitter.define_name(f"x{i}", operand)
    for graph in node.all_graphs():
        for i, outer in enumerate(graph.captures()):
            emitter.define_name(f"c{i}", outer)
    emitter.node(node)


__all__ = ["Emitted", "Emitter", "dry_run", "emit"]
