"""What reduce and reduce_window share: kinds of combination, identities, checks, NumPy forms.  Defines no operators."""

import math

import numpy as np

from .. import ints
from ..dims import DimError
from ..dtypes import DType
from ..facts import Fact
from ..operators import LOGICAL, NUMERIC, ORDERED

KINDS = {"sum": NUMERIC, "prod": NUMERIC, "max": ORDERED, "min": ORDERED, "and": LOGICAL, "or": LOGICAL, "xor": LOGICAL}
"""Kinds of built-in combination and the element types that have them."""


def combined(ctx, xs, kind: str, body) -> tuple[tuple[Fact, ...], list[DType]]:
    """The inputs of a reduce or reduce_window and the element types of its results; checks kind, inits and body."""
    if kind != "custom":
        if kind not in KINDS:
            ctx.fail(f"kind must be one of {', '.join([*KINDS, 'custom'])}, got {kind!r}")
        ctx.need(len(xs) == 1, f"kind {kind} takes one operand, got {len(xs)}; only custom takes inits")
        ctx.need(KINDS[kind].accepts(xs[0].dtype), f"kind {kind} needs {KINDS[kind].name}, got {xs[0].type}")
        ctx.need(body is None, f"kind {kind} takes no body; only custom does")
        return xs, [xs[0].dtype]
    count, odd = divmod(len(xs), 2)
    ctx.need(count > 0 and not odd, f"custom takes n inputs and n inits, got {len(xs)} operands")
    ctx.need(body is not None, "custom needs a body")
    inputs, inits = xs[:count], xs[count:]
    for x in inputs[1:]:
        ctx.equal_dims(inputs[0].dims, x.dims, "dims of the inputs")
    for x in inits:
        ctx.need(x.rank == 0, f"inits must be scalars, got {x.type}")
    outputs = [v.fact for v in body.outputs]
    ctx.need(
        len(body.inputs) == 2 * count and len(outputs) == count,
        f"the body must take {2 * count} scalars and return {count}; "
        f"it takes {len(body.inputs)} and returns {len(outputs)}",
    )
    for x in outputs:
        ctx.need(x.rank == 0, f"the body must return scalars, got {x.type}")
    return inputs, [x.dtype for x in outputs]


UFUNCS = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
"""NumPy's form of each kind, on wide arrays and bool."""


def identity(kind: str, dtype: DType):
    """What an empty combination gives, as a NumPy scalar of `dtype`."""
    match kind:
        case "max":
            return dtype.min_value()
        case "min":
            return dtype.max_value()
        case "and":
            return np.array(-1, dtype.numpy)[()] if dtype.kind == "int" else dtype.max_value()
        case _:
            return np.array(1 if kind == "prod" else 0, dtype.numpy)[()]


_RULES = {"sum": ints.add, "prod": ints.multiply, "max": ints.maximum, "min": ints.minimum}


def with_known_ints(ctx, fact: Fact, x: Fact, axes: tuple[int, ...], kind: str) -> Fact:
    """`fact`, the result of reducing x along axes (all >= 0), with the integers that x's known ones give."""
    rule = _RULES.get(kind)
    if rule is None or not x.dtype.is_integer or not ints.known(x) or (values := ints.array(x)) is None:
        return fact
    kept = [i for i in range(x.rank) if i not in axes]
    count = math.prod(values.shape[i] for i in kept)
    rows = values.transpose(*kept, *axes).reshape(count, values.size // count if count else 0)
    return fact.with_ints(tuple(_known_int(ctx, rule, row, kind, x.dtype) for row in rows))


def _known_int(ctx, rule, row, kind: str, dtype: DType):
    """One combined element, None where it cannot be said."""
    total = row[0] if len(row) else int(identity(kind, dtype))
    try:
        for value in row[1:]:
            if total is None or value is None:
                return None
            total = ints.wrap(rule(ctx, total, value), dtype)
    except DimError:
        return None
    return total


def reduce_custom(ctx, xs, axes, body):
    """A custom reduction, one element after the other in row-major order; n results."""
    count = len(xs) // 2
    kept = [i for i in range(xs[0].ndim) if i not in axes]
    size = math.prod(xs[0].shape[a] for a in axes)
    rows = [np.transpose(x, (*kept, *axes)).reshape(*(x.shape[i] for i in kept), size) for x in xs[:count]]
    results = [np.empty(rows[0].shape[:-1], t.dtype.numpy) for t in ctx.result_types]
    for place in np.ndindex(rows[0].shape[:-1]):
        state = tuple(xs[count:])
        for i in range(size):
            state = ctx.run(body, *state, *(np.asarray(row[(*place, i)]) for row in rows))
        for result, value in zip(results, state, strict=True):
            result[place] = value
    return tuple(results)
