"""The verifier: for every rule models that keep it, and ways to break it that the rule (and its message) names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from irc.ir import build, dtypes, verify
from irc.ir.build import Builder
from irc.ir.clone import clone_model
from irc.ir.data import ArrayData
from irc.ir.dims import Assumption, symbol
from irc.ir.errors import IrcError, VerifyError
from irc.ir.model import Constant, Function, Graph, Location, Model, Node, Value
from irc.ir.operators import get
from irc.ir.rewrite import Rewriter
from irc.ir.types import SequenceType, TensorType, tensor

F32, I64, BOOL = dtypes.f32, dtypes.i64, dtypes.bool_
B, N, S = symbol("B"), symbol("N"), symbol("S")
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "verifier-rules.md"


# ---- models that are sound


def small() -> Model:
    """(x + y) + 1"""
    model = Model("small")
    inputs = [("x", tensor(F32, B, 4)), ("y", tensor(F32, 4))]
    build.function(model, "main", inputs, lambda b, x, y: {"out": b.add(b.add(x, y, name="h"), 1.0, name="out")})
    return model


def assuming() -> Model:
    """x + y whose dims are equal only by assumption."""
    model = Model("assuming")
    inputs = [("x", tensor(F32, B)), ("y", tensor(F32, S))]
    build.function(model, "main", inputs, lambda b, x, y: {"out": b.add(x, y)})
    return model


def branching() -> Model:
    """A branch that captures a value, and one that returns it as it is."""
    model = Model("branching")

    def body(b: Builder, flag: Value, x: Value) -> dict[str, Value]:
        h = b.add(x, x, name="h")
        then = b.region([], lambda inner: inner.add(h, 1.0, name="t"))
        return {"out": b.if_(flag, then=then, else_=b.region([], lambda inner: h))}

    build.function(model, "main", [("flag", tensor(BOOL)), ("x", tensor(F32, B))], body)
    return model


def looping() -> Model:
    """Adds x to itself while a counter is below 3."""
    model = Model("looping")

    def body(b: Builder, x: Value) -> dict[str, Value]:
        types = [tensor(I64), x.type]
        cond = b.region(types, lambda inner, i, v: inner.compare(i, 3, direction="lt"))
        step = b.region(types, lambda inner, i, v: (inner.add(i, 1), inner.add(v, x)))
        _, out = b.while_((b.constant(0, I64), x), cond=cond, body=step)
        return {"out": out}

    build.function(model, "main", [("x", tensor(F32, B))], body)
    return model


def calling() -> Model:
    """main calls @twice."""
    model = Model("calling")
    twice = build.function(model, "twice", [("v", tensor(F32, N))], lambda b, v: b.add(v, v))
    twice.public = False
    build.function(model, "main", [("x", tensor(F32, B))], lambda b, x: {"out": b.call((x,), callee="twice")})
    return model


def binding() -> Model:
    """The numbers below a number that is known only at run time."""
    model = Model("binding")

    def body(b: Builder, n: Value) -> dict[str, Value]:
        b.bind_dim(n, dim="N")
        return {"out": b.iota(dtype=F32, dims=(N,), axis=0)}

    build.function(model, "main", [("n", tensor(I64))], body)
    return model


def hosted() -> Model:
    """A host function that calls a device function and keeps its result in a sequence."""
    model = Model("hosted")
    device = build.function(model, "twice", [("v", tensor(F32, 4))], lambda b, v: b.add(v, v))
    device.public = False
    main = model.add_function(Function("main", kind="host"))
    x = main.add_input(tensor(F32, 4), "x")
    b = Builder(model, main.body)
    y = b.call((x,), callee="twice")
    main.body.set_outputs([b.SequenceConstruct((y, x))])
    main.output_names = ["out"]
    return model


def staged_late() -> Model:
    """A node that is typed at run time."""
    model = Model("late")

    def body(b: Builder, x: Value) -> dict[str, Value]:
        out = b.onnx((x,), domain="", type="Foo", version=1, attributes=(), results=(TensorType(F32, None),), graphs=())
        return {"out": out}

    build.function(model, "main", [("x", tensor(F32, B))], body)
    return model


def derived() -> Model:
    """A constant, its transpose computed by init, and a use of that."""
    model = Model("derived")
    w = model.add_constant("w", ArrayData(np.arange(200, dtype=np.float32).reshape(2, 100)))
    wt = model.add_derived("w_t", Builder(model, model.init).transpose(w, permutation=(1, 0)))
    build.function(model, "main", [("x", tensor(F32, 100, 2))], lambda b, x: {"out": b.add(x, wt)})
    return model


SOUND: dict[str, Callable[[], Model]] = {
    f.__name__: f for f in (small, assuming, branching, looping, calling, binding, hosted, staged_late, derived)
}


# ---- ways to break


def nodes(model: Model) -> list[Node]:
    return list(model.main.body.nodes)


def unlink_back(m: Model) -> None:
    nodes(m)[1]._prev = None


def wrong_count(m: Model) -> None:
    m.main.body._count += 1


def circle(m: Model) -> None:
    first, last = nodes(m)
    last._next = first


def out_of_order(m: Model) -> None:
    nodes(m)[1]._order = -5


def foreign_graph(m: Model) -> None:
    nodes(m)[0].graph = Graph()


def orphan_branch(m: Model) -> None:
    nodes(m)[1].graphs["then"][0].parent = None


def shared_branch(m: Model) -> None:
    holder = nodes(m)[1]
    holder.graphs["else_"] = holder.graphs["then"]


def orphan_body(m: Model) -> None:
    m.main.body.parent = None


def wrong_index(m: Model) -> None:
    nodes(m)[0].results[0].index = 3


def stolen_result(m: Model) -> None:
    nodes(m)[0].results[0].owner = nodes(m)[1]


def foreign_constant_owner(m: Model) -> None:
    m.constants["w"].owner = Model()


def missing_use(m: Model) -> None:
    nodes(m)[0].result._uses.clear()


def stale_use(m: Model) -> None:
    Node(get("add"), [m.main.inputs[0], m.main.inputs[1]], get("add").make_attributes({}), {}, Location())


def wrong_slot(m: Model) -> None:
    m.main.inputs[0]._uses[(nodes(m)[1], 0)] = None


def stale_output_use(m: Model) -> None:
    Graph().set_outputs([m.main.inputs[0]])


def foreign_operand(m: Model) -> None:
    Rewriter(m).set_operand(nodes(m)[0], 1, small().main.inputs[1])


def replaced_result(m: Model) -> None:
    first = nodes(m)[0]
    first.results = (Value(first.result.type, "h", first, 0),)


def foreign_constant(m: Model) -> None:
    other = Model()
    Rewriter(m).set_operand(nodes(m)[1], 1, other.inline_constant(ArrayData(np.float32(1))))


def absent_output(m: Model) -> None:
    m.main.body.set_outputs([None])  # type: ignore[list-item]  # that is what is wrong


def erased_definition(m: Model) -> None:
    first = nodes(m)[0]
    m.main.body._unlink(first)
    for i, operand in enumerate(first.operands):
        assert operand is not None
        operand._uses.pop((first, i))


def use_before(m: Model) -> None:
    first, last = nodes(m)
    m.main.body._unlink(last)
    m.main.body._insert(last, first)


def escape_from_branch(m: Model) -> None:
    holder = nodes(m)[1]
    m.main.body.set_outputs([next(holder.graphs["then"][0].nodes).result])


def other_branch(m: Model) -> None:
    holder = nodes(m)[1]
    holder.graphs["else_"][0].set_outputs([next(holder.graphs["then"][0].nodes).result])


def own_result_in_branch(m: Model) -> None:
    holder = nodes(m)[1]
    holder.graphs["else_"][0].set_outputs([holder.result])


def other_function(m: Model) -> None:
    Rewriter(m).set_operand(nodes(m)[0], 0, m.functions["twice"].inputs[0])


def shapes_that_clash(m: Model) -> None:
    m.main.inputs[1].type = tensor(F32, 5)


def branch_with_input(m: Model) -> None:
    nodes(m)[1].graphs["then"][0].add_input(tensor(F32))


def branch_of_other_type(m: Model) -> None:
    then = nodes(m)[1].graphs["then"][0]
    then.set_outputs([Builder(m, then).constant(1, I64)])


def branches_of_other_count(m: Model) -> None:
    then = nodes(m)[1].graphs["then"][0]
    then.set_outputs([*then.outputs, *then.outputs])


def condition_of_wrong_type(m: Model) -> None:
    cond = nodes(m)[0].graphs["cond"][0]
    cond.set_outputs([cond.inputs[0]])


def state_of_wrong_type(m: Model) -> None:
    step = nodes(m)[0].graphs["body"][0]
    step.set_outputs([step.outputs[0], step.outputs[0]])


def loop_input_of_wrong_type(m: Model) -> None:
    nodes(m)[0].graphs["cond"][0].inputs[1].type = tensor(F32, B, 2)


def argument_of_wrong_type(m: Model) -> None:
    m.main.inputs[0].type = tensor(I64, B)
    nodes(m)[0].results[0].type = tensor(I64, B)


def argument_missing(m: Model) -> None:
    call = nodes(m)[0]
    call._operands.clear()
    m.main.inputs[0]._uses.clear()


def wrong_dtype(m: Model) -> None:
    nodes(m)[1].result.type = tensor(dtypes.f16, B, 4)


def wrong_dim(m: Model) -> None:
    nodes(m)[1].result.type = tensor(F32, B, 5)


def swapped_dims(m: Model) -> None:
    nodes(m)[1].result.type = tensor(F32, 4, B)


def unrelated_dim(m: Model) -> None:
    m.main.dims.append("S")
    m.main.add_input(tensor(F32, S), "s")
    nodes(m)[1].result.type = tensor(F32, S, 4)


def lost_rank(m: Model) -> None:
    nodes(m)[1].result.type = TensorType(F32, None)


def another_result(m: Model) -> None:
    last = nodes(m)[1]
    last.results = (*last.results, Value(tensor(F32), None, last, 1))


def wrong_callee_result(m: Model) -> None:
    nodes(m)[0].results[0].type = tensor(F32, 2 * B)


def wrong_ints(m: Model) -> None:
    b = Builder(m, m.main.body)
    b.dimensions(dims=(B, 4)).ints = (B, 5)


def attributes_of_another(m: Model) -> None:
    nodes(m)[0].attributes = get("transpose").make_attributes({"permutation": (0,)})


def attribute_of_wrong_kind(m: Model) -> None:
    node = nodes(m)[1]
    node.attributes = dataclasses.replace(node.attributes, axis="0")  # type: ignore[type-var]  # a dataclass of the operator


def attribute_not_canonical(m: Model) -> None:
    node = nodes(m)[1]
    node.attributes = dataclasses.replace(node.attributes, dims=[N])  # type: ignore[type-var]  # a dataclass of the operator


def operand_missing(m: Model) -> None:
    node = nodes(m)[0]
    node._operands[1] = None
    m.main.inputs[1]._uses.clear()


def operand_too_many(m: Model) -> None:
    node = nodes(m)[0]
    node._operands.append(m.main.inputs[0])
    m.main.inputs[0]._uses[(node, 2)] = None


def operand_of_wrong_kind(m: Model) -> None:
    m.main.inputs[0].type = tensor(dtypes.string, B, 4)


def sequence_operand(m: Model) -> None:
    m.main.inputs[0].type = SequenceType(tensor(F32))


def trailing_absent(m: Model) -> None:
    b = Builder(m, m.main.body)
    node = b.Clip(m.main.inputs[0]).node
    node._operands.append(None)


def graph_missing(m: Model) -> None:
    holder = nodes(m)[1]
    then = holder.graphs.pop("then")[0]
    Rewriter(m)._erase(next(then.nodes))


def graph_too_many(m: Model) -> None:
    holder = nodes(m)[1]
    extra = Graph(holder)
    extra.set_outputs(holder.graphs["then"][0].outputs[:0])
    holder.graphs["then"] = (*holder.graphs["then"], extra)


def graph_of_no_name(m: Model) -> None:
    holder = nodes(m)[1]
    holder.graphs["otherwise"] = (Graph(holder),)


def negative_size(m: Model) -> None:
    m.main.inputs[1].type = tensor(F32, -4)


def no_size(m: Model) -> None:
    m.main.inputs[1].type = tensor(F32, "4")  # type: ignore[arg-type]  # that is what is wrong


def ints_of_floats(m: Model) -> None:
    m.main.inputs[1].ints = (1, 2, 3, 4)


def ints_too_few(m: Model) -> None:
    m.main.add_input(tensor(I64, 3), "i").ints = (1, 2)


def forgotten_assumption(m: Model) -> None:
    m.main.assumptions.clear()


def other_table_name(m: Model) -> None:
    m.functions["other"] = m.functions.pop("main")


def unknown_kind(m: Model) -> None:
    m.main.kind = "gpu"  # type: ignore[assignment]  # that is what is wrong


def marks_missing(m: Model) -> None:
    m.main.input_attributes.pop()


def no_callee(m: Model) -> None:
    m.functions.pop("twice")


def calls_itself(m: Model) -> None:
    node = nodes(m)[0]
    node.attributes = node.op.make_attributes({"callee": "main"})


def call_in_a_circle(m: Model) -> None:
    twice = m.functions["twice"]
    Builder(m, twice.body).call((twice.inputs[0],), callee="main")


def device_calls_host(m: Model) -> None:
    m.functions["twice"].kind = "host"


def host_work_in_init(m: Model) -> None:
    Builder(m, m.init).SequenceEmpty(element=tensor(F32))


def arithmetic_on_the_host(m: Model) -> None:
    m.main.kind = "host"


def late_in_init(m: Model) -> None:
    b = Builder(m, m.init)
    b.onnx((), domain="", type="Foo", version=1, attributes=(), results=(TensorType(F32, None),), graphs=())


def dim_twice(m: Model) -> None:
    m.main.dims.append("B")


def dim_no_name(m: Model) -> None:
    m.main.dims.append("2x")


def dim_without_source(m: Model) -> None:
    m.main.dims.append("Q")


def undeclared_dim(m: Model) -> None:
    m.main.dims.clear()


def undeclared_in_branch(m: Model) -> None:
    then = nodes(m)[1].graphs["then"][0]
    Builder(m, then).iota(dtype=F32, dims=(N,), axis=0)


def mention_before_binding(m: Model) -> None:
    first, last = nodes(m)
    m.main.body._unlink(last)
    m.main.body._insert(last, first)


def mention_in_attribute(m: Model) -> None:
    b = Builder(m, m.main.body)
    b.dimensions(dims=(S, 4))


def dim_in_init(m: Model) -> None:
    Builder(m, m.init).iota(dtype=F32, dims=(B,), axis=0)


def bound_twice(m: Model) -> None:
    Builder(m, m.main.body).bind_dim(m.main.inputs[0], dim="N")


def binds_declared(m: Model) -> None:
    m.main.dims.append("N")
    m.main.add_input(tensor(F32, N), "other")


def binds_no_name(m: Model) -> None:
    node = nodes(m)[0]
    node.attributes = node.op.make_attributes({"dim": "a b"})


def output_name_missing(m: Model) -> None:
    m.main.output_names.clear()


def output_names_equal(m: Model) -> None:
    m.main.body.set_outputs([*m.main.outputs, m.main.inputs[0]])
    m.main.output_names.append("out")


def output_name_empty(m: Model) -> None:
    m.main.output_names[0] = ""


def input_names_equal(m: Model) -> None:
    m.main.inputs[1].name = "x"


def constant_of_other_name(m: Model) -> None:
    m.constants["w"].name = "v"


def constant_of_other_type(m: Model) -> None:
    m.constants["w"].type = tensor(F32, 2, 101)


def large_inline(m: Model) -> None:
    data = ArrayData(np.zeros(100, np.float32))
    m._inline[("k",)] = Constant(m, None, data.type, data)


def nothing_derives_it(m: Model) -> None:
    m.derived.clear()
    m.init.set_outputs([])


def derived_of_other_type(m: Model) -> None:
    m.constants["w_t"].type = tensor(F32, 100, 3)


def derived_with_contents(m: Model) -> None:
    m.constants["w_t"]._data = ArrayData(np.zeros((100, 2), np.float32))


def init_output_missing(m: Model) -> None:
    m.init.set_outputs([])


def init_with_input(m: Model) -> None:
    m.init.add_input(tensor(F32), "x")


def init_with_effects(m: Model) -> None:
    Builder(m, m.init).bind_dim(m.inline_constant(ArrayData(np.int64(3))), dim="Z")


def init_uses_derived(m: Model) -> None:
    Builder(m, m.init).transpose(m.constants["w_t"], permutation=(1, 0))


def init_returns_constant(m: Model) -> None:
    m.init.set_outputs([m.constants["w"]])
    m.constants["w_t"].type = m.constants["w"].type


def composite_left(m: Model) -> None:
    Builder(m, m.main.body).Relu(m.main.inputs[0])


def assumed_unknown_dim(m: Model) -> None:
    m.main.assumptions[Assumption("==", B, symbol("Q"), "n")] = None


# rule -> (sound model, how to break it, what the message says)
CASES: dict[str, list[tuple[str, Callable[[Model], None], str]]] = {
    "V001": [
        ("small", unlink_back, "backward link"),
        ("small", wrong_count, "counts 3"),
        ("small", circle, "circle"),
        ("small", out_of_order, "order number"),
        ("small", foreign_graph, "belongs to another graph"),
    ],
    "V002": [
        ("branching", orphan_branch, "does not belong to it"),
        ("branching", shared_branch, "second owner"),
        ("small", orphan_body, "does not belong to it"),
    ],
    "V003": [
        ("small", wrong_index, "says that it is result 3"),
        ("small", stolen_result, "says that it is"),
        ("derived", foreign_constant_owner, "#w does not belong"),
    ],
    "V004": [
        ("small", missing_use, "missing in the uses of %h"),
        ("small", stale_use, "in no graph of the model"),
        ("small", wrong_slot, "uses another"),
        ("small", stale_output_use, "graph that is not in the model"),
    ],
    "V005": [
        ("small", foreign_operand, "defined in another model"),
        ("small", replaced_result, "no longer what its owner defines"),
        ("small", foreign_constant, "not among the constants"),
        ("small", absent_output, "is absent"),
        ("small", erased_definition, "in no graph"),
    ],
    "V006": [
        ("small", use_before, "only after this use"),
        ("branching", escape_from_branch, "does not enclose"),
        ("branching", other_branch, "does not enclose"),
        ("branching", own_result_in_branch, "only after this use"),
        ("calling", other_function, "belongs to @twice"),
    ],
    "V007": [
        ("small", shapes_that_clash, "do not broadcast"),
        ("branching", branch_with_input, "input"),
        ("branching", branch_of_other_type, "i64"),
        ("branching", branches_of_other_count, "2"),
        ("looping", condition_of_wrong_type, "bool"),
        ("looping", state_of_wrong_type, "i64"),
        ("looping", loop_input_of_wrong_type, ""),
        ("calling", argument_of_wrong_type, "i64"),
        ("calling", argument_missing, "1"),
    ],
    "V008": [
        ("small", wrong_dtype, "f16[B,4]; inference gives f32[B,4]"),
        ("small", wrong_dim, "f32[B,5]"),
        ("small", swapped_dims, "f32[4,B]"),
        ("small", unrelated_dim, "f32[S,4]"),
        ("small", lost_rank, "f32[*]"),
        ("small", another_result, "it has 2 results; add gives 1"),
        ("calling", wrong_callee_result, "f32[2*B]"),
        ("small", wrong_ints, "[B, 5]; inference gives [B, 4]"),
    ],
    "V009": [
        ("small", attributes_of_another, "class transpose_attributes"),
        ("binding", attribute_of_wrong_kind, "axis must be int"),
        ("binding", attribute_not_canonical, "canonical form"),
    ],
    "V010": [
        ("small", operand_missing, "is missing"),
        ("small", operand_too_many, "at most 2 operands"),
        ("small", operand_of_wrong_kind, "string[B,4]"),
        ("small", sequence_operand, "must be a tensor"),
        ("small", trailing_absent, "trailing absent"),
    ],
    "V011": [
        ("branching", graph_missing, "needs the graph then"),
        ("branching", graph_too_many, "one graph then, got 2"),
        ("branching", graph_of_no_name, "no graph called 'otherwise'"),
    ],
    "V012": [
        ("small", negative_size, "-4 in its type is negative"),
        ("small", no_size, "neither an integer nor a symbolic size"),
        ("small", ints_of_floats, "only an integer or bool tensor"),
        ("small", ints_too_few, "2 known integers for 3 elements"),
    ],
    "V013": [("assuming", forgotten_assumption, "which @main does not assume")],
    "V014": [
        ("small", other_table_name, "does not hold it under the name 'main'"),
        ("small", unknown_kind, "'gpu'"),
        ("small", marks_missing, "2 inputs, but marks for 1"),
    ],
    "V015": [("calling", no_callee, "no function is called @twice; the model has @main")],
    "V016": [
        ("calling", calls_itself, "@main -> @main"),
        ("calling", call_in_a_circle, "@twice -> @main -> @twice"),
    ],
    "V017": [
        ("calling", device_calls_host, "device function @main calls @twice"),
        ("derived", host_work_in_init, "stands in init"),
    ],
    "V018": [("small", arithmetic_on_the_host, "add cannot run in the host function @main")],
    "V019": [("small", late_in_init, "typed only at run time")],
    "V020": [
        ("small", dim_twice, "B is declared twice"),
        ("small", dim_no_name, "'2x' is not an identifier"),
        ("small", dim_without_source, "Q is declared but occurs in no input"),
    ],
    "V021": [
        ("small", undeclared_dim, "input %x mentions the dim B; @main declares no such dim"),
        ("branching", undeclared_in_branch, "mentions the dim N"),
        ("binding", mention_before_binding, "binds only later"),
        ("small", mention_in_attribute, "mentions the dim S"),
        ("small", dim_in_init, "init has no dims"),
    ],
    "V022": [
        ("binding", bound_twice, "N is bound twice"),
        ("binding", binds_declared, "which @main declares"),
        ("binding", binds_no_name, "'a b' is not an identifier"),
    ],
    "V023": [
        ("small", output_name_missing, "1 outputs, but 0 output names"),
        ("small", output_names_equal, "2 outputs are called 'out'"),
        ("small", output_name_empty, "empty name"),
    ],
    "V024": [("small", input_names_equal, "2 inputs are called 'x'")],
    "V025": [
        ("derived", constant_of_other_name, "under the name 'w' is called 'v'"),
        ("derived", constant_of_other_type, "#w has type f32[2,101], its contents are f32[2,100]"),
        ("small", large_inline, "is kept as an inline constant"),
    ],
    "V026": [
        ("derived", nothing_derives_it, "#w_t has no contents"),
        ("derived", derived_of_other_type, "init gives f32[100,2]"),
        ("derived", derived_with_contents, "contents of its own"),
        ("derived", init_output_missing, "0 outputs for 1 derived"),
    ],
    "V027": [
        ("derived", init_with_input, "it takes none"),
        ("derived", init_with_effects, "has effects"),
        ("derived", init_uses_derived, "uses the derived constant #w_t"),
        ("derived", init_returns_constant, "returns the constant #w"),
    ],
    "V028": [("small", composite_left, "Relu is a composite operator")],
    "V029": [("small", assumed_unknown_dim, "mentions Q")],
}
LEVEL_OF = {"V028": "core"}
ALL_CASES = [
    pytest.param(rule, model, change, message, id=f"{rule}-{change.__name__}")
    for rule, cases in CASES.items()
    for model, change, message in cases
]


@pytest.mark.parametrize("name", SOUND)
def test_sound_models_have_no_findings(name: str):
    model = SOUND[name]()
    assert [str(d) for d in verify.verify(model)] == []
    assert [str(d) for d in verify.verify(clone_model(model), level="canonical")] == []
    verify.check(model)


@pytest.mark.parametrize(("rule", "name", "change", "message"), ALL_CASES)
def test_a_breach_is_found(rule: str, name: str, change: Callable[[Model], None], message: str):
    model = SOUND[name]()
    level = LEVEL_OF.get(rule)
    assert rule not in {d.rule for d in verify.verify(model, level=level)}, "the model keeps the rule before the change"
    change(model)
    found = verify.verify(model, level=level)
    assert any(message in d.message for d in found if d.rule == rule), [str(d) for d in found]


def test_every_rule_is_kept_by_a_sound_model_and_broken_by_a_case():
    assert set(CASES) == set(verify.RULES), "every rule has a failing case, and every case a rule"
    for rule, cases in CASES.items():
        assert {name for name, _, _ in cases} <= set(SOUND), rule


def test_every_rule_has_a_text():
    assert [r.id for r in verify.RULES.values() if not r.text.endswith(".") or len(r.text) < 30] == []


@pytest.mark.parametrize(
    ("name", "level", "expected"),
    [
        ("staged_late", None, set()),
        ("staged_late", "canonical", set()),
        ("staged_late", "legal", {"V019"}),
        ("hosted", "legal", set()),
        ("small", "core", set()),
    ],
)
def test_levels(name: str, level: str | None, expected: set[str]):
    assert {d.rule for d in verify.verify(SOUND[name](), level=level)} == expected


def test_host_operators_are_staged_at_the_level_legal():
    model = small()
    b = Builder(model, model.main.body)
    b.SequenceEmpty(element=tensor(F32))
    assert verify.verify(model, level="imported") == []
    assert [d.rule for d in verify.verify(model, level="legal")] == ["V017"]


def test_an_unknown_level_is_an_error():
    with pytest.raises(IrcError, match="no level is called 'leagl'; did you mean 'legal'"):
        verify.verify(small(), level="leagl")


def test_check_raises_all_findings_with_their_places():
    model = small()
    wrong_dtype(model)
    output_name_empty(model)
    with pytest.raises(VerifyError) as caught:
        verify.check(model)
    assert {d.rule for d in caught.value.diagnostics} == {"V008", "V023"}
    text = str(caught.value)
    assert "@main: add 'out': error[V008]: result 0 has type f16[B,4]; inference gives f32[B,4]" in text
    assert "@main: error[V023]" in text


def test_a_note_says_what_made_the_node():
    model = small()
    rewriter = Rewriter(model, "widen")
    last = nodes(model)[1]
    new = rewriter.before(last).add(last.operands[0], 2.0)
    rewriter.replace(last, new)
    new.type = tensor(F32, B, 9)
    (finding,) = verify.verify(model)
    assert finding.notes == ("made by widen",)


def test_equal_spellings_and_assumed_equalities_are_accepted():
    model = assuming()
    out = nodes(model)[0].result
    out.type = tensor(F32, B)  # bcast(B, S) in truth
    assert [d.rule for d in verify.verify(model)] == ["V008"]
    bcast = nodes(assuming())[0].result.dims[0]
    model.main.assumptions[Assumption("==", bcast, B, "n")] = None
    assert verify.verify(model) == []


def test_dims_that_a_callee_binds_stay_its_own():
    model = Model("own")

    def count(b: Builder, n: Value, x: Value) -> Value:
        b.bind_dim(n, dim="N")
        return b.reduce((b.add(b.iota(dtype=F32, dims=(N,), axis=0), x),), axes=(0,), kind="sum")

    inputs = [("n", tensor(I64)), ("x", tensor(F32, B))]
    callee = build.function(model, "count", inputs, count)
    build.function(model, "main", inputs, lambda b, n, x: {"out": b.call((n, x), callee="count")})
    assert [str(a) for a in callee.assumptions] == ["bcast(N, B)"]
    assert verify.verify(model) == []


def test_broken_lists_end_the_verification():
    model = small()
    wrong_count(model)
    output_name_empty(model)
    assert {d.rule for d in verify.verify(model)} == {"V001"}


def test_an_infer_rule_that_crashes_is_a_finding(monkeypatch: pytest.MonkeyPatch):
    model = small()

    def crash(*_: object) -> None:
        raise IndexError("tuple index out of range")

    monkeypatch.setattr(get("add"), "infer", crash)
    found = verify.verify(model)
    assert {d.rule for d in found} == {"V007"}
    assert "IndexError: tuple index out of range); a defect of irc" in found[0].message


def test_ten_thousand_nodes_take_a_moment():
    model = Model("long")

    def body(b: Builder, x: Value) -> Value:
        for _ in range(10_000):
            x = b.add(x, 1.0)
        return x

    build.function(model, "main", [("x", tensor(F32, B))], body)
    assert verify.verify(model) == []


def test_deep_nesting_is_verified():
    model = Model("deep")

    def nest(b: Builder, flag: Value, x: Value, depth: int) -> Value:
        inner = b.region([], lambda c: x)
        for _ in range(depth):
            outer = Graph()
            c = Builder(model, outer)
            outer.set_outputs([c.if_(flag, then=inner, else_=b.region([], lambda d: x))])
            inner = outer
        return b.if_(flag, then=inner, else_=b.region([], lambda c: x))

    inputs = [("flag", tensor(BOOL)), ("x", tensor(F32, B))]
    build.function(model, "main", inputs, lambda b, flag, x: {"out": nest(b, flag, x, 1500)})
    assert verify.verify(model) == []


def test_the_documentation_is_the_table():
    assert DOCUMENT.read_text() == verify.documentation(), (
        "write irc.ir.verify.documentation() to docs/verifier-rules.md"
    )
