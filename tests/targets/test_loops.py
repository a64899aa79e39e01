"""Loop and Scan on the targets against ONNX Runtime; and what MLX's host waits for in a round of an emitted loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc

F, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
TARGETS = ["xla", "mlx{compile=off}"]
NODE = tuple[Any, ...]


def value(name: str, type_: int = F, dims: Sequence[Any] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, type_, dims)


def graph(nodes: Sequence[NODE], inputs: Any, outputs: Any, **constants: Any) -> onnx.GraphProto:
    return helper.make_graph(
        [helper.make_node(*n[:3], **(n[3] if len(n) > 3 else {})) for n in nodes], "g", inputs, outputs,
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )  # fmt: skip


def body(nodes: Sequence[NODE], states: int = 1, **constants: Any) -> onnx.GraphProto:
    """Takes (i, go, a, b, ..), gives (on, a1, b1, .., row)."""
    names = "abc"[:states]
    inputs = [value("i", I64, []), value("go", BOOL, []), *(value(n, F, [2]) for n in names)]
    outputs = [value("on", BOOL, []), *(value(f"{n}1", F, [2]) for n in names), value("row", F, [2])]
    return graph(nodes, inputs, outputs, **constants)


def loop(inner: onnx.GraphProto, trips: str = "n", go: str = "go0", states: Sequence[str] = ("x",)) -> NODE:
    return ("Loop", [trips, go, *states], [*(f"last{i}" for i in range(len(states))), "rows"], {"body": inner})


def main(*nodes: NODE, states: int = 1, **constants: Any) -> onnx.ModelProto:
    inputs = [value("n", I64, []), value("go0", BOOL, []), value("x", F, [2])]
    outputs = [*(value(f"last{i}", F, [2]) for i in range(states)), value("rows", F, [None, 2])]
    made = graph(nodes, inputs, outputs, **constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


DOUBLED = [("Add", ["a", "a"], ["a1"]), ("Identity", ["a1"], ["row"])]
SINES = [("Sin", ["a"], ["a1"]), ("Identity", ["a1"], ["row"])]
STAY = [("Identity", ["go"], ["on"])]
UNTIL = [("ReduceSum", ["a1"], ["total"], {"keepdims": 0}), ("Less", ["total", "limit"], ["on"])]
CAPTURING = [("Add", ["a", "x"], ["s"]), ("Mul", ["s", "w"], ["a1"]), ("Identity", ["a1"], ["row"])]


def inner(nodes: Sequence[NODE], rows: bool, **constants: Any) -> onnx.GraphProto:
    """A loop's body within a loop's body: (j, went, p) -> (goes, p1, and with `rows` q)."""
    inputs = [value("j", I64, []), value("went", BOOL, []), value("p", F, [2])]
    outputs = [value("goes", BOOL, []), value("p1", F, [2]), *([value("q", F, [2])] if rows else [])]
    return graph(nodes, inputs, outputs, **constants)


STEP = [("Add", ["p", "outer"], ["p1"])]
KEEP = ("Identity", ["went"], ["goes"])
ENOUGH = [("ReduceSum", ["p1"], ["so_far"], {"keepdims": 0}), ("Less", ["so_far", "limit"], ["goes"])]
OUTER = ("Mul", ["a", "two"], ["outer"])
ROW = ("ReduceSum", ["qs", "zeroth"], ["row"], {"keepdims": 0})


def nested(
    trips: str, go: str, graph_: onnx.GraphProto, *after: NODE, outputs: Sequence[str] = ("a1",)
) -> onnx.ModelProto:
    """A loop around a loop; both see what is around them."""
    made = body(
        [*STAY, OUTER, ("Loop", [trips, go, "a"], list(outputs), {"body": graph_}), *after],
        three=np.array(3), two=np.float32(2), zeroth=np.array([0]),
    )  # fmt: skip
    return main(loop(made))


IDENTITY = ("Identity", ["a1"], ["row"])
COUNTED = inner([KEEP, *STEP, ("Neg", ["p1"], ["q"])], True)
SWAPPED = [
    *STAY, ("Identity", ["b"], ["a1"]), ("Add", ["a", "b"], ["b1"]), ("Sub", ["a", "b"], ["row"]),
]  # fmt: skip

MODELS = {
    "counted": main(loop(body([*STAY, *DOUBLED]))),
    "counted, always on": main(loop(body([("Identity", ["yes"], ["on"]), *DOUBLED], yes=True))),
    "until a sum": main(loop(body([*DOUBLED, *UNTIL], limit=np.float32(40)))),
    "until a sum, uncounted": main(loop(body([*DOUBLED, *UNTIL], limit=np.float32(40)), trips="")),
    "captures": main(loop(body([*STAY, *CAPTURING])), w=np.array([0.5, 2], np.float32)),
    "captures until": main(
        loop(body([*CAPTURING, *UNTIL], limit=np.float32(40))), w=np.array([0.5, 2], np.float32)
    ),
    "nested, of constant length": nested("three", "", COUNTED, ROW, outputs=("a1", "qs")),
    "nested, counted": nested("i", "", inner([KEEP, *STEP], False), IDENTITY),
    "nested, until a sum": nested("", "go", inner([*STEP, *ENOUGH], False, limit=np.float32(40)), IDENTITY),
    "nested, rows of both": nested("three", "go", COUNTED, ROW, outputs=("a1", "qs")),
    "two states": main(loop(body(SWAPPED, states=2), states=("x", "x")), states=2),
    "of constant length": main(loop(body([*STAY, *DOUBLED]), trips="five", go=""), five=np.array(5)),
    "of constant length, long": main(loop(body([*STAY, *SINES]), trips="many", go=""), many=np.array(100)),
}  # fmt: skip


def scan(reverse: int) -> onnx.ModelProto:
    inner = graph(
        [("Add", ["a", "e"], ["a1"]), ("Mul", ["a1", "a1"], ["r"])],
        [value("a", F, [2]), value("e", F, [2])],
        [value("a1", F, [2]), value("r", F, [2])],
    )
    attributes = {"body": inner, "num_scan_inputs": 1, "scan_input_directions": [reverse]}
    made = graph(
        [("Scan", ["x", "xs"], ["last0", "rows"], attributes)],
        [value("x", F, [2]), value("xs", F, ["T", 2])],
        [value("last0", F, [2]), value("rows", F, [None, 2])],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def judged(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})


def agree(run: irc.Executable, model: onnx.ModelProto, feeds: dict[str, Any]) -> None:
    got = run({n: feeds[n] for n in run.input_types})
    for a, b in zip(got, judged(model, feeds), strict=True):
        np.testing.assert_allclose(np.asarray(a).reshape(b.shape), b, rtol=1e-5)
        assert np.asarray(a).shape == b.shape


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_loops(name: str, target: str):
    """No round, one, several; not started because the condition is false; stopped early."""
    model = MODELS[name]
    run = irc.compile(model, target=target)
    x = np.array([1, 2], np.float32)
    counts = [0, 1, 3, 7] if "n" in run.input_types else [0]
    for count in counts:
        for go in (True, False):
            if "go0" not in run.input_types and not go:
                continue
            agree(run, model, {"n": np.array(count), "go0": np.array(go), "x": x})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("reverse", [0, 1])
def test_scans(reverse: int, target: str):
    model = scan(reverse)
    run = irc.compile(model, target=target)
    for length in (1, 4, 9):
        xs = np.arange(2 * length, dtype=np.float32).reshape(length, 2) / 10
        agree(run, model, {"x": np.array([1, 2], np.float32), "xs": xs})


SYNCHRONISING = ("item", "tolist", "eval", "array_equal", "asarray")


def own_nodes(statement: ast.AST) -> Iterator[ast.AST]:
    """A loop's condition and statements, without those of the loops in it."""
    stack = list(ast.iter_child_nodes(statement))
    while stack:
        node = stack.pop()
        if not isinstance(node, ast.For | ast.While | ast.FunctionDef):
            yield node
            stack.extend(ast.iter_child_nodes(node))


def waits(source: str) -> list[int]:
    """For each loop of the module: how often a round of it, loops within not counted, has the host wait."""
    loops = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.For | ast.While)]
    return [
        sum(
            isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in SYNCHRONISING
            for n in own_nodes(statement)
        )
        for statement in loops
    ]


SOURCES = {**MODELS, "scan": scan(0), "scan backwards": scan(1)}
del SOURCES["until a sum, uncounted"]  # as many rows as it likes: the host repeats it and keeps them in a list

WAITS = {
    "of constant length": [],  # unrolled
    "of constant length, long": [0],  # the length needs no value: nothing to wait for
    "scan": [0],
    "scan backwards": [0],
    "nested, counted": [1, 1],
    "nested, until a sum": [1, 1],
    # The number of the inner loop's rows is a size of what follows it in the outer loop's body.
    "nested, rows of both": [1, 2],
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_round_of_an_emitted_loop_waits_at_most_once(name: str):
    """For the condition, where no size in the body hangs on values."""
    run = irc.compile(SOURCES[name], target="mlx{compile=off}")
    assert sorted(waits(run.source)) == WAITS.get(name, [1]), run.source


def test_the_count_of_waits_sees_conditions_and_statements():
    text = "while (a < b).item():\n    x = y.tolist()\n    for i in range(3):\n        z.item()\n"
    assert sorted(waits(text)) == [1, 2]
