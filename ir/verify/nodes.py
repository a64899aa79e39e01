"""Rules on single nodes: operands, attributes, sub-graphs and result types agree with the operator's definition."""

from __future__ import annotations

from collections.abc import Iterator

from .. import dims as sizes
from ..attributes import bits
from ..data import INLINE_LIMIT
from ..dims import Dim, Size
from ..errors import InferenceError
from ..facts import Fact
from ..infer import check_operands
from ..model import Constant, Function, Graph, Model, Node, Value
from ..types import OptionalType, SequenceType, TensorType, Type
from .table import Context, describe, rule


@rule("V007", "node", phase=2)
def inferable(ctx: Context, node: Node) -> Iterator[str]:
    """The operator's type inference accepts the operands, attributes and sub-graphs (for calls: the arguments fit the
    callee; for control flow: the inputs and outputs of the graphs fit)."""
    found = ctx.infer(node)
    if isinstance(found, InferenceError):
        operands = ", ".join("absent" if v is None else f"{describe(v)}: {v.type}" for v in node.operands)
        yield f"{found}; operands are ({operands})"


@rule("V008", "node", phase=2)
def inferred_types(ctx: Context, node: Node) -> Iterator[str]:
    """The results have the number and the types that inference gives, and no known integer contradicts it.  Two
    spellings of a dim agree if they are equal for all sizes or an assumption of the function says so."""
    found = ctx.infer(node)
    if isinstance(found, InferenceError):
        return
    facts, function = found[0], ctx.graphs[ctx.nodes[node]]
    if len(facts) != len(node.results):
        yield f"it has {len(node.results)} results; {node.op.name} gives {len(facts)} here"
        return
    for i, (value, fact) in enumerate(zip(node.results, facts, strict=True)):
        if not same_type(value.type, fact.type, function):
            yield f"result {i} has type {value.type}; inference gives {fact.type}"
        elif _contradicts(value, fact):
            yield f"result {i} is said to hold {_listed(value.ints)}; inference gives {_listed(fact.ints)}"


def same_type(a: Type, b: Type, function: Function | None) -> bool:
    """Whether two types are equal for all sizes, or by an assumption of the function."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        if a.dtype is not b.dtype or (a.dims is None) is not (b.dims is None):
            return False
        if a.dims is None or b.dims is None:
            return True
        return len(a.dims) == len(b.dims) and all(
            _same_size(x, y, function) for x, y in zip(a.dims, b.dims, strict=True)
        )
    if isinstance(a, SequenceType | OptionalType) and type(a) is type(b):
        return same_type(a.element, b.element, function)
    return False


def _same_size(a: Size, b: Size, function: Function | None) -> bool:
    verdict = sizes.equal(a, b)
    if verdict is not None or function is None:
        return verdict is True
    given = [x for x in function.assumptions if x.relation == "=="]
    return any(
        {a, b} == {x.lhs, x.rhs} or sizes.equal(a - b, x.lhs - x.rhs) or sizes.equal(b - a, x.lhs - x.rhs)
        for x in given
    )


def _contradicts(value: Value, fact: Fact) -> bool:
    if value.ints is None or fact.ints is None:
        return False
    if len(value.ints) != len(fact.ints):
        return True
    pairs = zip(value.ints, fact.ints, strict=True)
    return any(a is not None and b is not None and sizes.equal(a, b) is False for a, b in pairs)


def _listed(ints: tuple[Size | None, ...] | None) -> str:
    return "[" + ", ".join("?" if i is None else str(i) for i in ints or ()) + "]"


@rule("V009", "node", phase=0)
def attributes(ctx: Context, node: Node) -> Iterator[str]:
    """Attributes are an instance of the operator's own class and hold values of the declared kinds, in
    canonical form."""
    if type(node.attributes) is not node.op.attributes:
        yield f"its attributes are of the class {type(node.attributes).__name__}, not of {node.op.name}"
        return
    for name, kind in node.op.kinds.items():
        value = getattr(node.attributes, name)
        try:
            canonical = kind.coerce(value, f"attribute {name}")
        except InferenceError as error:
            yield str(error)
            continue
        if type(canonical) is not type(value) or bits(canonical) != bits(value):
            yield f"attribute {name} holds {value!r}; its canonical form is {canonical!r}"


@rule("V010", "node")
def operands(ctx: Context, node: Node) -> Iterator[str]:
    """As many operands as the operator declares; required ones are present and of an accepted element type."""
    try:
        check_operands(node.op, node.op.group([None if v is None else v.fact for v in node.operands]))
    except InferenceError as error:
        yield str(error)
        return
    # Variadic groups keep None as an element, plain trailing ones must be dropped, so that equal nodes look equal.
    if not node.op.groups and node.operands and node.operands[-1] is None:
        yield "its last operand is absent; trailing absent operands are left out"


@rule("V011", "node")
def sub_graphs(ctx: Context, node: Node) -> Iterator[str]:
    """Sub-graphs are present as the operator declares them: required ones once, only declared names."""
    declared = {r.name: r for r in node.op.regions}
    for name, group in node.graphs.items():
        if name not in declared:
            yield f"{node.op.name} has no graph called {name!r}"
        elif len(group) != 1 and not declared[name].variadic:
            yield f"{node.op.name} takes one graph {name}, got {len(group)}"
    for name, spec in declared.items():
        if not node.graphs.get(name) and not spec.optional and not spec.variadic:
            yield f"{node.op.name} needs the graph {name}"


@rule("V012", "model", phase=0)
def well_formed_types(ctx: Context, model: Model) -> Iterator[str]:
    """Types are well formed: sizes are integers >= 0 or symbolic; known integers belong to an integer or bool tensor of
    at most 64 elements and are as many as it has."""
    for value in ctx.values():
        if (fault := _type_fault(value.type)) is not None:
            yield f"{describe(value)}{_place_of(ctx, value)}: {fault}"
        elif (fault := _ints_fault(value)) is not None:
            yield f"{describe(value)}{_place_of(ctx, value)}, of type {value.type}: {fault}"


def _place_of(ctx: Context, value: Value) -> str:
    return (
        ""
        if isinstance(value, Constant) or not isinstance(value.owner, Node | Graph)
        else f" in {ctx.place(value.owner)}"
    )


def _type_fault(type_: object) -> str | None:
    while isinstance(type_, SequenceType | OptionalType):
        type_ = type_.element
    if not isinstance(type_, TensorType):
        return f"{type_!r} is no type"
    for size in type_.dims or ():
        if not isinstance(size, int | Dim) or isinstance(size, bool):
            return f"{size!r} in its type is neither an integer nor a symbolic size"
        if isinstance(size, int) and size < 0:
            return f"the size {size} in its type is negative"
    return None


def _ints_fault(value: Value) -> str | None:
    if value.ints is None:
        return None
    type_ = value.type
    if not isinstance(type_, TensorType) or not (type_.dtype.is_integer or type_.dtype.is_bool):
        return "only an integer or bool tensor can have known integers"
    if len(value.ints) > INLINE_LIMIT:
        return f"{len(value.ints)} known integers; at most {INLINE_LIMIT} are kept"
    if type_.dims is not None and sizes.equal(type_.size, len(value.ints)) is False:
        return f"{len(value.ints)} known integers for {type_.size} elements"
    return None


@rule("V013", "node", phase=2)
def recorded_assumptions(ctx: Context, node: Node) -> Iterator[str]:
    """A relation between dims that a node's typing needs and that does not hold for all sizes is an assumption of the
    function, so that it is checked for every shape."""
    found = ctx.infer(node)
    if isinstance(found, InferenceError):
        return
    function = ctx.graphs[ctx.nodes[node]]
    recorded = set() if function is None else {(a.relation, a.lhs, a.rhs) for a in function.assumptions}
    recorded |= {(relation, rhs, lhs) for relation, lhs, rhs in recorded if relation in ("==", "bcast")}
    for needed in found[1].assumptions:
        if (needed.relation, needed.lhs, needed.rhs) not in recorded:
            yield f"it needs {needed}, which {f'@{function.name}' if function else 'init'} does not assume"
