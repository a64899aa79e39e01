"""Sub-graphs, functions and what is typed only at run time: If, Loop, Scan, model-local functions, schema functions."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc
from irc.frontends.onnx import import_onnx
from irc.ir import verify
from irc.ir.errors import FormatError, UnsupportedError
from irc.ir.reference import evaluate
from irc.ir.text import parse_model, print_model

F, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name, type_=F, dims=None):
    return helper.make_tensor_value_info(name, type_, dims)


def graph(nodes, inputs, outputs, initializers=()):
    return helper.make_graph(
        [helper.make_node(*n[:3], **(n[3] if len(n) > 3 else {})) for n in nodes], "g", inputs, outputs,
        [numpy_helper.from_array(np.asarray(a), n) for n, a in initializers],
    )  # fmt: skip


def model(main, opset=16, functions=(), **domains):
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in domains.items())]
    return helper.make_model(main, opset_imports=opsets, functions=functions, ir_version=10)


def checked(proto):
    out = import_onnx(proto)
    assert verify.verify(out) == []
    return out


def branch(nodes, out="b", initializers=()):
    return graph(nodes, [], [value(out)], initializers)


def conditional(then, else_, initializers=(), x=("n",), predicate=None):
    nodes = [("If", ["p"], ["y"], {"then_branch": then, "else_branch": else_})]
    inputs = [value("x", F, list(x))] if predicate is not None else [value("p", BOOL, []), value("x", F, list(x))]
    extra = [] if predicate is None else [("p", predicate)]
    return model(graph(nodes, inputs, [value("y")], [*initializers, *extra]))


def test_if_captures_outer_values():
    proto = conditional(
        branch([("Neg", ["x"], ["b"])]), branch([("Add", ["x", "w"], ["b"])], initializers=[("w", np.float32(3))])
    )
    imported = checked(proto)
    (node,) = imported.main.body.nodes
    assert node.op.name == "if"
    assert node.graphs["then"][0].captures() == (imported.main.inputs[1],)
    x = np.array([1, 2], np.float32)
    assert evaluate(imported, [np.array(True), x])[0].tolist() == [-1, -2]
    assert evaluate(imported, [np.array(False), x])[0].tolist() == [4, 5]


def test_a_name_of_the_outer_graph_may_be_shadowed():
    then = branch([("Neg", ["x"], ["h"]), ("Abs", ["h"], ["b"])])
    else_ = branch([("Relu", ["h"], ["b"])])
    nodes = [
        ("Add", ["x", "x"], ["h"]),
        ("If", ["p"], ["y"], {"then_branch": then, "else_branch": else_}),
    ]
    imported = checked(model(graph(nodes, [value("p", BOOL, []), value("x", F, [1])], [value("y")])))
    x = np.array([3], np.float32)
    assert evaluate(imported, [np.array(True), x])[0].tolist() == [3]
    assert evaluate(imported, [np.array(False), x])[0].tolist() == [6]


@pytest.mark.parametrize("taken, wanted", [(True, ["reshape"]), (False, ["negate"])])
def test_a_known_condition_takes_its_branch(taken, wanted):
    squeeze = branch([("Squeeze", ["x", "axis"], ["b"])], initializers=[("axis", np.array([1]))])
    proto = conditional(squeeze, branch([("Neg", ["x"], ["b"])]), x=("n", 1), predicate=np.array(taken))
    imported = checked(proto)
    assert [n.op.name for n in imported.main.body.nodes] == wanted


def test_a_condition_on_known_sizes_is_known():
    squeeze = branch([("Squeeze", ["x", "one"], ["b"])])
    nodes = [
        ("Shape", ["x"], ["s"]), ("Gather", ["s", "one"], ["d"]), ("Equal", ["d", "one"], ["p"]),
        ("If", ["p"], ["y"], {"then_branch": squeeze, "else_branch": branch([("Neg", ["x"], ["b"])])}),
    ]  # fmt: skip
    proto = model(graph(nodes, [value("x", F, ["n", 1])], [value("y")], [("one", np.array([1]))]))
    imported = checked(proto)
    assert [n.op.name for n in imported.main.body.nodes] == ["reshape"]
    assert str(imported.main.outputs[0].type) == "f32[n]"


def test_branches_of_different_rank_are_typed_at_run_time():
    squeeze = branch([("Squeeze", ["x", "axis"], ["b"])], initializers=[("axis", np.array([1]))])
    imported = checked(conditional(squeeze, branch([("Neg", ["x"], ["b"])]), x=("n", 1)))
    assert [n.op.name for n in imported.main.body.nodes] == ["freeze", "onnx"]
    x = np.ones((3, 1), np.float32)
    assert evaluate(imported, [np.array(True), x])[0].shape == (3,)
    assert evaluate(imported, [np.array(False), x])[0].shape == (3, 1)


def loop(nodes, carried, scans=(), trip=None, condition=None, initializers=(), inputs=()):
    """A Loop whose body has inputs i, c, then carried names; nodes define c_out, <name>_out and the scanned values."""
    body = graph(
        nodes, [value("i", I64, []), value("c", BOOL, []), *(value(n) for n in carried)],
        [value("c_out", BOOL), *(value(f"{n}_out") for n in carried), *(value(s) for s in scans)], initializers,
    )  # fmt: skip
    results = [*(f"{n}_end" for n in carried), *(f"{s}_all" for s in scans)]
    given = [*([("M", trip)] if trip is not None else []), *([("C", condition)] if condition is not None else [])]
    names = ["M" if trip is not None else "", "C" if condition is not None else "", *(f"{n}_0" for n in carried)]
    main = graph([("Loop", names, results, {"body": body})], list(inputs), [value(r) for r in results], given)
    return model(main)


def test_loop_with_a_trip_count_and_scanned_results():
    nodes = [("Identity", ["c"], ["c_out"]), ("Add", ["s", "s"], ["s_out"]), ("Neg", ["s"], ["t"])]
    imported = checked(loop(nodes, ["s"], ["t"], trip=np.array(3), inputs=[value("s_0", F, ["n"])]))
    assert "while" in [n.op.name for n in imported.main.body.nodes]
    assert [str(v.type) for v in imported.main.outputs] == ["f32[n]", "f32[3,n]"]
    last, rows = evaluate(imported, [np.array([1, 2], np.float32)])
    assert last.tolist() == [8, 16]
    assert rows.tolist() == [[-1, -2], [-2, -4], [-4, -8]]


def test_loop_until_a_condition():
    nodes = [
        ("Add", ["s", "s"], ["s_out"]),
        ("ReduceMax", ["s_out"], ["m"], {"keepdims": 0}),
        ("Less", ["m", "k"], ["c_out"]),
    ]
    proto = loop(
        nodes, ["s"], condition=np.array(True), initializers=[("k", np.float32(50))], inputs=[value("s_0", F, ["n"])]
    )
    imported = checked(proto)
    assert [n.op.name for n in imported.main.body.nodes] == ["while"]
    assert evaluate(imported, [np.array([1, 3], np.float32)])[0].tolist() == [32, 96]


def test_a_loop_that_never_starts():
    nodes = [("Identity", ["c"], ["c_out"]), ("Neg", ["s"], ["s_out"]), ("Abs", ["s"], ["t"])]
    imported = checked(loop(nodes, ["s"], ["t"], trip=np.array(0), inputs=[value("s_0", F, [2])]))
    last, rows = evaluate(imported, [np.array([1, 2], np.float32)])
    assert last.tolist() == [1, 2]
    assert rows.shape == (0, 2)


def test_a_short_loop_that_grows_a_value_is_unrolled():
    nodes = [("Identity", ["c"], ["c_out"]), ("Concat", ["s", "s"], ["s_out"], {"axis": 0})]
    imported = checked(loop(nodes, ["s"], trip=np.array(3), inputs=[value("s_0", F, ["n"])]))
    assert [n.op.name for n in imported.main.body.nodes] == ["concatenate"] * 3
    assert str(imported.main.outputs[0].type) == "f32[8*n]"


def test_a_loop_that_cannot_be_typed_says_why():
    nodes = [("Identity", ["c"], ["c_out"]), ("Cast", ["s"], ["s_out"], {"to": BOOL})]
    proto = loop(nodes, ["s"], inputs=[value("s_0", F, ["n"])])
    with pytest.raises(UnsupportedError, match=r"a carried value changes its type from f32\[n\] to bool\[n\]"):
        import_onnx(proto)


def test_scan_forwards_and_backwards(run_ort):
    body = graph(
        [("Add", ["s", "e"], ["s_out"]), ("Identity", ["s_out"], ["t"])],
        [value("s", F, [2]), value("e", F, [2])], [value("s_out", F, [2]), value("t", F, [2])],
    )  # fmt: skip
    attributes = {
        "body": body, "num_scan_inputs": 1, "scan_input_axes": [1], "scan_input_directions": [1],
        "scan_output_axes": [1], "scan_output_directions": [1],
    }  # fmt: skip
    main = graph(
        [("Scan", ["s_0", "xs"], ["last", "ts"], attributes)], [value("s_0", F, [2]), value("xs", F, [2, "n"])],
        [value("last"), value("ts")],
    )  # fmt: skip
    imported = checked(model(main))
    inputs = [np.array([1, 2], np.float32), np.arange(8, dtype=np.float32).reshape(2, 4)]
    last, rows = evaluate(imported, inputs)
    assert last.tolist() == [7, 24]
    assert rows.tolist() == [[7, 7, 6, 4], [24, 20, 15, 9]]
    assert [str(v.type) for v in imported.main.outputs] == ["f32[2]", "f32[2,n]"]


def function(name, inputs, outputs, nodes, attributes=(), defaults=(), domain="mine"):
    return helper.make_function(
        domain, name, inputs, outputs, [helper.make_node(*n[:3], **(n[3] if len(n) > 3 else {})) for n in nodes],
        [helper.make_opsetid("", 16), helper.make_opsetid("mine", 1)], attributes=list(attributes),
        attribute_protos=[helper.make_attribute(k, v) for k, v in defaults],
    )  # fmt: skip


def referring(op, inputs, outputs, name, target, kind):
    node = helper.make_node(op, inputs, outputs)
    node.attribute.add(name=name, ref_attr_name=target, type=kind)
    return node


def test_model_local_functions_are_written_in_place():
    scaled = function("Leaky", ["v", "gone"], ["r"], [], ["slope"], [("unused", 3)])
    scaled.node.append(referring("LeakyRelu", ["v"], ["r"], "alpha", "slope", onnx.AttributeProto.FLOAT))
    outer = function("Twice", ["v"], ["r"], [("Leaky", ["v"], ["h"], {"domain": "mine", "slope": 0.5})])
    outer.node.append(helper.make_node("Leaky", ["h"], ["r"], domain="mine", slope=0.25))
    main = graph([("Twice", ["x"], ["y"], {"domain": "mine", "name": "call"})], [value("x", F, ["n"])], [value("y")])
    imported = checked(model(main, functions=[scaled, outer], mine=1))
    nodes = list(imported.main.body.nodes)
    assert [(n.op.name, n.keywords["alpha"]) for n in nodes] == [("LeakyRelu", 0.5), ("LeakyRelu", 0.25)]
    assert all(n.location.source == ("call",) for n in nodes)
    assert evaluate(imported, [np.array([-8, 8], np.float32)])[0].tolist() == [-1, 8]


def test_functions_that_call_themselves_are_refused():
    again = function("Again", ["v"], ["r"], [("Again", ["v"], ["r"], {"domain": "mine"})])
    main = graph([("Again", ["x"], ["y"], {"domain": "mine"})], [value("x", F, [1])], [value("y")])
    with pytest.raises(FormatError, match="'Again' calls itself"):
        import_onnx(model(main, functions=[again], mine=1))


def test_a_function_sees_only_its_own_names():
    reads = function("Reads", ["v"], ["r"], [("Add", ["v", "x"], ["r"])])
    main = graph([("Reads", ["x"], ["y"], {"domain": "mine"})], [value("x", F, [1])], [value("y")])
    with pytest.raises(FormatError, match="reads 'x', which nothing defines"):
        import_onnx(model(main, functions=[reads], mine=1))


def test_operators_without_a_handler_use_the_body_that_onnx_gives(one_node, run_ort):
    proto = one_node("HannWindow", [np.array(8)], 17)
    imported = checked(proto)
    assert len(imported.main.body) > 3
    np.testing.assert_allclose(evaluate(imported, [])[0], run_ort(proto, [])[0], rtol=1e-6, atol=1e-7)


def test_bodies_that_depend_on_types(one_node):
    scores = (F, ["n", 5])
    imported = checked(one_node("SoftmaxCrossEntropyLoss", [scores, (I64, ["n"])], 13, reduction="none"))
    x = np.log(np.array([[1, 1, 2, 4, 8]], np.float32) / 16)
    np.testing.assert_allclose(evaluate(imported, [x, np.array([4])])[0], [np.log(2)], rtol=1e-6)


def test_late_nodes_survive_the_text_form():
    from irc.ir.text import parse_model, print_model

    squeeze = branch([("Squeeze", ["x", "axis"], ["b"])], initializers=[("axis", np.array([1]))])
    imported = checked(conditional(squeeze, branch([("Neg", ["x"], ["b"])]), x=("n", 1)))
    text = print_model(imported, inline_weights=True)
    again = parse_model(text)
    assert print_model(again, inline_weights=True) == text
    assert evaluate(again, [np.array(True), np.ones((3, 1), np.float32)])[0].shape == (3,)


def test_a_branch_that_cannot_be_typed_becomes_a_trap():
    squeeze = branch([("Squeeze", ["x", "axis"], ["b"])], initializers=[("axis", np.array([1]))])
    flatten = branch([("Reshape", ["x", "flat"], ["b"])], initializers=[("flat", np.array([-1]))])
    imported = checked(conditional(squeeze, flatten, x=("n", 3)))
    (node,) = imported.main.body.nodes
    assert [n.op.name for n in node.graphs["then"][0].nodes] == ["trap"]
    assert evaluate(imported, [np.array(False), np.zeros((2, 3), np.float32)])[0].shape == (6,)


def test_an_if_of_which_no_branch_can_be_typed_is_invalid():
    squeeze = branch([("Squeeze", ["x", "axis"], ["b"])], initializers=[("axis", np.array([1]))])
    with pytest.raises(FormatError, match="only axes of size 1"):
        import_onnx(conditional(squeeze, squeeze, x=("n", 3)))

LOOPS_ON_HOST = {
    "grows": ("float[K] y", """
        more = Concat <axis = 0> (y, one)
        go = Identity (c)
        s = ReduceSum <keepdims = 0> (more)
    """, lambda x, n: (np.concatenate([x, np.ones(n)]), np.array([x.sum() + i + 1 for i in range(n)]))),
    "halves": ("float[K] y", """
        half = Constant <value_ints = [2]> ()
        size = Shape (y)
        kept = Div (size, half)
        zero = Constant <value_ints = [0]> ()
        more = Slice (y, zero, kept)
        go = Identity (c)
        s = ReduceMax <keepdims = 0> (y)
    """, lambda x, n: (x[: len(x) >> n], np.array([x[: len(x) >> i].max() for i in range(n)]))),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS_ON_HOST)
@pytest.mark.parametrize("target", ["reference", "xla", "mlx{compile=off}", "onnx"])
@pytest.mark.parametrize("trips", [1, 3])
def test_a_state_that_changes_its_shape_is_repeated_by_the_host(name, target, trips):
    state, body, formula = LOOPS_ON_HOST[name]
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21]>
    agraph (int64 n, float[K] x) => (float[M] out, float[R] sums) <float[1] one = {{1}}> {{
        on = Constant <value = bool {{1}}> ()
        out, sums = Loop (n, on, x) <
            body = step (int64 i, bool c, {state}) => (bool go, float[M] more, float s) {{{body}}}>
    }}""")
    imported = irc.import_onnx(model)
    assert verify.verify(imported) == []
    assert print_model(parse_model(print_model(imported))) == print_model(imported)
    x = np.arange(8, dtype=np.float32)
    out, sums = irc.compile(imported, target=target)(np.array(trips, np.int64), x)
    want, rows = formula(x, trips)
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(sums, rows.astype(np.float32))
