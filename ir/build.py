"""Building graphs: `build.add(x, y)`, `build.take(data, indices, axis=1)`, one method an operator, typed as you go.

The builder only adds nodes.  Changing a graph that others hold is the Rewriter's work; it hands out builders.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from . import dtypes
from . import infer as inference
from .data import ArrayData, Data
from .dims import Assumption, Size
from .dtypes import DType
from .errors import InferenceError
from .facts import Fact, shape_fact
from .model import Constant, Function, Graph, Location, Model, Node, Value
from .operators import Namespace, Operator, find, get, is_namespace
from .types import TensorType, Type, symbols


class Builder:
    """Adds nodes to one place of a graph: at its end, or before a node.

    Every operator is a method; Python keywords get a trailing underscore (`build.not_`, `build.if_`).  Operands are
    values or numbers (a number takes the element type of the first operand that is a value); attributes are keywords.
    One result comes back as a Value, several as a tuple.  `name=` / `names=` label the results.
    """

    def __init__(
        self,
        model: Model,
        graph: Graph,
        before: Node | None = None,
        *,
        location: Location | None = None,
        on_create: Callable[[Node], None] | None = None,
    ) -> None:
        self.model = model
        self.graph = graph
        self.before = before
        self.location = location or Location()
        self.on_create = on_create
        self._assumptions: dict[Assumption, None] | None = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        name = name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name
        if find(name) is None and is_namespace(name):
            return Namespace(self, name)  # type: ignore[return-value]  # its attributes are what can be called
        op = get(name)

        def create(*operands: Any, **keywords: Any) -> Any:
            return self.apply(op, *operands, **keywords)

        return create

    def apply(self, op: Operator | str, *operands: Any, **keywords: Any) -> Any:
        """Apply an operator to grouped operands (variadics as one tuple); see the class."""
        op = get(op) if isinstance(op, str) else op
        names = keywords.pop("names", None)
        name = keywords.pop("name", None) if "name" not in op.kinds else None
        graphs: dict[str, tuple[Graph, ...]] = {}
        for spec in op.regions:
            given = keywords.pop(spec.name, None)
            if given is not None:
                graphs[spec.name] = (given,) if isinstance(given, Graph) else tuple(given)
        flat = self._values(op, operands)
        node, single = self._create(op, flat, keywords, graphs, names or ([name] if name else None))
        return node.results[0] if single else node.results

    def create(
        self,
        op: Operator,
        operands: Sequence[Value | None],
        attributes: dict[str, Any],
        graphs: dict[str, tuple[Graph, ...]] | None = None,
        names: Sequence[str | None] | None = None,
    ) -> Node:
        """The general form: flat operands, a node back."""
        return self._create(op, operands, attributes, graphs or {}, names)[0]

    def _create(
        self,
        op: Operator,
        operands: Sequence[Value | None],
        attributes: dict[str, Any],
        graphs: dict[str, tuple[Graph, ...]],
        names: Sequence[str | None] | None,
    ) -> tuple[Node, bool]:
        checked = op.make_attributes(attributes)
        function = self.graph.function
        label = f"{op.name} {self.location.source[0]!r}" if self.location.source else op.name
        ctx = inference.InferContext(self.model, function, label)
        try:
            facts = inference.infer(ctx, op, [None if v is None else v.fact for v in operands], checked, graphs)
        except InferenceError as error:
            if not str(error).startswith(label):
                error.args = (f"{label}: {error}",)
            raise
        sink = self._assumptions if self._assumptions is not None else function.assumptions if function else None
        if sink is not None:
            known = [a for a in sink if a.sometimes] if ctx.assumptions else []
            sink.update(dict.fromkeys(a for a in ctx.assumptions if not any(map(a.same_relation, known))))
        single = isinstance(facts, Fact)
        node = Node(op, operands, checked, graphs, self.location)
        rows = (facts,) if isinstance(facts, Fact) else facts
        results = []
        for i, fact in enumerate(rows):
            value = Value(fact.type, names[i] if names and i < len(names) else None, node, i)
            value.set_fact(fact)
            results.append(value)
        node.results = tuple(results)
        self.graph._insert(node, self.before)
        if self.on_create is not None:
            self.on_create(node)
        return node, single

    def _values(self, op: Operator, operands: Sequence[Any]) -> list[Value | None]:
        flat = op.flatten(operands)
        like = next((v for v in flat if isinstance(v, Value) and isinstance(v.type, TensorType)), None)
        return [
            v if v is None or isinstance(v, Value) else self.constant(v, None if like is None else like.dtype)
            for v in flat
        ]

    def constant(self, value: Any, dtype: DType | None = None, *, name: str | None = None) -> Constant:
        """A constant from Data, an array, or (nested lists of) numbers; Python numbers default to f32, ints to i64.

        An array that someone can still write to is copied.
        """
        if isinstance(value, Data):
            data = value
        else:
            if dtype is None and not isinstance(value, np.ndarray | np.generic):
                plain = np.asarray(value)
                dtype = dtypes.f32 if plain.dtype == np.float64 else DType.from_numpy(plain.dtype)
            array = np.asarray(value)
            data = ArrayData(array.copy() if _is_writable(array) else array, dtype)
        return self.model.add_constant(name, data) if name is not None else self.model.inline_constant(data)

    def full(self, value: Any, dtype: DType, dims: Sequence[Size]) -> Value:
        """A tensor filled with one number: a rank-0 constant broadcast to `dims`."""
        scalar = self.constant(value, dtype)
        return scalar if not dims else self.broadcast_in_dim(scalar, dims=tuple(dims), broadcast_dimensions=())

    def region(self, inputs: Iterable[Type], body: Callable[..., Any], names: Sequence[str] = ()) -> Graph:
        """A sub-graph: `body(build, *inputs)` returns its output or a tuple of outputs."""
        graph = Graph()
        values = [graph.add_input(t, names[i] if i < len(names) else None) for i, t in enumerate(inputs)]
        inner = Builder(self.model, graph, location=self.location, on_create=self.on_create)
        owner = self.graph.function
        inner._assumptions = (
            self._assumptions if self._assumptions is not None else owner.assumptions if owner else None
        )
        outputs = body(inner, *values)
        graph.set_outputs(outputs if isinstance(outputs, tuple | list) else (outputs,))
        return graph

    def scalar_region(self, op: str, dtype: DType, count: int = 1) -> Graph:
        """A body (a, b) -> op(a, b) on rank-0 values, as custom reductions take."""
        return self.region([TensorType(dtype, ())] * 2 * count, lambda b, *v: b.apply(op, v[0], v[1]), ("a", "b"))

    def at(self, location: Location) -> Builder:
        """The same place with another location."""
        out = Builder(self.model, self.graph, self.before, location=location, on_create=self.on_create)
        out._assumptions = self._assumptions
        return out


def _is_writable(array: np.ndarray[Any, Any]) -> bool:
    """Whether the array or one that it is a view of can be written to."""
    base: object = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return True
        base = base.base
    return False


class DecomposeContext:
    """What a `decompose` rule may ask: `build` adds nodes, `refuse(why)` says that no decomposition exists."""

    def __init__(self, build: Builder) -> None:
        self.build = build

    def refuse(self, why: str) -> Any:
        raise InferenceError(f"cannot be decomposed: {why}")

    def shape(self, dims: Iterable[Size]) -> Value:
        """An i64 vector that holds `dims`."""
        fact = shape_fact(dims)
        if fact.data is not None:
            return self.build.constant(fact.data)
        value: Value = self.build.dimensions(dims=fact.ints)
        return value


def decompose(
    build: Builder, op: Operator, operands: Sequence[Value | None], keywords: dict[str, Any]
) -> tuple[Value, ...]:
    """Write the decomposition of an operator at `build`; the values of its results."""
    if op.decompose is None:
        raise InferenceError(f"{op.name} has no decomposition")
    out = op.decompose(DecomposeContext(build), *op.group(operands), **keywords)
    return tuple(out) if isinstance(out, tuple | list) else (out,)


def decomposed(
    op: Operator,
    operands: Sequence[Fact | None],
    keywords: dict[str, Any],
    *,
    assumptions: dict[Assumption, None] | None = None,
) -> Model:
    """The decomposition as the `main` function of a model of its own, typed for operands with these facts.

    Inline constants stay constants; other operands become inputs (absent ones none) that keep their known integers.
    """
    model = Model(op.name)
    main = model.add_function(Function("main"))
    values: list[Value | None] = []
    for i, fact in enumerate(operands):
        if fact is None:
            values.append(None)
        elif fact.data is not None and fact.data.is_inline:
            main.add_input(fact.type, f"x{i}")
            values.append(model.inline_constant(fact.data))
        else:
            value = main.add_input(fact.type, f"x{i}")
            value.ints = fact.ints
            values.append(value)
    build = Builder(model, main.body)
    build._assumptions = assumptions
    main.body.set_outputs(decompose(build, op, values, keywords))
    main.dims = sorted({s for v in main.inputs for s in symbols(v.type)})
    return model


def function(
    model: Model,
    name: str,
    inputs: Sequence[tuple[str, Type]],
    body: Callable[..., Any],
    *,
    dims: Sequence[str] | None = None,
) -> Function:
    """A public device function: `body(build, *inputs)` returns a value, a tuple, or a dict of named outputs."""
    used: dict[str, None] = {}
    for _, type_ in inputs:
        used.update(dict.fromkeys(sorted(symbols(type_))))
    out = model.add_function(Function(name, dims=tuple(used) if dims is None else dims))
    values = [out.add_input(type_, label) for label, type_ in inputs]
    returned = body(Builder(model, out.body), *values)
    if isinstance(returned, dict):
        out.output_names = list(returned)
        returned = tuple(returned.values())
    returned = returned if isinstance(returned, tuple | list) else (returned,)
    out.body.set_outputs(returned)
    if not out.output_names:
        out.output_names = [v.name or f"output{i}" for i, v in enumerate(returned)]
    return out
