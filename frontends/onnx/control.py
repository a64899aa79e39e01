"""ONNX control flow: If becomes `if`; Loop and Scan become `while` where their types are known, or are unrolled."""

from __future__ import annotations

import numpy as np

from ...ir import dims as sizes
from ...ir.dtypes import i64
from ...ir.errors import InferenceError
from ...ir.facts import NeedsInts
from ...ir.types import NeedsRank, OptionalType, SequenceType, TensorType, symbols
from .indexing import counted
from .registry import onnx_op

UNROLLED = 64
"""Iterations up to which a loop is unrolled when it cannot be a `while` (carried values that change their shape)."""
_FOREVER = 2**31 - 1


@onnx_op("If")
def if_(ctx, condition, *, then_branch, else_branch):
    """A condition that is known takes its branch here, so the other one need not even have the same rank."""
    ctx.read.append(condition)
    known = ctx.constant(condition)
    if known is not None:
        return ctx.inline(then_branch if bool(known.numpy().reshape(-1)[0]) else else_branch)
    if not len(then_branch.output) == len(else_branch.output) == len(ctx.node.output):
        ctx.fail(
            f"has {len(ctx.node.output)} outputs, but its branches yield {len(then_branch.output)} and "
            f"{len(else_branch.output)}"
        )
    then, else_ = ctx.branches(then_branch, else_branch)
    for a, b in zip(then.outputs, else_.outputs, strict=True):
        if isinstance(a.type, TensorType) and isinstance(b.type, TensorType) and a.dtype is not b.dtype:
            ctx.fail(f"its branches yield {a.type} and {b.type}; they must have one element type")
    if not all(_joins(a.type, b.type) for a, b in zip(then.outputs, else_.outputs, strict=True)):
        ctx.unknown.append(condition)
        raise NeedsInts("the branches differ in type, so the condition must be known")
    out = ctx.build.if_(ctx.scalar(condition), then=then, else_=else_)
    return out if isinstance(out, tuple) else (out,)


def _joins(a, b):
    """Equal types, or sequences whose elements have one element type."""
    if a == b:
        return True
    if not isinstance(a, SequenceType) or not isinstance(b, SequenceType):
        return False
    x, y = a.element, b.element
    return isinstance(x, TensorType) and isinstance(y, TensorType) and x.dtype is y.dtype


@onnx_op("Loop")
def loop(ctx, trip_count, condition, *carried, body):
    """body(i, cond, carried..) -> (cond, carried.., scanned..); scanned values are stacked along a new first axis."""
    given = None if condition is None else ctx.constant(condition)
    first = ctx.build.constant(np.array(True)) if condition is None else ctx.scalar(condition)
    count = None if trip_count is None else _count(ctx, trip_count)
    scans = len(body.output) - 1 - len(carried)
    if scans < 0:
        ctx.fail(
            f"its body yields {len(body.output)} values, fewer than the condition and {len(carried)} carried values"
        )
    always = condition is None or (given is not None and bool(given.numpy().reshape(-1)[0]))
    steps = count if isinstance(count, int) and always else None
    limit = None if trip_count is None or (isinstance(count, int) and count >= _FOREVER) else ctx.scalar(trip_count)

    def step(inner, i, state):
        yielded = inner(body, (i, state[0], *state[1:]))
        go_on = yielded[0] if yielded[0].rank == 0 else inner.build.reshape(yielded[0], dims=())
        return (go_on, *yielded[1 : 1 + len(carried)]), yielded[1 + len(carried) :]

    return _repeated(ctx, step, (first, *carried), scans, count, limit, steps, has_condition=True)


@onnx_op("Scan", since=9)
def scan(
    ctx, *operands, body, num_scan_inputs, scan_input_axes=(), scan_input_directions=(), scan_output_axes=(),
    scan_output_directions=(),
):  # fmt: skip
    """body(state.., slices..) -> (state.., scanned..), once for each slice of the scanned operands."""
    split = len(operands) - num_scan_inputs
    if split < 0 or not num_scan_inputs:
        ctx.fail(f"num_scan_inputs is {num_scan_inputs}, but there are {len(operands)} inputs")
    states, scanned = operands[:split], operands[split:]
    axes = [ctx.axis(a, x) for a, x in zip(scan_input_axes or (0,) * num_scan_inputs, scanned, strict=True)]
    backwards = scan_input_directions or (0,) * num_scan_inputs
    count = scanned[0].dims[axes[0]]
    scans = len(body.output) - split
    limit = ctx.scalar(ctx.shape((count,)))

    def step(inner, i, state):
        reverse = None
        slices = []
        for x, axis, back in zip(scanned, axes, backwards, strict=True):
            if back and reverse is None:
                reverse = inner.build.subtract(inner.build.subtract(limit, 1), i)
            slices.append(inner.build.take(x, reverse if back else i, axis=axis))
        yielded = inner(body, (*state, *slices))
        return yielded[:split], yielded[split:]

    steps = count if isinstance(count, int) else None
    out = _repeated(
        ctx, step, states, scans, count, limit, steps, has_condition=False,
        backwards=scan_output_directions or (0,) * scans,
    )  # fmt: skip
    stacked = [
        _moved(ctx, v, ctx.axis(axis, v)) for v, axis in zip(out[split:], scan_output_axes or (0,) * scans, strict=True)
    ]
    return (*out[:split], *stacked)


@onnx_op("Scan", since=8, until=8)
def scan_8(ctx, lengths=None, *operands, body, num_scan_inputs, directions=()):
    """Before operator set 9 every operand had a batch axis in front, and the body ran for each entry by itself."""
    if lengths is not None:
        ctx.refuse("lengths of single sequences (sequence_lens) are not supported")
    batch = operands[0].dims[0] if operands else 0
    if not isinstance(batch, int) or not batch:
        raise NeedsInts("the batch size is known only at run time")
    b = ctx.build
    rows = []
    for i in range(batch):
        entry = [b.take(x, b.constant(np.array(i, np.int64)), axis=0) for x in operands]
        rows.append(scan(ctx, *entry, body=body, num_scan_inputs=num_scan_inputs, scan_input_directions=directions))
    columns = zip(*rows, strict=True)
    return tuple(b.concatenate(tuple(b.reshape(v, dims=(1, *v.dims)) for v in column), axis=0) for column in columns)


def _moved(ctx, x, axis):
    """x with its first axis at `axis`."""
    if not axis:
        return x
    rest = list(range(1, x.rank))
    return ctx.build.transpose(x, permutation=(*rest[:axis], 0, *rest[axis:]))


def _count(ctx, trip_count):
    try:
        return ctx.size(trip_count, "the trip count")
    except NeedsInts:
        ctx.unknown.clear()
        return None


class _Inner:
    """Writes bodies into one graph: `inner(body, arguments)` gives what the body yields."""

    def __init__(self, ctx, build):
        self.ctx = ctx
        self.build = build

    def __call__(self, body, arguments):
        if len(body.input) != len(arguments):
            self.ctx.fail(f"its body takes {len(body.input)} inputs, {len(arguments)} are given")
        return self.ctx.importer.inline_graph(self.ctx.frame, self.build, body, arguments)


def _repeated(ctx, step, state, scans, count, limit, steps, *, has_condition, backwards=None):
    """Final state (the condition left out) and stacked values of `step`, repeated while condition and limit hold."""
    backwards = backwards or (0,) * scans
    step = _numbered(ctx, step)
    mark = ctx.importer.mark(ctx.build.graph)
    try:
        return _while(ctx, step, state, scans, count, limit, has_condition, backwards)
    except (NeedsInts, NeedsRank, InferenceError) as error:
        ctx.importer.undo(mark)
        few = steps is not None and steps <= UNROLLED
        if not few and not isinstance(error, NeedsInts | NeedsRank):
            raise
        ctx.unknown.clear()
    if few:
        return _unrolled(ctx, step, state, scans, steps, has_condition, backwards)
    return _on_host(ctx, step, state, scans, limit, has_condition, backwards)


def _numbered(ctx, step):
    """The step, whose random operators know the iteration."""

    def numbered(inner, i, state):
        ctx.importer.rounds.append(i)
        try:
            return step(inner, i, state)
        finally:
            ctx.importer.rounds.pop()

    return numbered


def _while(ctx, step, state, scans, count, limit, has_condition, backwards):
    importer = ctx.importer
    body, test = importer.draft(), importer.draft()
    types = [TensorType(i64, ()), *(v.type for v in state)]
    inner = _Inner(ctx, importer.builder(body, ctx.build.location))
    arguments = [body.add_input(t) for t in types]
    following, scanned = step(inner, arguments[0], tuple(arguments[1:]))
    wrapped = [
        isinstance(v.type, OptionalType) and v.type.element == f.type for v, f in zip(state, following, strict=True)
    ]
    following = tuple(inner.build.Optional(f) if w else f for f, w in zip(following, wrapped, strict=True))
    for i, (before, after) in enumerate(zip(state, following, strict=True)):
        if before.type != after.type:
            raise NeedsInts(
                f"the carried value {i - has_condition} changes its type from {before.type} to {after.type}"
            )
    inside = _bound_inside(body)
    if odd := next((v for v in scanned if inside & symbols(v.type)), None):
        raise NeedsInts(f"a scanned result of type {odd.type} has a size that the body computes")
    if scans and count is None:
        if limit is None:
            raise NeedsInts("the number of iterations, on which the scanned results' dims depend, has no bound")
        count = counted(ctx, ctx.build.maximum(limit, 0))
    stops_early = bool(scans) and has_condition and not _goes_on(ctx, state[0], following[0], arguments[1])
    rows = 1 if count is None else sizes.maximum(count, 1)  # a block of one row must fit even if it is never written
    buffers = [ctx.build.full(_zero(v.dtype), v.dtype, (rows, *v.dims)) for v in scanned]
    inputs = [body.add_input(b.type) for b in buffers]
    written = [
        _written(inner.build, b, v, arguments[0], limit, back)
        for b, v, back in zip(inputs, scanned, backwards, strict=True)
    ]
    body.set_outputs([inner.build.add(arguments[0], 1), *following, *written])
    _set_test(ctx, body, test, limit, has_condition)
    start = ctx.build.constant(np.array(0, np.int64))
    out = ctx.build.while_((start, *state, *buffers), cond=test, body=body)
    if stops_early:
        count = counted(ctx, out[0])
    ended = tuple(ctx.build.OptionalGetElement(v) if w else v for v, w in zip(out[1:], wrapped, strict=False))
    ended = ended[has_condition:]
    return (*ended, *(_rows(ctx, v, count) for v in out[1 + len(state) :]))


def _on_host(ctx, step, state, scans, limit, has_condition, backwards):
    """A `while` that the host repeats: states that change their shape have no rank, scanned values make sequences."""
    importer, types = ctx.importer, [v.type for v in state]
    while True:
        mark = importer.mark(ctx.build.graph)
        body, test = importer.draft(), importer.draft()
        inner = _Inner(ctx, importer.builder(body, ctx.build.location))
        arguments = [body.add_input(t) for t in (TensorType(i64, ()), *types)]
        following, scanned = step(inner, arguments[0], tuple(arguments[1:]))
        loose = [_loosened(a, v.type) for a, v in zip(types, following, strict=True)]
        if loose == types:
            break
        importer.undo(mark)
        types = loose
    inside = _bound_inside(body)
    elements = [TensorType(v.dtype, None) if inside & symbols(v.type) else v.type for v in scanned]
    sequences = [ctx.build.SequenceEmpty(element=e) for e in elements]
    inputs = [body.add_input(s.type) for s in sequences]
    first = inner.build.constant(np.array(0, np.int64))
    longer = [
        inner.build.SequenceInsert(s, v, first if back else None)
        for s, v, back in zip(inputs, scanned, backwards, strict=True)
    ]
    body.set_outputs([inner.build.add(arguments[0], 1), *following, *longer])
    _set_test(ctx, body, test, limit, has_condition)
    start = ctx.build.constant(np.array(0, np.int64))
    out = ctx.build.while_((start, *state, *sequences), cond=test, body=body)
    stacked = [ctx.build.ConcatFromSequence(v, axis=0, new_axis=True) for v in out[1 + len(state) :]]
    return (*out[1 + has_condition : 1 + len(state)], *stacked)


def _loosened(before, after):
    """The type of a state that goes from one type to another: without rank if only the shape changes."""
    if before == after:
        return before
    if not isinstance(before, TensorType) or not isinstance(after, TensorType) or before.dtype is not after.dtype:
        raise NeedsInts(f"a carried value changes its type from {before} to {after}")
    return TensorType(before.dtype, None)


def _set_test(ctx, body, test, limit, has_condition):
    """The graph that says whether another iteration follows."""
    tests = ctx.importer.builder(test, ctx.build.location)
    values = [test.add_input(v.type) for v in body.inputs]
    checks = [values[1]] if has_condition else []
    if limit is not None:
        checks.append(tests.compare(values[0], limit, direction="lt"))
    test.set_outputs([checks[0] if len(checks) == 1 else tests.and_(*checks)])


def _bound_inside(body):
    """Symbols that nodes of the body bind: they mean nothing outside."""
    return {n.keywords["dim"] for n in body.walk() if n.op.name == "bind_dim"}


def _rows(ctx, x, count):
    """The first `count` rows of a buffer."""
    if sizes.equal(x.dims[0], count) is True:
        return x
    return ctx.build.slice(x, starts=(0,) * x.rank, limits=(count, *x.dims[1:]), strides=(1,) * x.rank)


def _zero(dtype):
    return False if dtype.is_bool else 0


def _goes_on(ctx, first, following, argument):
    """Whether the condition is True before and after every iteration, so that only the trip count ends the loop."""

    def true(value):
        data = ctx.constant(value)
        return data is not None and bool(data.numpy().reshape(-1)[0])

    return true(first) and (following is argument or true(following))


def _written(build, buffer, value, i, limit, back):
    at = build.subtract(build.subtract(limit, 1), i) if back else i
    zero = build.constant(np.array(0, np.int64))
    row = build.reshape(value, dims=(1, *value.dims))
    return build.dynamic_update_slice(buffer, row, (at, *[zero] * value.rank))


def _unrolled(ctx, step, state, scans, steps, has_condition, backwards):
    inner = _Inner(ctx, ctx.build)
    rows = []
    for i in range(steps):
        state, scanned = step(inner, ctx.build.constant(np.array(i, np.int64)), tuple(state))
        rows.append(scanned)
        if has_condition:
            known = ctx.constant(state[0])
            if known is None:
                raise NeedsInts("a carried value changes its type and the condition is known only at run time")
            if not bool(known.numpy().reshape(-1)[0]):
                break
    if scans and not rows:
        raise NeedsInts("a loop that never runs does not tell the types of its scanned results")
    stacked = []
    for k in range(scans):
        column = [r[k] for r in rows][:: -1 if backwards[k] else 1]
        parts = tuple(ctx.build.reshape(v, dims=(1, *v.dims)) for v in column)
        stacked.append(ctx.build.concatenate(parts, axis=0))
    return (*state[has_condition:], *stacked)
