"""Control flow, calls, operators that bind run-time integers: what they run, how they are typed, what they refuse."""

import numpy as np
import pytest

from irc.ir import dtypes, late
from irc.ir.build import function
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError, InputError, IrcError
from irc.ir.facts import Fact, shape_fact
from irc.ir.model import Model
from irc.ir.operators import EFFECTS, LATE, get
from irc.ir.reference import evaluate
from irc.ir.types import TensorType, tensor
from irc.testing.operators import assumptions_of, facts_of, run

B, S, N = symbol("B"), symbol("S"), symbol("N")
F, I, BOOL = dtypes.f32, dtypes.i64, dtypes.bool_


def branches(*types):
    """Regions without inputs that yield zeros of the types."""
    return lambda b: {"branches": [b.region([], lambda b, t=t: b.full(0, t.dtype, t.dims)) for t in types]}


def then_else(a, c):
    return lambda b: {
        k: b.region([], lambda b, t=t: b.full(0, t.dtype, t.dims)) for k, t in (("then", a), ("else_", c))
    }


@pytest.mark.parametrize("flag", [True, False])
def test_if_runs_one_branch_and_sees_the_values_around(flag):
    def body(b, x, flag):
        doubled = b.multiply(x, 2.0)
        then = b.region([], lambda b: (b.add(doubled, 1.0), x))
        return b.if_(flag, then=then, else_=b.region([], lambda b: (doubled, doubled)))

    model = Model()
    function(model, "main", [("x", tensor(F, B)), ("flag", tensor(BOOL))], body)
    x = np.array([1, 2], np.float32)
    first, second = evaluate(model, [x, np.array(flag)])
    assert first.tolist() == ([3, 5] if flag else [2, 4])
    assert second.tolist() == ([1, 2] if flag else [2, 4])


def test_the_branch_not_taken_does_not_run():
    def body(b, x, flag):
        trap = b.region([], lambda b: b.trap(message="the branch ran", results=(x.type,)))
        return b.if_(flag, then=b.region([], lambda b: x), else_=trap)

    model = Model()
    function(model, "main", [("x", tensor(F, 2)), ("flag", tensor(BOOL))], body)
    x = np.ones(2, np.float32)
    assert evaluate(model, [x, np.array(True)])[0].tolist() == [1, 1]
    with pytest.raises(IrcError, match=r"^the branch ran$"):
        evaluate(model, [x, np.array(False)])


def test_if_types():
    flag = tensor(BOOL)
    assert facts_of("if", flag, regions=then_else(tensor(F, 2, 3), tensor(F, 2, 3))).type == tensor(F, 2, 3)
    with pytest.raises(
        InferenceError,
        match=r"result 0 has type f32\[3\] in then and f32\[4\] in else; they must be equal, or the node typed late",
    ):
        facts_of("if", flag, regions=then_else(tensor(F, 3), tensor(F, 4)))
    with pytest.raises(InferenceError, match=r"result 0 has type f32\[3\] in then and f16\[3\] in else"):
        facts_of("if", flag, regions=then_else(tensor(F, 3), tensor(dtypes.f16, 3)))
    with pytest.raises(InferenceError, match=r"the predicate must be a scalar, got bool\[1\]"):
        facts_of("if", tensor(BOOL, 1), regions=then_else(tensor(F, 3), tensor(F, 3)))


def test_branches_that_yield_equal_integers_keep_them():
    def regions(b):
        return {k: b.region([], lambda b: b.constant(np.array([4, 7]))) for k in ("then", "else_")}

    assert facts_of("if", tensor(BOOL), regions=regions).ints == (4, 7)


@pytest.mark.parametrize("index, want", [(0, 10), (1, 20), (2, 30), (3, 30), (-1, 30)])
def test_case_runs_the_last_branch_when_out_of_range(index, want):
    def choices(b):
        return [b.region([], lambda b, v=v: b.constant(np.float32(v))) for v in (10, 20, 30)]

    assert run("case", np.array(index, np.int32), branches=choices) == want


def test_case_types():
    with pytest.raises(InferenceError, match=r"result 0 has type f32\[2\] in branch 0 and f32\[3\] in branch 2"):
        facts_of("case", tensor(I), regions=branches(tensor(F, 2), tensor(F, 2), tensor(F, 3)))
    with pytest.raises(InferenceError, match="case needs at least one branch"):
        facts_of("case", tensor(I), branches=[])


def loop(b, types, cond, step):
    return {"cond": b.region(types, cond), "body": b.region(types, step)}


def test_while():
    def body(b, n, x):
        graphs = loop(
            b,
            [n.type, x.type],
            lambda b, i, x: b.compare(i, 0, direction="gt"),
            lambda b, i, x: (b.subtract(i, 1), b.multiply(x, 2.0)),
        )
        return b.while_((n, x), **graphs)

    model = Model()
    function(model, "main", [("n", tensor(I)), ("x", tensor(F, B))], body)
    for n in (0, 3):
        count, x = evaluate(model, [np.array(n), np.ones(2, np.float32)])
        assert count == 0
        assert x.tolist() == [2.0**n] * 2


def test_loops_nest():
    """sum over i < 3 of sum over j < i of j."""

    def body(b):
        zero = b.constant(0)
        types = [tensor(I)] * 2

        def outer(b, i, total):
            inner = loop(
                b, types, lambda b, j, t: b.compare(j, i, direction="lt"), lambda b, j, t: (b.add(j, 1), b.add(t, j))
            )
            return b.add(i, 1), b.while_((b.constant(0), total), **inner)[1]

        return b.while_((zero, zero), **loop(b, types, lambda b, i, t: b.compare(i, 4, direction="lt"), outer))

    model = Model()
    function(model, "main", [], body)
    assert [int(v) for v in evaluate(model, [])] == [4, 0 + 0 + 1 + 3]


def test_while_types():
    def graphs(step, cond=lambda b, x: b.constant(np.array(True)), types=(tensor(F, B),)):
        return lambda b: loop(b, types, cond, step)

    assert facts_of("while", (tensor(F, B),), regions=graphs(lambda b, x: b.negate(x))).type == tensor(F, B)
    with pytest.raises(InferenceError, match=r"state 0: body yields f32\[B,1\], its initial value has type f32\[B\]"):
        facts_of("while", (tensor(F, B),), regions=graphs(lambda b, x: b.reshape(x, dims=(B, 1))))
    with pytest.raises(InferenceError, match=r"state 0: body yields bool\[B\], its initial value has type f32\[B\]"):
        facts_of("while", (tensor(F, B),), regions=graphs(lambda b, x: b.compare(x, x, direction="eq")))
    with pytest.raises(InferenceError, match=r"cond must yield bool\[\], it yields f32\[B\]"):
        facts_of("while", (tensor(F, B),), regions=graphs(lambda b, x: x, cond=lambda b, x: x))
    with pytest.raises(InferenceError, match="cond takes 1 values, the loop has 2"):
        facts_of("while", (tensor(F, B), tensor(F)), regions=graphs(lambda b, x: x))


def test_the_error_names_the_state():
    def regions(b):
        cond = b.region([tensor(I), tensor(F, 2)], lambda b, i, x: b.constant(np.array(True)))
        body = b.region([tensor(I), tensor(F, 2)], lambda b, i, x: (i, b.reshape(x, dims=(1, 2))), ("step", "hidden"))
        return {"cond": cond, "body": body}

    with pytest.raises(
        InferenceError, match=r"state 1 \(hidden\): body yields f32\[1,2\], its initial value has type f32\[2\]"
    ):
        facts_of("while", (tensor(I), tensor(F, 2)), regions=regions)


def test_what_a_loop_hands_through_stays_known():
    def regions(b):
        types = [tensor(I, 2), tensor(I)]
        return loop(b, types, lambda b, s, i: b.compare(i, 3, direction="lt"), lambda b, s, i: (s, b.add(i, 1)))

    shape, count = facts_of("while", (shape_fact((B, 3)), Fact(tensor(I), (0,))), regions=regions)
    assert shape.ints == (B, 3)
    assert count.ints is None


# Calls


def callee(model):
    """@flatten<R, C>(x: f32[R,C]) -> (f32[R*C], the sizes)."""
    r, c = symbol("R"), symbol("C")

    def body(b, x):
        return b.reshape(x, dims=(r * c,)), b.dimensions(dims=(r, c))

    return function(model, "flatten", [("x", tensor(F, r, c))], body)


def test_call_solves_and_substitutes_dims():
    model = Model()
    callee(model)

    def body(b, x):
        flat, shape = b.call((x,), callee="flatten")
        assert flat.type == tensor(F, B * S * 4)
        assert shape.ints == (B, S * 4)
        return flat, shape

    function(model, "main", [("x", tensor(F, B, S * 4))], body)
    flat, shape = evaluate(model, [np.ones((2, 12), np.float32)])
    assert flat.shape == (24,)
    assert shape.tolist() == [2, 12]


def test_the_callers_dims_of_the_same_name_are_kept_apart():
    model = Model()
    callee(model)
    r, c = symbol("R"), symbol("C")

    def body(b, x):
        flat, shape = b.call((x,), callee="flatten")
        assert shape.ints == (c, r)
        return flat

    function(model, "main", [("x", tensor(F, c, r))], body)
    assert evaluate(model, [np.ones((2, 3), np.float32)])[0].shape == (6,)


def test_assumptions_of_the_callee_become_the_callers():
    model = Model()
    r = symbol("R")
    function(model, "halves", [("x", tensor(F, r))], lambda b, x: b.slice(x, starts=(2,), limits=(r,), strides=(1,)))
    main = function(model, "main", [("x", tensor(F, B))], lambda b, x: b.call((x,), callee="halves"))
    assert [str(a) for a in main.assumptions] == ["2 <= B"]
    with pytest.raises(InferenceError, match=r"@halves needs 2 <= R \(for slice\), which is 2 <= 1 here"):
        function(model, "other", [("x", tensor(F, 1))], lambda b, x: b.call((x,), callee="halves"))


def test_call_refuses():
    model = Model()
    callee(model)
    with pytest.raises(InferenceError, match=r"the model has no function @flaten.*flatten"):
        function(model, "a", [("x", tensor(F, 2, 3))], lambda b, x: b.call((x,), callee="flaten"))
    with pytest.raises(InferenceError, match="@flatten takes 1 values, got 2"):
        function(model, "b", [("x", tensor(F, 2, 3))], lambda b, x: b.call((x, x), callee="flatten"))
    with pytest.raises(InferenceError, match=r"@flatten takes x of type f32\[R,C\], got f32\[2\]"):
        function(model, "c", [("x", tensor(F, 2))], lambda b, x: b.call((x,), callee="flatten"))
    function(model, "square", [("x", tensor(F, N, N))], lambda b, x: x)
    with pytest.raises(InferenceError, match=r"@square takes x of type f32\[N,N\], got f32\[2,3\]: N cannot be 3"):
        function(model, "d", [("x", tensor(F, 2, 3))], lambda b, x: b.call((x,), callee="square"))


def test_unproved_equality_of_a_callees_dims_is_assumed():
    model = Model()
    function(model, "square", [("x", tensor(F, N, N))], lambda b, x: x)
    main = function(model, "main", [("x", tensor(F, B, S))], lambda b, x: b.call((x,), callee="square"))
    assert [str(a) for a in main.assumptions] in (["B == S"], ["S == B"])


# Run-time integers


def test_bind_dim_names_a_size():
    def body(b, x, n):
        b.bind_dim(n, dim="n")
        n = symbol("n")
        return b.iota(dtype=I, dims=(n,), axis=0)

    model = Model()
    function(model, "main", [("x", tensor(F, B)), ("n", tensor(I))], body)
    assert evaluate(model, [np.ones(1, np.float32), np.array(3)])[0].tolist() == [0, 1, 2]
    with pytest.raises(IrcError, match="the size n must not be negative, got -2"):
        evaluate(model, [np.ones(1, np.float32), np.array(-2)])


def test_bind_dim_refuses():
    model = Model()
    with pytest.raises(InferenceError, match="B is a dim of @main already; bind another name"):
        function(model, "main", [("x", tensor(F, B)), ("n", tensor(I))], lambda b, x, n: (b.bind_dim(n, dim="B"), x)[1])
    with pytest.raises(InferenceError, match="dim must be a name, got '2x'"):
        facts_of("bind_dim", tensor(I), dim="2x")
    with pytest.raises(InferenceError, match=r"x must be a scalar, got i64\[1\]"):
        facts_of("bind_dim", tensor(I, 1), dim="n")


def test_freeze_is_its_operand():
    assert run("freeze", np.array([3, 4])).tolist() == [3, 4]
    assert facts_of("freeze", shape_fact((B, 3))).ints == (B, 3)
    assert facts_of("freeze", TensorType(I, None)).type == TensorType(I, None)
    assert assumptions_of("freeze", tensor(I, N)) == ["N <= 64"]
    with pytest.raises(InferenceError, match="the number of elements that the host reads: 65 is more than 64"):
        facts_of("freeze", tensor(I, 65))


def test_trap_has_the_types_it_is_given():
    types = facts_of("trap", message="no", results=(tensor(F, B), tensor(I)))
    assert [f.type for f in types] == [tensor(F, B), tensor(I)]
    with pytest.raises(IrcError, match=r"^rank 3 is not supported$"):
        run("trap", message="rank 3 is not supported", results=(tensor(F, 2),))


def test_custom_call_is_not_run_by_the_reference():
    assert facts_of("custom_call", (tensor(F, B),), target="mine", results=(tensor(F, B),)).type == tensor(F, B)
    with pytest.raises(IrcError, match="the reference has no code called 'mine'; run the model on a target that has"):
        run("custom_call", [np.ones(2, np.float32)], target="mine", results=(tensor(F, 2),))


# Late nodes


LATE_RESHAPE = {
    "domain": "",
    "type": "Reshape",
    "version": 21,
    "attributes": (("allowzero", 0),),
    "results": (TensorType(F, None),),
    "graphs": [],
}


def reshape(domain, type_, version, attributes, graphs, operands, model):
    assert (domain, type_, version, attributes) == ("", "Reshape", 21, (("allowzero", 0),))
    x, shape = operands
    out = Model("late")
    dims = tuple(int(v) for v in shape.data.numpy())
    function(out, "main", [("x", x.type), ("shape", shape.type)], lambda b, x, shape: b.reshape(x, dims=dims))
    return out


def test_a_late_node_is_materialized_with_what_is_known_of_its_operands(monkeypatch):
    monkeypatch.setattr(late, "_materializers", [])
    x, shape = np.arange(6, dtype=np.float32), np.array([3, 2])
    with pytest.raises(
        IrcError, match=r"the late node ai\.onnx\.Reshape is typed by the ONNX front door, which is not loaded"
    ):
        run("onnx", [x, shape], types=[tensor(F, B), tensor(I, 2)], **LATE_RESHAPE)
    late.register_materializer(reshape)
    np.testing.assert_array_equal(
        run("onnx", [x, shape], types=[tensor(F, B), tensor(I, 2)], **LATE_RESHAPE), x.reshape(3, 2)
    )
    assert facts_of("onnx", (tensor(F, B), tensor(I, 2)), **LATE_RESHAPE).type == TensorType(F, None)


def test_a_late_node_with_graphs_gets_its_captures(monkeypatch):
    def materialize(domain, type_, version, attributes, graphs, operands, model):
        (captured,) = late.captures(graphs)
        out = Model("late")
        inputs = [("x", operands[0].type), ("captured", captured.type)]
        function(out, "main", inputs, lambda b, x, captured: b.add(x, captured))
        return out

    monkeypatch.setattr(late, "_materializers", [materialize])

    def body(b, x, y):
        graph = b.region([], lambda b: b.negate(y))
        return b.onnx(
            (x,), domain="", type="If", version=21, attributes=(), results=(TensorType(F, None),), graphs=[graph]
        )

    model = Model()
    function(model, "main", [("x", tensor(F, B)), ("y", tensor(F, B))], body)
    assert evaluate(model, [np.array([1, 2], np.float32), np.array([10, 20], np.float32)])[0].tolist() == [11, 22]


def test_traits():
    for name in ("bind_dim", "freeze", "trap", "onnx", "custom_call"):
        assert EFFECTS in get(name).traits, name
    assert LATE in get("onnx").traits
    assert LATE in get("freeze").traits


def test_inputs_are_checked():
    with pytest.raises(InputError, match="expects"):
        run("freeze", np.array([1.5]), types=[tensor(I, 1)])
