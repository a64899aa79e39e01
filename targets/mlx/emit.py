"""Writes a legal model as one Python module for MLX: functions, graphs, names and weights.

Single operators are lowered by the rules in the family files.  A value with one use and a short expression is written
where it is used; every other value is assigned to a name, the model's own where it has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ...ir import container
from ...ir import dims as sizes
from ...ir.data import SplatData
from ...ir.dims import Size
from ...ir.dtypes import DType
from ...ir.errors import IrcError
from ...ir.model import Constant, Function, Graph, Model, Node, Value
from ...ir.operators import Trait
from ...ir.types import TensorType
from . import recipes, types
from .context import ATOM, POSTFIX, Context
from .control import trip_count
from .expression import Expr, identifier
from .lowering import load
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


@dataclass
class _Frame:
    """A function being written."""

    function: Function | None
    names: set[str] = field(default_factory=set)
    header: list[str] = field(default_factory=list)
    symbols: dict[str, str] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    constants: dict[Constant, Expr] = field(default_factory=dict)
    takes_weights: bool = False


class Emitter:
    """Writes one module.  Use `emit`."""

    def __init__(self, model: Model | None) -> None:
        self.model = model
        self.context = Context(self)
        self.table = load()
        self.transposed: dict[Expr, tuple[Expr, tuple[int, ...]]] = {}
        self.layouts: set[Expr] = set()
        self.weights: dict[str, Constant] = {}
        self.traps: list[str] = []
        self.is_straight = True
        self._prepared: dict[str, tuple[str, str]] = {}
        self._recipes: dict[str, None] = {}
        self._values: dict[Value, Expr] = {}
        self._lines: list[str] = []
        self._indent = 4
        self._frame = _Frame(None)
        self._reserved: dict[str, str] = {}
        self._functions: dict[str, tuple[str, bool]] = {}
        self._written: list[str] = []
        self._inlined: set[Graph] = set()
        self._unread = _conditions_not_written(model)

    def emit(self, entry: str) -> Emitted:
        assert self.model is not None
        function = self.model.entry(entry)
        main = self._function(function, "main")
        parts = [f'"""{_sentence(self.model.name, entry)}"""\n']
        body = recipes.source(list(self._recipes)) + self._written + self._loading()
        uses_math = any("math." in b for b in body)
        parts.append("import math\n\nimport mlx.core as mx\n" if uses_math else "import mlx.core as mx\n")
        text = "\n".join(parts) + "\n\n" + "\n\n\n".join(b.rstrip("\n") for b in body) + "\n"
        return Emitted(
            text, self.weights, main, [v.dtype for v in function.inputs], [v.dtype for v in function.outputs],
            self.is_straight, self.traps,
        )  # fmt: skip

    # Functions

    def _function(self, function: Function, name: str) -> bool:
        """Write a function; whether it takes the weights."""
        outer = (self._frame, self._lines, self._indent)
        self._frame, self._lines, self._indent = _Frame(function), [], 4
        frame = self._frame
        frame.names |= {name, *(s for s in self._recipes)}
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
        signature = self._signature(function)
        lines = [*head, *signature, *self._shape_lines(frame), *frame.header, *self._lines]
        takes = frame.takes_weights
        self._frame, self._lines, self._indent = outer
        self._written.append("\n".join(lines))
        return takes

    def _signature(self, function: Function) -> list[str]:
        inputs = ", ".join(f"{n}: {v.type}" for n, v in zip(function.input_names, function.inputs, strict=True))
        outputs = ", ".join(f"{n}: {v.type}" for n, v in zip(function.output_names, function.outputs, strict=True))
        text = f"{inputs} -> {outputs}".replace("\\", "/").replace('"', "'")
        if len(text) + 10 <= COLUMNS:
            return [f'    """{text}"""']
        lines = [""]
        for word in text.split(" "):
            if len(lines[-1]) + len(word) + 6 > COLUMNS:
                lines.append("")
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
        return ['    """' + lines[0], *(f"    {line}" for line in lines[1:]), '    """']

    def _shape_lines(self, frame: _Frame) -> list[str]:
        """Assignments of the sizes that the function mentions, read from the shapes of its inputs."""
        assert frame.function is not None
        lines: list[str] = []
        wanted = {s for s in frame.symbols if s not in frame.bound}
        for value in frame.function.inputs:
            if not isinstance(value.type, TensorType) or not wanted:
                continue
            places = {d._terms[0][0][0].text: i for i, d in reversed(list(enumerate(value.dims))) if _is_symbol(d)}
            found = sorted((i, s) for s, i in places.items() if s in wanted)
            if found:
                lines.append(
                    self._shape_line(
                        frame, self._values[value].text(), [i for i, _ in found], [s for _, s in found], value.rank
                    )
                )
                wanted -= {s for _, s in found}
        for symbol in sorted(wanted):
            lines.append(self._solved(frame, symbol))
        return lines

    def _shape_line(self, frame: _Frame, x: str, axes: list[int], symbols: list[str], rank: int) -> str:
        names = ", ".join(frame.symbols[s] for s in symbols)
        if len(axes) == 1:
            return f"    {names} = {x}.shape[{axes[0]}]"
        if axes == list(range(rank)):
            return f"    {names} = {x}.shape"
        if axes == list(range(len(axes))):
            return f"    {names} = {x}.shape[:{len(axes)}]"
        if axes == list(range(axes[0], rank)):
            return f"    {names} = {x}.shape[{axes[0]}:]"
        return f"    {names} = {', '.join(f'{x}.shape[{a}]' for a in axes)}"

    def _solved(self, frame: _Frame, symbol: str) -> str:
        """A size that no axis has by itself, such as N of an input of 2*N elements."""
        assert frame.function is not None
        known: dict[str, Size] = {s: sizes.symbol(s) for s in self._reserved if s != symbol}
        for value in frame.function.inputs:
            for axis, dim in enumerate(value.dims):
                bindings = dict(known)
                place = f"shape_{self._values[value].text()}_{axis}"
                if symbol in sizes.symbols(dim) and sizes.solve(dim, sizes.symbol(place), bindings):
                    text = sizes.render(
                        bindings[symbol],
                        lambda s, x=value, a=axis, p=place: (
                            f"{self._values[x].text()}.shape[{a}]" if s == p else self.symbol(s)
                        ),
                    )
                    return f"    {frame.symbols[symbol]} = {text}"
        # Exact division that the dims cannot prove: the sizes were checked before the call.
        for value in frame.function.inputs:
            for axis, dim in enumerate(value.dims):
                if symbol in sizes.symbols(dim) and not isinstance(dim, int):
                    factor = dict(dim._terms).get(sizes.symbol(symbol)._terms[0][0], 0)
                    rest = dim - sizes.symbol(symbol) * factor
                    if factor and symbol not in sizes.symbols(rest):
                        x = f"{self._values[value].text()}.shape[{axis}]"
                        left = (
                            x if isinstance(rest, int) and rest == 0 else f"({x} - ({sizes.render(rest, self.symbol)}))"
                        )
                        return f"    {frame.symbols[symbol]} = {left} // {factor}"
        raise IrcError(f"the size {symbol} of @{frame.function.name} does not follow from the shapes of its inputs")

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
            label = identifier(name)
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

    @contextmanager
    def tentative(self) -> Iterator[list[str]]:
        """Statements written inside it are taken back and stand in the list that it gives."""
        count, taken = len(self._lines), list[str]()
        yield taken
        taken += self._lines[count:]
        del self._lines[count:]

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
        near = len(uses) == 1 and isinstance(user, Node) and user.graph is value.graph and not any(user.all_graphs())
        if not near or len(expr.text()) > SHORT or (core.hint == hint and value.name and _depth(core) > 2):
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
            self._frame.header += wrapped(f"{name} = {out.text()}", 4)
            out.variable = name
        return out

    def weight(self, key: str, dtype: DType, dims: Sequence[Size]) -> Expr:
        """`w["key"]`."""
        self._frame.takes_weights = True
        return Expr((f"w[{json.dumps(key, ensure_ascii=False)}]",), POSTFIX, dtype, tuple(dims), trivial=True)

    def prepared(self, constant: Constant, suffix: str, make: str, dims: tuple[Size, ...]) -> Expr:
        """See `Context.prepared`."""
        assert constant.name is not None
        self.weights[constant.name] = constant
        alone = len(constant.uses) == 1
        key = constant.name if alone else f"{constant.name}.{suffix}"
        self._prepared[key] = (constant.name, make)
        return self.weight(key, constant.dtype, dims)

    def _loading(self) -> list[str]:
        """The functions that read weights."""
        if not self.weights:
            return []
        out = []
        groups: dict[str, list[str]] = {}
        lines = []
        for key, (name, make) in self._prepared.items():
            if key == name:
                groups.setdefault(make, []).append(key)
            else:
                lines += wrapped(f"w[{json.dumps(key)}] = {make.format(f'w[{json.dumps(name)}]')}", 4)
        for make, keys in groups.items():
            if len(keys) == 1:
                place = f"w[{json.dumps(keys[0])}]"
                lines += wrapped(f"{place} = {make.format(place)}", 4)
            else:
                lines += wrapped(f"for name in ({', '.join(json.dumps(k) for k in keys)}):", 4)
                lines.append(f"        w[name] = {make.format('w[name]')}")
        if lines:
            out.append(
                "\n".join(
                    ["def prepare(w):", '    """Weights in the layout that main takes."""', *lines, "    return w"]
                )
            )
        reading = []
        for name, constant in self.weights.items():
            reading += _decoding(name, constant)
        returned = "prepare(w)" if lines else "w"
        head = ["def load(path):", '    """The weights, from a safetensors file."""']
        first = '    w = mx.load(path, format="safetensors")'
        out.append("\n".join([*head, first, *reading, f"    return {returned}"]))
        return out

    # Statements

    def need(self, recipe: str) -> None:
        """The module uses this recipe."""
        self._recipes[recipe] = None

    def fresh(self, hint: str) -> str:
        """A name that the function does not use yet."""
        base = identifier(hint)
        name, number = base, 0
        while name in self._frame.names:
            number += 1
            name = f"{base}_{number}"
        self._frame.names.add(name)
        return name

    def line(self, text: str) -> None:
        """One statement."""
        self._lines += wrapped(text, self._indent)

    @contextmanager
    def indented(self, head: str) -> Iterator[None]:
        """A compound statement: what is written inside is its body."""
        self.line(head)
        self._indent += 4
        count = len(self._lines)
        yield
        if len(self._lines) == count:
            self.line("pass")
        self._indent -= 4

    def bind(self, expr: Expr, hint: str | None = None) -> None:
        """Assign to a name, unless it is plain."""
        core = expr.core
        if core.is_plain:
            return
        self.settle(core)
        text = self._short_enough(core)
        name = self.fresh(hint or expr.hint or core.hint or "t")
        self.line(f"{name} = {text}")
        core.variable = name

    def assign(self, names: Sequence[str], exprs: Sequence[Expr]) -> None:
        """`a, b = x, y`, all at once."""
        for expr in exprs:
            self.settle(expr)
        self.line(f"{', '.join(names)} = {', '.join(e.text() for e in exprs)}")

    def written(self, expr: Expr) -> str:
        """Source of an expression, ready to stand in a statement written next."""
        self.settle(expr)
        return self._short_enough(expr)

    def _short_enough(self, expr: Expr) -> str:
        """The text; inner values are assigned to names until it fits a line."""
        while self._indent + len(expr.text()) + 24 > COLUMNS:
            inner = [e for e in _descendants(expr) if not e.is_plain and e.hint is not None]
            if not inner:
                break
            self.bind(max(inner, key=lambda e: len(e.text())))
        return expr.text()

    def settle(self, expr: Expr) -> None:
        """Assign what the expression would write more than once to names."""
        counts: dict[Expr, int] = {}
        order: list[Expr] = []

        def visit(e: Expr) -> None:
            for child in e.children():
                core = child.core
                if core.is_plain:
                    continue
                counts[core] = counts.get(core, 0) + 1
                if counts[core] == 1:
                    visit(core)
                    order.append(core)

        visit(expr)
        for e in order:
            if counts[e] > 1:
                self.bind(e)

    def unpack(
        self, x: Expr, parts: Sequence[tuple[DType, Sequence[Size]]], hints: Sequence[str] = ()
    ) -> tuple[Expr, ...]:
        """See `Context.unpack`."""
        text = self.written(x)
        names = [self.fresh(hints[i] if i < len(hints) else "t") for i in range(len(parts))]
        self.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {text}")
        out = []
        for name, (dtype, dims) in zip(names, parts, strict=True):
            made = Expr((name,), ATOM, dtype, tuple(dims), trivial=True)
            made.variable = name
            out.append(made)
        return tuple(out)

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


def _conditions_not_written(model: Model | None) -> set[Graph]:
    """Conditions of loops that become `for`."""
    if model is None:
        return set()
    loops = (n for n in model.nodes() if n.op.name == "while")
    return {n.graphs["cond"][0] for n in loops if trip_count(n) is not None}


def _descendants(expr: Expr) -> Iterator[Expr]:
    for child in expr.children():
        core = child.core
        if core is not expr:
            yield core
            yield from _descendants(core)


def _depth(expr: Expr) -> int:
    """Levels of values written inside."""
    return max(
        ((e.hint is not None) + _depth(e) for e in (c.core for c in expr.children()) if not e.is_plain), default=0
    )


def _hint(value: Value) -> str:
    return value.node.op.name.lower() if value.node is not None else "v"


def _is_symbol(dim: Size) -> bool:
    return not isinstance(dim, int) and str(dim).isidentifier()


def _type_symbols(value: Value) -> tuple[str, ...]:
    return tuple(s for d in value.dims if not isinstance(d, int) for s in sizes.symbols(d))


def _sentence(name: str, entry: str) -> str:
    label = name.replace("\\", "/").replace('"', "'").replace("\n", " ")
    return f"MLX code of {label if entry == 'main' else f'{label}, entry {entry}'}, written by irc."[: COLUMNS - 6]


def _decoding(name: str, constant: Constant) -> list[str]:
    """Statements that turn what the container stores into what main takes."""
    key, dtype = container.tensor_key(name), constant.dtype
    place, stored = f"w[{json.dumps(name, ensure_ascii=False)}]", f"w[{json.dumps(key, ensure_ascii=False)}]"
    if dtype in container.NATIVE:
        return [] if key == name else wrapped(f"{place} = {stored}", 4)
    dims = ", ".join(map(str, constant.dims)) or "()"
    if dtype.is_integer:
        bits, sign = (1 << dtype.bits) - 1, 1 << (dtype.bits - 1)
        stored = (
            f"({stored} & {bits})" if dtype.kind == "uint" else f"(({stored} & {bits}) ^ {sign}).view(mx.int8) - {sign}"
        )
        stored = stored if dtype.kind == "uint" else f"({stored})"
    elif not types.is_code(dtype):
        stored = f"{stored}.view({types.spelling(dtype)})"
    return wrapped(f"{place} = {stored}.reshape({dims})", 4)


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
