"""Control flow, calls, and what binds run-time integers to types: bind_dim, freeze, trap, the late `onnx`."""

from .. import dims as sizes
from .. import dtypes, late
from ..attributes import Symbol
from ..clone import copy_graph
from ..data import INLINE_LIMIT
from ..errors import InferenceError, IrcError, did_you_mean
from ..facts import Fact
from ..graph import Graph
from ..operators import (
    BOOL,
    EFFECTS,
    INTEGER,
    LATE,
    ORDERED,
    PURE,
    AnyValues,
    Operand,
    Region,
    Regions,
    operator,
)
from ..types import SequenceType, TensorType, substitute
from . import bucketing
from .sequence import common


def unwrapped(facts):
    """One fact by itself, several as a tuple: operators with one result give a Value, not a tuple of one."""
    facts = tuple(facts)
    return facts[0] if len(facts) == 1 else facts


def listed(types):
    return ", ".join(map(str, types)) or "nothing"


def agree(ctx, wanted, got, message):
    """The types are equal, or `got` leaves the rank open; unproved equality of dims is assumed."""
    if not isinstance(wanted, TensorType) or not isinstance(got, TensorType):
        ctx.need(wanted == got, message)
        return
    if got.dims is None and wanted.dims is not None:
        ctx.need(wanted.dtype is got.dtype, message)
        return
    ranks = tuple(None if t.dims is None else len(t.dims) for t in (wanted, got))
    ctx.need(wanted.dtype is got.dtype and ranks[0] == ranks[1], message)
    for a, b in zip(wanted.dims or (), got.dims or (), strict=True):
        ctx.need(sizes.equal(a, b), message)
        ctx.equal(a, b, message)


def joined(ctx, branches):
    """Facts of the results of branches, whose types must agree for certain."""
    (first, graph), *others = branches.items()
    facts = [v.fact for v in graph.outputs]
    for name, other in others:
        got = [v.fact for v in other.outputs]
        ctx.need(len(got) == len(facts), f"{name} yields {len(got)} values, {first} {len(facts)}")
        facts = [_join(ctx, a, b, f"result {i}", first, name) for i, (a, b) in enumerate(zip(facts, got, strict=True))]
    for name, graph in branches.items():
        ctx.need(not graph.inputs, f"{name} takes no inputs, it has {len(graph.inputs)}")
    return unwrapped(Fact(f.type, f.ints) for f in facts)


def _join(ctx, a, b, what, first, name):
    if isinstance(a.type, SequenceType) and isinstance(b.type, SequenceType):
        return Fact(SequenceType(common(ctx, a.type.element, b.type.element)))
    same = a.type == b.type
    if not same and a.is_ranked and b.is_ranked and a.dtype is b.dtype and a.rank == b.rank:
        same = all(sizes.equal(x, y) for x, y in zip(a.dims, b.dims, strict=True))
    if not same:
        ctx.fail(
            f"{what} has type {a.type} in {first} and {b.type} in {name}; they must be equal, or the node typed late"
        )
    return Fact(a.type, a.ints if a.ints == b.ints else None)


def called(ctx, name):
    """The function of the model that is called."""
    functions = ctx.model.functions if ctx.model is not None else {}
    if name not in functions:
        ctx.fail(f"the model has no function @{name}{did_you_mean(name, functions) if functions else ''}")
    return functions[name]


def solved(ctx, function, xs):
    """The callee's dims in terms of the caller's, by unification of formal and actual types."""
    bindings = {}
    pending = []
    for formal, x in zip(function.inputs, xs, strict=True):
        message = f"@{function.name} takes {formal.name or 'its operand'} of type {formal.type}, got {x.type}"
        pending += [(p, v, message) for p, v in _dim_pairs(ctx, formal.type, x.type, message)]
    solution = sizes.solve_all([(pattern, value) for pattern, value, _ in pending], bindings)
    if solution.contradiction is not None:
        pattern, value, message = pending[solution.contradiction]
        ctx.fail(f"{message}: {pattern} cannot be {value}")
    for dim in function.dims:
        ctx.need(dim in bindings, f"the dim {dim} of @{function.name} does not follow from the types of its operands")
    for pattern, value, message in (pending[i] for i in solution.undecided):
        ctx.equal(sizes.substitute(pattern, bindings), value, message)
    return bindings


def _dim_pairs(ctx, formal, actual, message):
    if not isinstance(formal, TensorType):
        ctx.need(type(formal) is type(actual), message)
        return _dim_pairs(ctx, formal.element, actual.element, message)
    ctx.need(isinstance(actual, TensorType) and formal.dtype is actual.dtype, message)
    if formal.dims is None:
        return []
    ctx.need(actual.dims is not None and len(formal.dims) == len(actual.dims), message)
    return list(zip(formal.dims, actual.dims, strict=True))


def instantiated(fact, bindings):
    """The fact of a callee's output, seen by the caller."""
    ints = fact.ints
    if ints is not None:
        ints = tuple(i if i is None else sizes.substitute(i, bindings) for i in ints)
    return Fact(substitute(fact.type, bindings), ints)


@operator("if", family="control", traits=PURE)
class If:
    """The outputs of graph `then` if the scalar predicate is true, of `else` otherwise; only one runs.

    Graphs take no inputs.

    Output types of the branches must agree; where a dim differs the result's type has a dim only if both agree, else
    the node must be late.  Purity is that of its graphs: see `passes`' effect query, which looks inside.
    """

    predicate: Operand[BOOL]
    then: Region
    else_: Region

    bucket = bucketing.keep

    def infer(ctx, predicate, *, then, else_):
        ctx.need(predicate.rank == 0, f"the predicate must be a scalar, got {predicate.type}")
        return joined(ctx, {"then": then, "else": else_})

    def reference(ctx, predicate, *, then, else_):
        return (yield ctx.steps(then if predicate else else_))

    def vjp(ctx, predicate, *, then, else_):
        """The branch that ran is computed again, then backwards."""
        yes, no = ctx.pullbacks((then, else_))
        ctx.to_captures(ctx.build.if_(predicate, then=yes, else_=no))


def _either(build, index, number, branch, rest):
    return build.if_(build.compare(index, number, direction="eq"), then=branch, else_=rest)


@operator("case", family="control", traits=PURE)
class Case:
    """The outputs of branches[index]; an index outside [0, n) runs the last branch.  Graphs take no inputs."""

    index: Operand[INTEGER]
    branches: Regions

    bucket = bucketing.keep

    def infer(ctx, index, *, branches):
        ctx.need(index.rank == 0, f"the index must be a scalar, got {index.type}")
        ctx.need(len(branches) > 0, "case needs at least one branch")
        return joined(ctx, {f"branch {i}": branch for i, branch in enumerate(branches)})

    def reference(ctx, index, *, branches):
        inside = 0 <= int(index) < len(branches)
        return (yield ctx.steps(branches[int(index) if inside else -1]))

    def decompose(ctx, index, *, branches):
        """Nested ifs, the last branch innermost."""
        if len(branches) == 1:
            twin = Graph()
            copy_graph(branches[0], twin, {})
            return ctx.build.if_(ctx.build.constant(True), then=branches[0], else_=twin)
        rest = branches[-1]
        reached = min(len(branches) - 1, int(index.dtype.max_value()) + 1)
        for i in reversed(range(1, reached)):
            rest = ctx.build.region([], lambda b, i=i, rest=rest: _either(b, index, i, branches[i], rest))
        return _either(ctx.build, index, 0, branches[0], rest)

    def vjp(ctx, index, *, branches):
        """The branch that ran is computed again, then backwards."""
        ctx.to_captures(ctx.build.case(index, branches=ctx.pullbacks(branches)))


def _after_rounds(init, kept, state):
    """The fact of a state after any number of rounds."""
    if isinstance(state.type, TensorType) and state.type.dims is None:
        return Fact(state.type)
    return Fact(init.type, init.ints if kept else None)


@operator("while", family="control", traits=PURE)
class While:
    """Repeats body while cond holds.  cond(state..) -> bool scalar; body(state..) -> state.. of the same types.

    A state whose shape changes has no rank in cond and body, whatever its initial value has; the host repeats these.
    """

    inits: AnyValues
    cond: Region
    body: Region

    bucket = bucketing.keep

    def infer(ctx, inits, *, cond, body):
        returned = [v.type for v in cond.outputs]
        if returned != [TensorType(dtypes.bool_, ())]:
            ctx.fail(f"cond must yield bool[], it yields {listed(returned)}")
        for what, have in (("cond takes", cond.inputs), ("body takes", body.inputs), ("body yields", body.outputs)):
            ctx.need(len(have) == len(inits), f"{what} {len(have)} values, the loop has {len(inits)}")
            for i, (value, init) in enumerate(zip(have, inits, strict=True)):
                name = body.inputs[i].name if len(body.inputs) > i else None
                state = f"state {i}" + (f" ({name})" if name else "")
                agree(
                    ctx, init.type, value.type, f"{state}: {what} {value.type}, its initial value has type {init.type}"
                )
        kept = (new is old for new, old in zip(body.outputs, body.inputs, strict=True))
        rows = zip(inits, kept, body.inputs, strict=True)
        return unwrapped(_after_rounds(x, same, v) for x, same, v in rows)

    def reference(ctx, inits, *, cond, body):
        state = tuple(inits)
        while bool((yield ctx.steps(cond, *state))[0]):
            state = yield ctx.steps(body, *state)
        return state


@operator("call", family="control", traits=PURE)
class Call:
    """The outputs of a function of the model; its dims are solved by unification with the arguments' types."""

    xs: AnyValues
    callee: Symbol

    def infer(ctx, xs, *, callee):
        function = called(ctx, callee)
        ctx.need(len(function.inputs) == len(xs), f"@{callee} takes {len(function.inputs)} values, got {len(xs)}")
        bindings = solved(ctx, function, xs)
        for assumption in function.assumptions:
            if not bindings.keys() >= set(assumption.symbols()):
                continue  # it is about a dim that the callee binds itself, and is checked there
            instance = assumption.substitute(bindings)
            verdict = instance.holds()
            ctx.need(verdict, f"@{callee} needs {assumption} (for {assumption.node}), which is {instance} here")
            if verdict is None:
                ctx.assume(instance.relation, instance.lhs, instance.rhs)
        return unwrapped(instantiated(v.fact, bindings) for v in function.outputs)

    def reference(ctx, xs, *, callee):
        return (yield ctx.call(callee, *xs))


@operator("bind_dim", family="control", traits=EFFECTS)
class BindDim:
    """Names the value of an integer scalar as a dim; types and attributes it dominates may mention that dim.

    No results.

    The value must be >= 0 at run time.
    """

    x: Operand[INTEGER]
    dim: str

    def infer(ctx, x, *, dim):
        ctx.need(x.rank == 0, f"x must be a scalar, got {x.type}")
        ctx.need(dim.isidentifier(), f"dim must be a name, got {dim!r}")
        if ctx.function is not None and dim in ctx.function.dims:
            ctx.fail(f"{dim} is a dim of @{ctx.function.name} already; bind another name")
        return ()

    def reference(ctx, x, *, dim):
        if x < 0:
            ctx.fail(f"the size {dim} must not be negative, got {int(x)}")
        ctx.bind(dim, int(x))
        return ()


@operator("freeze", family="control", traits=EFFECTS | LATE)
class Freeze:
    """x itself, a tensor of at most 64 numbers or bools that the host reads, so that late nodes can be typed."""

    x: Operand[ORDERED]

    def infer(ctx, x):
        if x.is_ranked:
            ctx.at_most(x.size, INLINE_LIMIT, "the number of elements that the host reads")
        return x

    def reference(ctx, x):
        return x


@operator("trap", family="control", traits=EFFECTS)
class Trap:
    """Raises the diagnostic when reached.  Its results, zeros of the given types, are never seen."""

    message: str
    results: tuple[TensorType, ...]

    bucket = bucketing.keep

    def infer(ctx, *, message, results):
        return unwrapped(results)

    def reference(ctx, *, message, results):
        raise IrcError(message)


@operator("onnx", family="control", traits=EFFECTS | LATE)
class Onnx:
    """An ONNX node that cannot be typed yet (an unknown rank, or integer operands read at run time).

    `attributes` is the node's attributes as (name, literal) pairs; `results` its result types, mostly unranked.
    Legalization at run time replaces it by what the importer would have built.
    """

    xs: AnyValues
    domain: str
    type: str
    version: int
    attributes: object
    results: tuple[TensorType, ...]
    graphs: Regions

    def infer(ctx, xs, *, domain, type, version, attributes, results, graphs):
        return unwrapped(results)

    def reference(ctx, xs, *, domain, type, version, attributes, results, graphs):
        facts = [late.fact_of_value(value, x) for value, x in zip(ctx.node.operands, xs, strict=True)]
        try:
            model = late.materialize(domain, type, version, attributes, graphs, facts, ctx.model)
        except InferenceError as error:
            ctx.fail(str(error))
        outer = [ctx.value(v) for v in late.captures(graphs)]
        return ctx.evaluate(model, *(x for x in xs if x is not None), *outer)


@operator("custom_call", family="control", traits=EFFECTS)
class CustomCall:
    """A call of code that irc does not know, by name; result types are given.

    Targets refuse names they do not have.
    """

    xs: AnyValues
    target: str
    results: tuple[TensorType, ...]

    def infer(ctx, xs, *, target, results):
        return unwrapped(results)

    def reference(ctx, xs, *, target, results):
        ctx.fail(f"the reference has no code called {target!r}; run the model on a target that has")
