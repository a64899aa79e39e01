"""What reduce and reduce_window share: kinds of combination, identities, checks, NumPy forms.  Defines no operators."""

import math

import numpy as np

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
