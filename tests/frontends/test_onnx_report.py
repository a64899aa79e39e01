"""Everything that cannot be imported is reported at once: operator, count, first node, reason."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

from irc.frontends.onnx import check_onnx, import_onnx
from irc.ir.errors import UnsupportedError

F = TensorProto.FLOAT


def model(*nodes, opset=13, **domains):
    protos = [helper.make_node(op, ins, outs, **kw) for op, ins, outs, kw in nodes]
    graph = helper.make_graph(
        protos, "net", [helper.make_tensor_value_info("x", F, [1, 3, 4, 4])],
        [helper.make_tensor_value_info(nodes[-1][2][0], F, None)],
    )  # fmt: skip
    opsets = [
        helper.make_opsetid("", opset),
        *(helper.make_opsetid(d.replace("_", "."), v) for d, v in domains.items()),
    ]
    return helper.make_model(graph, opset_imports=opsets)


NET = model(
    ("Fancy", ["x"], ["a"], {"domain": "com.shop", "name": "first"}),
    ("Relu", ["a"], ["b"], {}),
    ("Fancy", ["b"], ["c"], {"domain": "com.shop", "name": "second"}),
    ("Bernoulli", ["c"], ["d"], {"name": "coin"}),
    ("Whirl", ["d", "d"], ["e"], {"name": "pool"}),
    ("Rfft", ["x"], ["f"], {"domain": "com.microsoft", "name": "waves", "signal_ndim": 4, "onesided": 1}),
    ("Add", ["e", "f"], ["y"], {}),
    opset=15,
    com_shop=1,
    com_microsoft=1,
)


def test_the_report_lists_all_of_it():
    report = check_onnx(NET)
    assert report
    rows = [(u.domain, u.operator, u.version, u.count, u.first_node) for u in report]
    assert rows == [
        ("com.shop", "Fancy", 1, 2, "first"),
        ("", "Whirl", 15, 1, "pool"),
        ("com.microsoft", "Rfft", 1, 1, "waves"),
    ]
    reasons = [u.reason for u in report]
    assert "domain 'com.shop'" in reasons[0]
    assert "no handler" in reasons[1]
    assert "signals of 4 axes" in reasons[2]
    assert "3 operators cannot be imported" in str(report)
    assert "2 nodes, first 'first'" in str(report)


def test_import_raises_one_diagnostic_an_operator():
    with pytest.raises(UnsupportedError) as caught:
        import_onnx(NET)
    assert len(caught.value.diagnostics) == 3
    assert "com.shop.Fancy" in str(caught.value.diagnostics[0])
    assert caught.value.diagnostics[0].where == "net"


def test_sub_graphs_are_surveyed_too():
    then = helper.make_graph(
        [helper.make_node("Fancy", ["x"], ["t"], domain="com.shop", name="inner")], "t", [],
        [helper.make_tensor_value_info("t", F, None)],
    )  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Whirl", ["x", "x"], ["e"], name="pool")], "e", [],
        [helper.make_tensor_value_info("e", F, None)],
    )  # fmt: skip
    proto = model(("If", ["p"], ["y"], {"then_branch": then, "else_branch": other}), com_shop=1)
    proto.graph.input.append(helper.make_tensor_value_info("p", TensorProto.BOOL, []))
    assert {(u.operator, u.first_node) for u in check_onnx(proto)} == {("Fancy", "inner"), ("Whirl", "pool")}


def test_a_newer_operator_set_than_is_known():
    report = check_onnx(model(("Relu", ["x"], ["y"], {}), opset=999))
    assert [(u.operator, u.version) for u in report] == [("opset", 999)]
    assert "newest known operator set" in report.unsupported[0].reason


def test_a_model_that_can_be_imported():
    report = check_onnx(model(("Relu", ["x"], ["y"], {})))
    assert not report
    assert list(report) == []
    assert str(report) == "net: all 1 nodes can be imported"
    assert report.late == {}


def test_late_operators_are_counted():
    proto = model(("Reshape", ["x", "shape"], ["a"], {}), ("Relu", ["a"], ["y"], {}))
    proto.graph.input.append(helper.make_tensor_value_info("shape", TensorProto.INT64, [2]))
    assert check_onnx(proto).late == {"Reshape": 1, "Relu": 1}
