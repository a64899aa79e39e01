"""One operator at a time, for tests of operators: a model of one node, its reference result, its decomposition's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir import dims as sizes
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
        rest = iter(
            [b.constant(a, t.dtype) for a, t in zip(present, kinds, strict=True) if isinstance(t, TensorType)]
            if constants
            else inputs
        )
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


def facts_of(
    name: str,
    *operands: Type | Fact | tuple[Any, ...] | None,
    regions: Callable[[Builder], dict[str, Any]] | None = None,
    **attributes: Any,
) -> Any:
    """Facts that `infer` gives for operands of these types or facts: one, or a tuple of several."""
    op = get(name)
    model = Model(name)
    used: list[Value] = []

    def body(b: Builder) -> Any:
        values = [
            None if o is None else tuple(_value(b, x) for x in o) if isinstance(o, tuple) else _value(b, o)
            for o in operands
        ]
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
    return [
        tuple(o) if s is not None and s.variadic and isinstance(o, list) else o
        for s, o in zip(specs, operands, strict=False)
    ]


def _type_of(array: Any) -> Type:
    dtype = dtypes.string if array.dtype.kind in "OSU" else DType.from_numpy(array.dtype)
    return TensorType(dtype, array.shape)


def shaped(text: str | None, array: Any) -> Type:
    """The type of an array with the dims that `text` spells (`"N 3 H W"`: symbols N, H, W); None: the array's own."""
    own = _type_of(array)
    if text is None or not isinstance(own, TensorType):
        return own
    return TensorType(own.dtype, tuple(sizes.parse(word) for word in text.split()))


def check_composite(
    name: str, *operands: Any, shapes: Sequence[str | None] | None = None, ulps: float = 4, **attributes: Any
) -> Any:
    """The reference's result, after asserting that the decomposition agrees with it and that types agree with both.

    Floats may differ by `ulps` units in the last place of the result's greatest magnitude; all else must be equal.
    `shapes` (see `shaped`, one a present operand) also evaluates both with symbolic dims and compares the types that
    `infer` and the decomposition give.
    """
    want = _tuple(run(name, *operands, **attributes))
    rows = [run(name, *operands, decompose=True, **attributes)] if get(name).decompose else []
    if shapes is not None:
        present = [np.asarray(a) for a in get(name).flatten(_tuples(get(name), operands)) if a is not None]
        types = [shaped(s, a) for s, a in zip(shapes, present, strict=True)]
        rows.append(run(name, *operands, types=types, **attributes))
        whole, _ = model_of(name, *operands, types=types, **attributes)
        if get(name).decompose:
            rows.append(run(name, *operands, types=types, decompose=True, **attributes))
            parts, _ = model_of(name, *operands, types=types, decompose=True, **attributes)
            assert [str(v.type) for v in parts.main.outputs] == [str(v.type) for v in whole.main.outputs], name
    for row in rows:
        for got, expected in zip(_tuple(row), want, strict=True):
            _check_close(name, got, expected, ulps)
    return want[0] if len(want) == 1 else want


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _check_close(name: str, got: Any, want: Any, ulps: float) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape), name
    dtype = DType.from_numpy(want.dtype)
    if not (dtype.is_float or dtype.is_complex):
        np.testing.assert_array_equal(got, want, err_msg=name)
        return
    wide = np.complex128 if dtype.is_complex else np.float64
    a, b = got.astype(wide), want.astype(wide)
    finite = np.isfinite(b)
    np.testing.assert_array_equal(
        np.where(finite, 0, a), np.where(finite, 0, b), err_msg=f"{name}: infinities and NaNs"
    )
    scale = np.abs(b[finite]).max(initial=0)
    eps = {dtypes.c64: 2.0**-23, dtypes.c128: 2.0**-52}.get(dtype) or float(dtype.finfo().eps)
    gap = np.abs(a[finite] - b[finite]).max(initial=0)
    error = gap / (scale * eps) if scale else gap
    assert error <= ulps, f"{name}: {error:.3g} ulps of {scale:.3g} off, {ulps} allowed"


def run_onnx_node(op_type: str, inputs: Sequence[Any], *, opset: int = 21, outputs: int = 1, **attributes: Any) -> Any:
    """What ONNX Runtime's CPU gives for one ONNX node on these arrays (None: absent): an array, or a tuple."""
    import onnx
    import onnxruntime

    names = [f"x{i}" if a is not None else "" for i, a in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = onnx.helper.make_node(op_type, names, results, **attributes)
    kinds = [(n, DType.from_numpy(a.dtype).onnx, a.shape) for n, a in zip(names, inputs, strict=True) if a is not None]
    graph = onnx.helper.make_graph(
        [node],
        op_type,
        [onnx.helper.make_tensor_value_info(*k) for k in kinds],
        [onnx.ValueInfoProto(name=n) for n in results],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    got = session.run(results, {n: a for n, a in zip(names, inputs, strict=True) if a is not None})
    return got[0] if outputs == 1 else tuple(got)
