"""Changed files give a model or an error of irc; a bounded, repeatable run.  `make fuzz` runs for longer."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import irc


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


files = _load("files")
FILES = 300
"""Files a seed."""


@pytest.mark.parametrize("seed", range(6))
def test_a_changed_file_gives_a_model_or_an_error_of_irc(seed: int):
    answers = {files.check(f"{seed}.{number}") for number in range(FILES)}
    assert {"model", "FormatError", "UnsupportedError"} <= answers


def test_what_is_no_error_of_irc_is_found(monkeypatch: pytest.MonkeyPatch):
    def broken(path: Path) -> None:
        raise KeyError("x")

    monkeypatch.setattr(files, "_read", broken)
    with pytest.raises(files.Found, match="KeyError"):
        files.check("0.0")


def test_what_takes_too_long_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "SECONDS", 1)
    monkeypatch.setattr(files, "_read", lambda path: [None for _ in iter(int, 1)])
    with pytest.raises(files.Found, match="_TooLong"):
        files.check("0.0")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (b"Relu", "op_type"),
        (b"innername", "input"),
        (b"producer", "producer_name"),
        (b"symbol", "dim_param"),
        (b"nodename", "name"),
    ],
)
def test_text_that_is_not_utf_8_is_a_fault_of_the_file(text: bytes, field: str):
    inner = helper.make_node("Relu", ["innername"], ["y"], name="nodename")
    x = helper.make_tensor_value_info("innername", TensorProto.FLOAT, ["symbol"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["symbol"])
    graph = helper.make_graph([inner], "graph", [x], [y])
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], producer_name="producer")
    payload = whole.SerializeToString().replace(text, b"\xff" + text[1:], 1)
    with pytest.raises(irc.IrcError, match=rf"the field {field} of .* is not valid UTF-8: b'\\xff"):
        irc.import_onnx(payload)
    with pytest.raises(irc.IrcError, match="UTF-8"):
        irc.import_onnx(onnx.ModelProto.FromString(payload))
