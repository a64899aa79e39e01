"""Models that break ONNX's rules: each is refused with the node by name, or is one that other importers take too.

Files, tensors and names defined twice are in test_onnx_files.py, single operators in test_onnx_structure.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper

import irc
from irc.frontends.onnx import check_onnx, import_onnx
from irc.ir.errors import FormatError, IrcError, UnsupportedError

F, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = ("x", F, [2])
FLAG = ("p", BOOL, [])
TRIPS = ("k", I64, [])


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Any] = (X,),
    outputs: Sequence[Any] = (("y", F, None),),
    **initializers: np.ndarray,
) -> onnx.GraphProto:
    return helper.make_graph(
        list(nodes), "g", [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(*o) for o in outputs],
        [numpy_helper.from_array(v, n) for n, v in initializers.items()],
    )  # fmt: skip


def model(nodes: Sequence[onnx.NodeProto], *args: Any, opset: int = 13, **kwargs: Any) -> onnx.ModelProto:
    return helper.make_model(
        graph(nodes, *args, **kwargs), opset_imports=[helper.make_opsetid("", opset)], ir_version=8
    )


def node(op: str, inputs: str, outputs: str, name: str = "culprit", **attributes: Any) -> onnx.NodeProto:
    """Operands and results are words; `_` is an absent one."""
    words = [[w.replace("_", "") for w in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op, *words, name=name, **attributes)


def relu(**kwargs: Any) -> onnx.ModelProto:
    return model([node("Relu", "x", "y")], **kwargs)


def changed(made: onnx.ModelProto, change: Callable[[onnx.ModelProto], Any]) -> onnx.ModelProto:
    change(made)
    return made


def attribute(op: str = "Softmax", **fields: Any) -> onnx.ModelProto:
    """A model of one node with an attribute made field by field."""
    made = node(op, "x", "y")
    made.attribute.add(**fields)
    return model([made])


def unknown_kind() -> onnx.ModelProto:
    made = attribute(name="axis")
    made.graph.node[0].attribute[0].MergeFromString(b"\xa0\x01\x63")  # field 20, the kind: 99
    return made


THEN = graph([node("Relu", "x", "t", "inner")], (), [("t", F, None)])


def choice(then: onnx.GraphProto, outputs: str = "y") -> onnx.ModelProto:
    chosen = node("If", "p", outputs, then_branch=then, else_branch=THEN)
    return model([chosen], [X, FLAG], [(o, F, None) for o in outputs.split()])


def function(inner: onnx.NodeProto, inputs: str = "x", outputs: str = "y") -> onnx.ModelProto:
    made = model([node("Twice", inputs, outputs, domain="here")], outputs=[(o, F, None) for o in outputs.split()])
    made.opset_import.add(domain="here", version=1)
    body = helper.make_function("here", "Twice", ["a"], ["b"], [inner], [helper.make_opsetid("", 13)])
    made.functions.append(body)
    return made


def loop(inputs: Sequence[Any], outputs: Sequence[Any]) -> onnx.ModelProto:
    return model([node("Loop", "k _ x", "y", body=graph([], inputs, outputs))], [X, TRIPS])


REFUSED = {
    # how many operands and results
    "no operand": (model([node("Relu", "", "y")]), "takes 1 inputs, got 0"),
    "no result": (model([node("Relu", "x", ""), node("Neg", "x", "y", "other")]), "has 1 outputs, got 0"),
    "too many results": (model([node("Relu", "x", "y z")]), "has 1 outputs, got 2"),
    "an operand left out": (model([node("Add", "x _", "y")]), "the input B is missing"),
    "pieces of no whole size": (model([node("Split", "x", "y b c", axis=0)]), "cannot split 2 elements into 3"),
    "pieces miscounted": (
        model([node("Split", "x", "y b", axis=0, num_outputs=3)], opset=18), "num_outputs is 3, but it has 2 outputs",
    ),
    # attributes
    "attribute missing": (model([node("Cast", "x", "y")]), "the attribute 'to' is missing"),
    "attribute of another kind": (model([node("Softmax", "x", "y", axis=1.0)]), "must be of kind INT, got FLOAT"),
    "one number for a list": (model([node("Transpose", "x", "y", perm=0)]), "must be of kind INTS, got INT"),
    "attribute of an unknown kind": (unknown_kind(), "a kind that this version of onnx does not know"),
    "attribute of two kinds": (attribute(name="axis", i=0, f=1.0), "has no type, and values of FLOAT and INT"),
    "attribute that is not of its kind": (
        attribute(name="axis", f=1.0, type=AttributeProto.INT), "is of kind INT, but holds FLOAT",
    ),
    "attribute with a short tensor": (
        model([node("Constant", "", "y", value=TensorProto(data_type=F, dims=[4], raw_data=b"abcd"))]),
        "needs 16 bytes, the file has 4",
    ),
    "attribute that is no text": (attribute("Conv", name="auto_pad", s=b"\xff", type=3), "not UTF-8"),
    "element type that does not exist": (model([node("Cast", "x", "y", to=77)]), "element type 77 is not known"),
    # element types and shapes
    "element types": (model([node("Add", "x k", "y")], [X, ("k", I64, [2])]), "must have one element type"),
    "a condition of floats": (
        model([node("If", "x", "y", then_branch=THEN, else_branch=THEN)]), "ONNX allows bool",
    ),
    "shapes": (model([node("Add", "x w", "y")], w=np.zeros(3, np.float32)), "do not broadcast"),
    "axis": (model([node("Softmax", "x", "y", axis=5)]), "axis 5 is out of range for rank 1"),
    "a negative count": (model([node("TopK", "x k", "y z")], k=np.array([-1])), "k must not be negative"),
    "more than there are": (model([node("TopK", "x k", "y z")], k=np.array([5])), "5 is more than 2"),
    "pads and auto_pad": (
        model([node("Conv", "x w", "y", auto_pad="SAME_UPPER", pads=[1] * 4)], [("x", F, [1, 1, 4, 4])],
              w=np.zeros((1, 1, 3, 3), np.float32)),
        r"has both pads \[1, 1, 1, 1\] and auto_pad SAME_UPPER",
    ),
    # sub-graphs
    "no else": (model([node("If", "p", "y", then_branch=THEN)], [X, FLAG]), "attribute 'else_branch' is missing"),
    "a branch without results": (choice(graph([], (), ())), "its branches yield 0 and 1"),
    "more results than branches have": (choice(THEN, "y z"), "has 2 outputs, but its branches yield 1 and 1"),
    "branches of two element types": (
        choice(graph([node("Cast", "x", "i", "cast", to=I64)], (), [("i", I64, None)])),
        r"its branches yield i64\[2\] and f32\[2\]",
    ),
    "a branch with an input": (choice(graph([], [("q", F, [2])], [("q", F, None)])), "takes 1 inputs, 0 are given"),
    "a branch that reads nothing": (choice(graph([node("Neg", "gone", "t")], (), [("t", F, None)])), "reads 'gone'"),
    "a branch that yields nothing": (choice(graph([], (), [("gone", F, None)])), "reads 'gone', which nothing"),
    "a branch with a cycle": (choice(graph([node("Add", "x t", "t")], (), [("t", F, None)])), "has a cycle"),
    "a name of an outer value within its own cycle": (
        choice(graph([node("Relu", "x", "x")], (), [("x", F, None)])), "has a cycle",
    ),
    "a loop that yields too little": (loop([("i", I64, [])], [X]), "fewer than the condition and 1 carried values"),
    "more scanned operands than there are": (
        model([node("Scan", "x", "y", num_scan_inputs=5, body=graph([], [("s", F, [])], [("s", F, None)]))]),
        "num_scan_inputs is 5, but there are 1 inputs",
    ),
    # functions of the model
    "function with another count of operands": (function(node("Relu", "a", "b"), "x x"), "takes 1 inputs, got 2"),
    "function with another count of results": (function(node("Relu", "a", "b"), "x", "y z"), "has 1 outputs, got 2"),
    "function whose result nothing defines": (function(node("Relu", "a", "c")), "output 'b' is defined by none"),
    "function that reads the graph's names": (function(node("Relu", "x", "b")), "reads 'x', which nothing defines"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_by_name(case: str) -> None:
    made, fault = REFUSED[case]
    for command in (import_onnx, check_onnx):
        with pytest.raises(FormatError, match=fault) as caught:
            command(made)
        assert "node 'culprit'" in str(caught.value)


def _declared(*declared: Any) -> onnx.ModelProto:
    return model([node("Add", "x w", "y")], [X, declared], w=np.zeros(2, np.float32))


MODELS = {
    "no operator set": (changed(relu(), lambda m: m.ClearField("opset_import")), "imports no operator set"),
    "operator set 0": (relu(opset=0), "in version 0"),
    "operator set beyond all numbers": (relu(opset=2**63 - 1), "in version 9223372036854775807"),
    "operators of a domain without a set": (
        changed(relu(), lambda m: m.opset_import[0].CopyFrom(helper.make_opsetid("ai.onnx.ml", 3))),
        r"node 'culprit' \(Relu\) is of the domain ''",
    ),
    "default of another type": (_declared("w", I64, [2]), "initializer 'w' has element type 1"),
    "default of another shape": (_declared("w", F, [3]), r"initializer 'w' has .* shape \[2\]"),
    "default of another rank": (_declared("w", F, [2, 2]), r"initializer 'w' has .* shape \[2\]"),
    "function defined twice": (
        changed(function(node("Relu", "a", "b")), lambda m: m.functions.append(m.functions[0])), "defined twice",
    ),
    "an output without a name": (relu(outputs=[("", F, None)]), "nothing defines it"),
}  # fmt: skip


@pytest.mark.parametrize("case", MODELS)
def test_what_is_wrong_with_a_model_is_said(case: str) -> None:
    made, fault = MODELS[case]
    with pytest.raises(FormatError, match=fault):
        import_onnx(made)


@pytest.mark.parametrize(
    "made, fault",
    [
        (relu(opset=10**6), "the newest known operator set is"),
        (changed(relu(), lambda m: setattr(m, "ir_version", 99)), "the newest known version of the format is"),
        (model([node("Relu", "x", "y", colour=3)]), "the attribute 'colour' is not supported"),
        (model([node("Upsample", "x s", "y")], s=np.ones(1, np.float32)), "is not supported in version 13"),
        (model([node("", "x", "y")]), "there is no handler"),
    ],
    ids=["operator set", "format", "attribute", "operator that was taken out", "operator without a name"],
)
def test_what_is_not_known_is_reported(made: onnx.ModelProto, fault: str) -> None:
    with pytest.raises(UnsupportedError, match=fault):
        import_onnx(made)
    assert len(check_onnx(made)) == 1


LATE = model(
    [node("If", "p", "y", then_branch=graph([node("Neg", "late", "t")], (), [("t", F, None)]), else_branch=THEN),
     node("Neg", "x", "late", "other")],
    [X, FLAG],
)  # fmt: skip
TAKEN = {
    "operands left out at the end": model([node("Clip", "x _ _", "y")]),
    "an attribute without a kind": attribute(name="axis", i=0),
    "a zero that is left out": attribute(name="axis", type=AttributeProto.INT),
    "a reference to an attribute outside of a function": attribute(
        name="axis", ref_attr_name="a", type=AttributeProto.INT
    ),
    "one value returned twice": relu(outputs=[("y", F, None), ("y", F, None)]),
    "a branch that reads what is defined later": LATE,
    "a negative size, which is none": relu(inputs=[("x", F, [-3])]),
    "an initializer without a name": model([node("Relu", "x", "y")], **{"": np.zeros(2, np.float32)}),
    "a declared output of another shape": relu(outputs=[("y", F, [7, 7])]),
    "a format without a version": changed(relu(), lambda m: setattr(m, "ir_version", 0)),
    "an index outside of a constant axis": model([node("Gather", "x i", "y")], i=np.array([5])),
    "pads and auto_pad of a pool": model(
        [node("MaxPool", "x", "y", kernel_shape=[2], auto_pad="SAME_UPPER", pads=[1, 0])], [("x", F, [1, 1, 4])]
    ),
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_others_take_is_taken(case: str) -> None:
    """ONNX Runtime opens each of these models, but for two that older exporters wrote."""
    ort = pytest.importorskip("onnxruntime")
    assert import_onnx(TAKEN[case]).main.outputs
    if case not in ("an attribute without a kind", "a zero that is left out"):
        options = ort.SessionOptions()
        options.log_severity_level = 4
        ort.InferenceSession(TAKEN[case].SerializeToString(), options, providers=["CPUExecutionProvider"])


def test_names_of_outer_graphs_may_be_used_again() -> None:
    """ONNX forbids it and ONNX Runtime refuses it; exporters wrote it, and what it means is plain."""
    inner = graph([node("Relu", "x", "a", "inner")], (), [("a", F, None)])
    made = model([node("Neg", "x", "a"), node("If", "p", "y", then_branch=inner, else_branch=THEN)], [X, FLAG])
    assert import_onnx(made).main.outputs


def test_check_lists_everything(tmp_path, capsys) -> None:
    """`irc check` names each of three unsupported things."""
    from irc.cli.main import run

    nodes = [
        node("Whirl", "x", "a", "first"),
        node("Relu", "a", "b", "second", colour=3),
        node("Fancy", "b", "y", "third", domain="com.shop"),
    ]
    made = model(nodes)
    made.opset_import.add(domain="com.shop", version=1)
    path = tmp_path / "three.onnx"
    onnx.save(made, path)
    assert run(["check", str(path)]) == 1
    text = "".join(capsys.readouterr())
    for operator, name in (("Whirl", "first"), ("Relu", "second"), ("com.shop.Fancy", "third")):
        assert f"{operator} x1, first {name}" in text
    assert "3 findings" in text


ROWS = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
PLACES = np.array([0, -1, -3, -4, 3, 2**40, -(2**40)], np.int64)
CLAMPED = [0, 2, 0, 0, 2, 2, 0]
TARGETS = ("reference", "xla", "mlx{compile=off}", "onnx")


def indexed(op: str, *shapes: Any) -> onnx.ModelProto:
    inputs = [("x", F, ["N", 2]), ("i", I64, shapes[0]), *([("u", F, shapes[1])] if len(shapes) > 1 else [])]
    return model([node(op, " ".join(n for n, *_ in inputs), "y")], inputs, opset=18)


@pytest.mark.parametrize("target", TARGETS)
def test_indices_out_of_range_at_run_time(target: str) -> None:
    """What is read clamps, what is written is dropped."""
    taken = irc.compile(indexed("Gather", ["K"]), target=target)(ROWS, PLACES)[0]
    np.testing.assert_array_equal(taken, ROWS[CLAMPED])
    along = irc.compile(indexed("GatherElements", ["K", 2]), target=target)(ROWS, np.stack([PLACES] * 2, 1))[0]
    np.testing.assert_array_equal(along, ROWS[CLAMPED])
    tuples = irc.compile(indexed("GatherND", ["K", 1]), target=target)(ROWS, PLACES[:, None])[0]
    np.testing.assert_array_equal(tuples, ROWS[CLAMPED])
    written = np.array([[1, 2], [3, 4], [9, 9]], np.float32)
    for op, places in (("ScatterElements", [[2, 2], [-4, 3]]), ("ScatterND", [[-1], [3]])):
        made = indexed(op, [2, len(places[0])], [2, 2])
        arguments = (ROWS, np.array(places, np.int64), np.full((2, 2), 9, np.float32))
        np.testing.assert_array_equal(irc.compile(made, target=target)(*arguments)[0], written)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("op, shape", [("Gather", [2]), ("GatherElements", [2, 2]), ("GatherND", [2, 1])])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_nothing_is_taken_from_an_empty_axis(op: str, shape: list[int], target: str, dtype: Any) -> None:
    """An error in words on every target (MLX would read foreign memory)."""
    if dtype == np.int64:
        compiled = irc.compile(indexed(op, shape), target=target)
    else:  # ONNX has no such indices, the operators of the IR do
        compiled = irc.compile(_unsigned(op, shape), target=target)
    with pytest.raises(IrcError):
        compiled(np.zeros((0, 2), np.float32), np.zeros(shape, dtype))
    if op == "Gather":
        assert compiled(ROWS, np.full(shape, 200, dtype))[0].tolist() == [[5, 6], [5, 6]]


def _unsigned(op: str, shape: list[int]) -> Any:
    made = import_onnx(indexed(op, shape))
    from irc.ir.text import parse_model, print_model

    text = print_model(made).replace(f"i64[{','.join(map(str, shape))}]", f"u8[{','.join(map(str, shape))}]")
    return parse_model(text)


@pytest.mark.parametrize("target", ["reference", "xla", "mlx{compile=off}"])
def test_nothing_is_written_to_an_empty_axis(target: str) -> None:
    for op, shape in (("ScatterElements", [2, 2]), ("ScatterND", [2, 1])):
        made = indexed(op, shape, [2, 2])
        arguments = (np.zeros((0, 2), np.float32), np.zeros(shape, np.int64), np.ones((2, 2), np.float32))
        assert irc.compile(made, target=target)(*arguments)[0].shape == (0, 2)
