"""Every vjp rule against central differences in f64 on the reference, and the sweep that uses them."""

from __future__ import annotations

import numpy as np
import pytest

import irc
from irc.ir import dtypes
from irc.ir.build import function
from irc.ir.differentiate import gradients
from irc.ir.dtypes import DType
from irc.ir.model import Model
from irc.ir.operators import all_operators, get
from irc.ir.reference import evaluate
from irc.ir.types import TensorType
from irc.testing.operators import run

STEP = 1e-5
RTOL = 2e-7  # STEP^2 times third derivatives of order ten, and rounding of 1e-16 / STEP


def uniform(*shape, low=-2.0, high=2.0, seed=0):
    return np.random.default_rng(seed).uniform(low, high, shape)


def spread(*shape, seed=0):
    """Distinct numbers at least 0.1 apart, none of them near 0."""
    n = int(np.prod(shape))
    return (np.random.default_rng(seed).permutation(n).reshape(shape) - n // 2) * 0.1 + 0.05


def model_of(name, flat, attributes, types=None):
    """main(operands.., weights..) -> cotangents of the float operands, for the sum of weights times results."""
    op = get(name)
    results = np.atleast_1d(1) if not flat else run(name, *op.group(flat), **attributes)
    results = results if isinstance(results, tuple) else (results,)
    floats = [i for i, r in enumerate(results) if r.dtype.kind == "f"]
    weights = [uniform(*results[i].shape, seed=7 + i).astype(results[i].dtype) for i in floats]
    model = Model(name)
    arrays = [*flat, *weights]
    kinds = types or [TensorType(DType.from_numpy(a.dtype), a.shape) for a in arrays]

    def body(b, *values):
        own, given = values[: len(flat)], values[len(flat) :]
        keywords = {k: v(b) if callable(v) and not isinstance(v, DType) else v for k, v in attributes.items()}
        out = b.apply(op, *op.group(own), **keywords)
        out = out if isinstance(out, tuple) else (out,)
        wanted = [v for v in own if v.dtype.is_float]
        return gradients(b, [out[i] for i in floats], wanted, given)

    function(model, "main", [(f"x{i}", k) for i, k in enumerate(kinds)], body)
    return model, arrays, weights, floats


def differences(name, flat, attributes, weights, floats):
    """Central differences of the sum of weights times results, an array a float operand."""
    op = get(name)

    def loss(arrays):
        out = run(name, *op.group(arrays), **attributes)
        out = out if isinstance(out, tuple) else (out,)
        return sum(float((w * out[i]).sum()) for w, i in zip(weights, floats, strict=True))

    rows = []
    for k, x in enumerate(flat):
        if x.dtype.kind != "f":
            continue
        slope = np.zeros(x.shape)
        for place in np.ndindex(x.shape):
            ends = []
            for step in (STEP, -STEP):
                moved = [a.copy() for a in flat]
                moved[k][place] += step
                ends.append(loss(moved))
            slope[place] = (ends[0] - ends[1]) / (2 * STEP)
        rows.append(slope)
    return rows


def check(name, flat, attributes):
    flat = [np.asarray(a) for a in flat]
    model, arrays, weights, floats = model_of(name, flat, attributes)
    got = evaluate(model, arrays)
    want = differences(name, flat, attributes, weights, floats)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        np.testing.assert_allclose(g, w, rtol=RTOL, atol=RTOL * max(1.0, np.abs(w).max(initial=0)), err_msg=name)


# Functions of one operand, and where to look at them.
UNARY = {
    "abs": (0.1, 2), "acos": (-0.9, 0.9), "acosh": (1.2, 3), "asin": (-0.9, 0.9), "asinh": (-2, 2), "atan": (-2, 2),
    "atanh": (-0.9, 0.9), "cbrt": (0.3, 2), "cosh": (-2, 2), "cosine": (-3, 3), "erf": (-2, 2), "erfc": (-2, 2),
    "erf_inv": (-0.8, 0.8), "exponential": (-2, 2), "exponential_minus_one": (-2, 2), "lgamma": (0.5, 3),
    "log": (0.3, 3), "log_plus_one": (-0.6, 3), "logistic": (-3, 3), "negate": (-2, 2), "rsqrt": (0.4, 3),
    "sine": (-3, 3), "sinh": (-2, 2), "sqrt": (0.3, 3), "tan": (-1, 1), "tanh": (-2, 2), "ceil": (0.1, 0.9),
    "floor": (0.1, 0.9), "round_nearest_even": (0.6, 1.4), "round_nearest_afz": (0.6, 1.4), "sign": (0.1, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("shape", [(2, 3), ()], ids=str)
def test_functions_of_one_operand(name, shape):
    low, high = UNARY[name]
    x = uniform(*shape, low=low, high=high)
    check(name, [x], {})
    if name in ("abs", "cbrt", "sign"):
        check(name, [-x], {})


BINARY = {
    "add": (-2, 2), "subtract": (-2, 2), "multiply": (-2, 2), "divide": (0.5, 2), "power": (0.5, 2),
    "maximum": (-2, 2), "minimum": (-2, 2), "atan2": (0.5, 2), "remainder": (0.5, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 1, 3), (4, 1)), ((), (3,)), ((1, 3), (2, 3))], ids=str)
def test_functions_of_two_operands_that_broadcast(name, shapes):
    low, high = BINARY[name]
    check(name, [uniform(*s, low=low, high=high, seed=3 + i) for i, s in enumerate(shapes)], {})


ONES = {"lhs_contracting": (1,), "rhs_contracting": (0,), "lhs_batching": (), "rhs_batching": ()}
TIES = np.array([[1, 0, 2, 1], [2, 2, 0, -1]])
HALF = np.array([[True, False, True], [False, False, True]])


def windows(**more):
    base = {"kind": "sum", "window_dimensions": (2, 3), "window_strides": (1, 2), "padding": ((0, 1), (1, 0))}
    return base | {"base_dilations": (1, 1), "window_dilations": (1, 1)} | more


def convolved(**more):
    base = {"lhs_spec": "bf01", "rhs_spec": "oi01", "out_spec": "bf01", "window_strides": (1, 1)}
    base |= {"padding": ((0, 0), (0, 0)), "lhs_dilation": (1, 1), "rhs_dilation": (1, 1)}
    return base | {"window_reversal": (False, False)} | more


def rows(**more):
    """gather and scatter of rows: x[5, 3], two row numbers."""
    return {"start_index_map": (0,), "index_vector_dim": 1} | more


GATHER = {"offset_dims": (1,), "collapsed_slice_dims": (0,), "slice_sizes": (1, 3)}
SCATTER = {"update_window_dims": (1,), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
SCATTER["index_vector_dim"] = 1
BLOCKS = SCATTER | {"update_window_dims": (1, 2), "inserted_window_dims": (), "scatter_dims_to_operand_dims": (0, 1)}
PICKS = {"offset_dims": (1, 2), "collapsed_slice_dims": (), "start_index_map": (0, 1), "slice_sizes": (2, 2)}
CASES = [
    ("select", [HALF, uniform(2, 3), uniform(2, 3, seed=1)], {}),
    ("select", [HALF, uniform(3), uniform(2, 1, seed=1)], {}),
    ("clamp", [np.array(-0.9), spread(3, 4), np.array(0.3)], {}),
    ("clamp", [spread(2, 3) - 0.02, spread(2, 3, seed=1), spread(3, seed=2) + 0.03], {}),
    ("compare", [uniform(3), uniform(3, seed=1)], {"direction": "lt"}),
    ("convert", [uniform(2, 3)], {"dtype": dtypes.f64}),
    ("convert", [uniform(3)], {"dtype": dtypes.i32}),
    ("optimization_barrier", [uniform(2), uniform(3)], {}),
    ("optimization_barrier", [uniform(2, 2)], {}),
    ("broadcast_in_dim", [uniform(3)], {"dims": (2, 3), "broadcast_dimensions": (1,)}),
    ("broadcast_in_dim", [uniform(2, 1)], {"dims": (2, 4, 3), "broadcast_dimensions": (0, 2)}),
    ("broadcast_in_dim", [np.array(2.0)], {"dims": (2,), "broadcast_dimensions": ()}),
    ("reshape", [uniform(2, 6)], {"dims": (3, 4)}),
    ("reshape", [uniform(1)], {"dims": ()}),
    ("transpose", [uniform(2, 3, 4)], {"permutation": (2, 0, 1)}),
    ("transpose", [uniform(2, 3)], {"permutation": (0, 1)}),
    ("concatenate", [uniform(2, 3), uniform(2, 1), uniform(2, 0)], {"axis": 1}),
    ("concatenate", [uniform(2)], {"axis": 0}),
    ("reverse", [uniform(2, 3)], {"axes": (1,)}),
    ("reverse", [uniform(2, 3)], {"axes": (0, 1)}),
    ("slice", [uniform(4, 7)], {"starts": (1, 0), "limits": (3, 6), "strides": (1, 4)}),
    ("slice", [uniform(3)], {"starts": (2,), "limits": (2,), "strides": (2,)}),
    ("pad", [uniform(2, 3), np.array(0.5)], {"low": (1, 0), "high": (0, 2), "interior": (2, 1)}),
    ("pad", [uniform(4, 3), np.array(0.5)], {"low": (-1, 1), "high": (1, -2), "interior": (1, 0)}),
    ("dynamic_slice", [uniform(4, 5), np.array(3), np.array(-1)], {"sizes": (2, 3)}),
    ("dynamic_slice", [uniform(3), np.array(1)], {"sizes": (1,)}),
    ("dynamic_update_slice", [uniform(4, 5), uniform(2, 2), np.array(3), np.array(1)], {}),
    ("dynamic_update_slice", [uniform(3), uniform(1), np.array(-4)], {}),
    ("take", [uniform(4, 3), np.array([[0, -1], [2, 2]])], {"axis": 0}),
    ("take", [uniform(2, 3, 2), np.array([7, -9, 1])], {"axis": 1}),
    ("take", [uniform(3), np.array(1)], {}),
    ("take_along_axis", [uniform(2, 4), np.array([[0, -1, 0], [9, 2, 2]])], {"axis": 1}),
    ("take_along_axis", [uniform(3), np.array([2])], {}),
    ("put_along_axis", [uniform(2, 4), np.array([[0, 3, 0], [-1, 1, 9]]), uniform(2, 3)], {"axis": 1, "kind": "sum"}),
    ("put_along_axis", [uniform(2, 4), np.array([[0, 3, 0], [-1, 1, 9]]), uniform(2, 3)], {"axis": 1}),
    ("put_along_axis", [uniform(4, 3), np.array([[1, 1]]), uniform(1, 2)], {"axis": 0}),
    ("gather", [uniform(5, 3), np.array([[4], [0], [4]])], rows(**GATHER)),
    ("gather", [uniform(5, 3), np.array([[9], [-2]])], rows(**GATHER)),
    ("gather", [uniform(4, 3), np.array([[1, 1], [3, 0], [0, 5]])], {**PICKS, "index_vector_dim": 1}),
    ("scatter", [uniform(5, 3), np.array([[1], [4], [1]]), uniform(3, 3)], SCATTER | {"kind": "sum"}),
    ("scatter", [uniform(5, 3), np.array([1, 7]), uniform(2, 3)], SCATTER | {"kind": "sum"}),
    ("scatter", [uniform(5, 3), np.array([[1], [-1], [1]]), uniform(3, 3)], SCATTER),
    ("scatter", [uniform(4, 4), np.array([[0, 0], [1, 1], [3, 0]]), uniform(3, 2, 2)], BLOCKS),
    ("reduce", [uniform(2, 3, 2)], {"axes": (1,), "kind": "sum"}),
    ("reduce", [uniform(2, 3)], {"axes": (0, 1), "kind": "sum"}),
    ("reduce", [uniform(2, 3)], {"axes": (1,), "kind": "prod"}),
    ("reduce", [np.array([[1.0, 0.0, 3.0], [0.0, 0.0, 2.0], [1.5, 2.0, 3.0]])], {"axes": (1,), "kind": "prod"}),
    ("reduce", [spread(3, 4)], {"axes": (1,), "kind": "max"}),
    ("reduce", [spread(2, 3, 2)], {"axes": (0, 2), "kind": "min"}),
    ("reduce", [uniform(2, 3)], {"axes": (), "kind": "max"}),
    ("reduce_window", [uniform(3, 5)], windows()),
    ("reduce_window", [uniform(3, 5)], windows(base_dilations=(2, 1), window_dilations=(1, 2), window_strides=(2, 1))),
    ("reduce_window", [spread(4, 5)], windows(kind="max")),
    ("reduce_window", [spread(4, 6)], windows(kind="min", padding=((0, 0), (0, 0)))),
    ("dot_general", [uniform(2, 3), uniform(3, 4)], ONES),
    ("dot_general", [uniform(2, 3, 4, 2), uniform(4, 2, 5, 3)],
     {"lhs_contracting": (2, 1), "rhs_contracting": (0, 3), "lhs_batching": (0,), "rhs_batching": (1,)}),
    ("dot_general", [uniform(3), uniform(3)], ONES | {"lhs_contracting": (0,)}),
    ("convolution", [uniform(2, 3, 5, 4), uniform(2, 3, 2, 3)], convolved()),
    ("convolution", [uniform(1, 2, 6, 5), uniform(3, 2, 3, 2)],
     convolved(window_strides=(2, 3), padding=((1, 2), (0, 1)), rhs_dilation=(2, 1), window_reversal=(True, False))),
    ("convolution", [uniform(1, 2, 3, 3), uniform(2, 2, 2, 2)],
     convolved(lhs_dilation=(2, 3), padding=((1, -1), (0, 1)))),
    ("convolution", [uniform(2, 4, 4, 3), uniform(6, 2, 2, 2)],
     convolved(feature_group_count=2, window_strides=(2, 1))),
    ("convolution", [uniform(4, 2, 3, 3), uniform(4, 2, 2, 2)], convolved(batch_group_count=2)),
    ("convolution", [uniform(5, 2, 4, 3), uniform(2, 2, 3, 4)],
     convolved(lhs_spec="0b1f", rhs_spec="01io", out_spec="f10b", feature_group_count=1)),
    ("sort", [spread(3, 4)], {"axis": 1}),
    ("sort", [spread(4, 2), uniform(4, 2), np.arange(8).reshape(4, 2)], {"axis": 0, "kind": "descending"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "attributes"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_rules_with_attributes(name, operands, attributes):
    check(name, operands, attributes)


# Composites, through their decompositions.
COMPOSITES = [
    ("Softmax", [uniform(2, 3)], {"axis": 1}),
    ("LayerNormalization", [uniform(2, 4), uniform(4), uniform(4, seed=1)], {"axis": 1}),
    ("Gelu", [uniform(2, 3)], {}),
    ("MatMul", [uniform(2, 1, 2, 3), uniform(3, 3, 2)], {}),
    ("Gemm", [uniform(3, 2), uniform(3, 4), uniform(4)], {"alpha": 0.5, "beta": 2.0, "transpose_a": True}),
    ("Conv", [uniform(1, 2, 4, 4), uniform(2, 2, 2, 2), uniform(2)],
     {"strides": (1, 2), "dilations": (1, 1), "pads": ((1, 0), (0, 1))}),
    ("CumSum", [uniform(2, 4)], {"axis": 1, "exclusive": True, "reverse": True}),
    ("ReduceMean", [uniform(2, 3)], {"axes": (1,)}),
    ("ReduceLogSumExp", [uniform(2, 3)], {"axes": (1,)}),
    ("TopK", [spread(2, 5)], {"k": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "attributes"), COMPOSITES, ids=[c[0] for c in COMPOSITES])
def test_composites(name, operands, attributes):
    check(name, operands, attributes)


# Core operators without a rule, and why.
WITHOUT = {
    "integers or bool": ("and", "or", "xor", "not", "shift_left", "shift_right_arithmetic", "shift_right_logical",
                         "popcnt", "count_leading_zeros", "iota", "dimensions"),
    "bits": ("bitcast_convert",),
    "complex numbers, which have no cotangents here": ("complex", "real", "imag", "conj", "fft"),
    "its derivative, the polygamma function, is no operator": ("digamma",),
    "only as the derivative of a window maximum": ("select_and_scatter",),
    "no model has asked for second-order solvers": ("cholesky", "triangular_solve"),
    "the states of all rounds would have to be kept": ("while",),
    "inlined first": ("call",),
    "runs on the host, or names what irc does not know": ("bind_dim", "freeze", "trap", "onnx", "custom_call"),
}  # fmt: skip


def test_every_core_operator_has_a_rule_or_a_reason_not_to():
    reasons = [name for names in WITHOUT.values() for name in names]
    assert sorted(reasons) == sorted(op.name for op in all_operators() if not op.is_composite and op.vjp is None)
    ruled = [op.name for op in all_operators() if op.vjp is not None]
    assert len(ruled) >= 40
    tested = {*UNARY, *BINARY, *(c[0] for c in CASES), "if", "case", "reduce_precision", "is_finite"}
    assert set(ruled) <= tested


def differentiated(inputs, body):
    """A model of main(x..) -> gradients of what `body` returns in all inputs."""
    model = Model("m")

    def main(b, *values):
        return gradients(b, [body(b, *values)], values)

    function(model, "main", [(f"x{i}", t) for i, t in enumerate(inputs)], main)
    return model


F64 = TensorType(dtypes.f64, ())


@pytest.mark.parametrize("x", [2.0, -2.0])
def test_branches_are_differentiated_where_they_ran(x):
    def either(b, x, y):
        positive = b.compare(x, 0.0, direction="gt")
        types = ()
        then = b.region(types, lambda c: c.multiply(c.multiply(x, x), y))
        other = b.region(types, lambda c: c.sine(x))
        return b.multiply(b.if_(positive, then=then, else_=other), 3.0)

    got = [float(v) for v in evaluate(differentiated([F64, F64], either), [np.array(x), np.array(5.0)])]
    want = [3 * 2 * x * 5, 3 * x * x] if x > 0 else [3 * np.cos(x), 0]
    np.testing.assert_allclose(got, want, rtol=1e-14)

    def one_of(b, x, y):
        places = b.convert(b.compare(x, 0.0, direction="lt"), dtype=dtypes.i32)
        return b.case(places, branches=(b.region((), lambda c: c.exponential(x)), b.region((), lambda c: c.add(x, y))))

    got = [float(v) for v in evaluate(differentiated([F64, F64], one_of), [np.array(x), np.array(5.0)])]
    np.testing.assert_allclose(got, [np.exp(x), 0] if x > 0 else [1, 1], rtol=1e-14)


def test_what_jumps_passes_nothing_on():
    def body(b, x):
        steps = b.convert(b.and_(b.is_finite(x), b.compare(x, 0.0, direction="gt")), dtype=dtypes.f64)
        return b.add(b.multiply(steps, x), b.convert(b.convert(x, dtype=dtypes.i32), dtype=dtypes.f64))

    assert evaluate(differentiated([F64], body), [np.array(2.5)])[0] == 1.0


def test_reduce_precision_passes_the_cotangent_on():
    def rounded(b, x):
        return b.multiply(b.reduce_precision(x, exponent_bits=8, mantissa_bits=3), 2.0)

    assert evaluate(differentiated([F64], rounded), [np.array(1.234)])[0] == 2.0


def test_uses_add_up_and_the_nodes_are_linear_in_the_depth():
    def tower(depth):
        def body(b, x):
            for _ in range(depth):
                x = b.multiply(x, x) if depth < 4 else b.add(b.sine(x), x)
            return x

        return body

    assert evaluate(differentiated([F64], tower(3)), [np.array(1.5)])[0] == pytest.approx(8 * 1.5**7, rel=1e-14)
    sizes = [sum(1 for _ in differentiated([F64], tower(n)).nodes()) for n in (200, 400, 800)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


def test_what_the_output_does_not_depend_on_gets_zeros():
    model = differentiated([F64, TensorType(dtypes.f64, (2,))], lambda b, x, y: b.add(x, 1.0))
    one, zeros = evaluate(model, [np.array(1.0), np.ones(2)])
    assert one == 1.0
    assert zeros.tolist() == [0, 0]


def test_symbolic_dims_are_kept():
    from irc.ir.dims import symbol

    kind = TensorType(dtypes.f64, (symbol("N"), 3))
    model = differentiated([kind, TensorType(dtypes.f64, (3,))], lambda b, x, w: b.Softmax(b.multiply(x, w), axis=0))
    assert [str(v.type) for v in model.main.outputs] == ["f64[N,3]", "f64[3]"]


def test_all_operators_without_a_derivative_are_named_at_once():
    def body(b, x):
        looped = b.while_((x,), cond=b.region((F64,), lambda c, v: c.compare(v, 9.0, direction="lt")),
                          body=b.region((F64,), lambda c, v: c.multiply(v, 2.0)))  # fmt: skip
        return b.add(looped, b.digamma(x))

    with pytest.raises(irc.IrcError, match=r"cannot be differentiated: while .*no vjp rule; digamma .*no vjp rule"):
        differentiated([F64], body)


def test_integers_have_no_derivative():
    with pytest.raises(irc.IrcError, match=r"x0 of type i64\[\] has no derivative: it must be a float tensor"):
        differentiated([TensorType(dtypes.i64, ())], lambda b, x: b.convert(x, dtype=dtypes.f32))


def test_what_a_rule_refuses_is_reported_with_its_reason():
    def body(b, x):
        places = b.constant(np.array([0]))
        return b.put_along_axis(x, places, b.constant([2.0], dtypes.f64), kind="prod")

    with pytest.raises(irc.IrcError, match=r"put_along_axis.*kind 'prod' has no derivative here; sum and replace have"):
        differentiated([TensorType(dtypes.f64, (3,))], body)
