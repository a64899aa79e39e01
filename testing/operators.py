"""One operator at a time: a model of a single node, its reference result, and its decomposition's, for tests of operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir import dtypes
from ..ir.build import Builder, DecomposeContext, function
from ..ir.dtypes import DType
from ..ir.facts import Fact
from ..ir.model import Model, Value
from ..ir.operators import Operator, get
from ..ir.reference import evaluate
from ..ir.types import TensorType, Type


def model_of(
    name: str,
    *operands: Any,
    types: Sequence[Type] | None = None,
    decompose: bool = False,
    constants: bool = False,
    **attributes: Any,
) -> tuple[Model, list[Any]]:
    """A model whose `main` is the operator (or its decomposition) applied to operands, and the inputs to call it with.

    Operands are arrays, as rules take them: a list for a variadic group, None where absent.  `types` gives the inputs
    other types (symbolic dims).  `constants` makes constants of the arrays instead of inputs.  An attribute that is a
    function is a region: it gets the builder and returns a Graph.
    """
    op = get(name)
    flat = [a if a is None or isinstance(a, list) else np.asarray(a) for a in op.flatten(_tuples(op, operands))]
    present = [a for a in flat if a is not None]
    kinds = list(types) if types is not None else [_type_of(a) for a in present]
    model = Model(name)
    fed = [] if constants else present

    def body(b: Builder, *inputs: Value) -> Any:
        rest = iter([b.constant(a, t.dtype) for a, t in zip(present, kinds, strict=True) if isinstance(t, TensorType)] if constants else inputs)
        values = [None if a is None else next(rest) for a in flat]
        keywords = {k: v(b) if callable(v) and not isinstance(v, DType) else v for k, v in attributes.items()}
        if not decompose:
            return b.apply(op, *op.group(values), **keywords)
        assert op.decompose is not None, f"{name} has no decomposition"
        checked = op.make_attributes({k: v for k, v in keywords.items() if k in op.kinds}).as_dict()
        graphs = {r.name: keywords.get(r.name) for r in op.regions}
        return op.decompose(DecomposeContext(b), *op.group(values), **checked, **graphs)

    inputs = [] if constants else [(f"x{i}", t) for i, t in enumerate(kinds)]
    function(model, "main", inputs, body)
    return model, fed


def run(name: str, *operands: Any, **keywords: Any) -> Any:
    """The reference's result: one array, or a tuple of several.  See `model_of`."""
    model, inputs = model_of(name, *operands, **keywords)
    results = evaluate(model, inputs)
    return results[0] if len(results) == 1 else results


def facts_of(name: str, *operands: Type | Fact | None | tuple[Any, ...], regions: Callable[[Builder], dict[str, Any]] | None = None, **attributes: Any) -> Any:
    """Facts that `infer` gives for operands of these types or facts: one, or a tuple of several."""
    op = get(name)
    model = Model(name)
    used: list[Value] = []

    def body(b: Builder) -> Any:
        values = [None if o is None else tuple(_value(b, x) for x in o) if isinstance(o, tuple) else _value(b, o) for o in operands]
        out = b.apply(op, *values, **attributes, **(regions(b) if regions else {}))
        used.extend(out if isinstance(out, tuple) else (out,))
        return out

    function(model, "main", [], body)
    facts = tuple(v.fact for v in used)
    return facts[0] if len(facts) == 1 else facts


def assumptions_of(name: str, *operands: Any, **attributes: Any) -> list[str]:
    """What typing the operator on operands of these types assumes, as text."""
    from ..ir.infer import InferContext, infer

    op = get(name)
    ctx = InferContext(Model(name), None, name)
    flat = [None if o is None else o if isinstance(o, Fact) else Fact(o) for o in op.flatten(operands)]
    infer(ctx, op, flat, op.make_attributes(attributes), {})
    return [str(a) for a in ctx.assumptions]


def _value(b: Builder, what: Type | Fact) -> Value:
    """A new input of the function, with what is known of it."""
    fact = what if isinstance(what, Fact) else Fact(what)
    if fact.data is not None:
        return b.constant(fact.data)
    function_ = b.graph.function
    assert function_ is not None
    value = function_.add_input(fact.type, f"x{len(function_.inputs)}")
    value.set_fact(fact)
    return value


def _tuples(op: Operator, operands: Sequence[Any]) -> list[Any]:
    specs = (*op.operands, *[None] * len(operands))
    return [tuple(o) if s is not None and s.variadic and isinstance(o, list) else o for s, o in zip(specs, operands, strict=False)]


def _type_of(array: Any) -> Type:
    dtype = dtypes.string if array.dtype.kind in "OSU" else DType.from_numpy(array.dtype)
    return TensorType(dtype, array.shape)
