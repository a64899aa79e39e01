"""`irc explain`: fusions that fired, near misses with reasons, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irc
from irc.cli.main import run
from irc.testing.patterns import model_of


def gelu(b: Any, x: Any, scale: float = 0.5) -> Any:
    return b.multiply(b.multiply(x, scale), b.add(b.erf(b.multiply(x, 0.70710678)), 1.0))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.ir"
    irc.save(model_of(lambda b, x: (gelu(b, x), gelu(b, x, 0.25)), x="f32[B,8]"), path)
    return path


def test_text_names_what_fired_and_what_nearly_did(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(model)]) == 0
    out = capsys.readouterr().out
    assert "gelu 1" in out.splitlines()[0]
    assert "fired\n  gelu  multiply" in out
    assert "nearly fired\n  gelu at multiply" in out
    assert "expected the factor 0.5, got 0.25" in out


def test_json_holds_the_same(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(model), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fusions"] == {"gelu": 1}
    assert [f["fusion"] for f in found["fired"]] == ["gelu"]
    assert [m["why"] for m in found["near_misses"]] == ["expected the factor 0.5, got 0.25"]


def test_disabled_fusions_do_not_fire(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(model), "--disable", "gelu"]) == 0
    assert "no composites" in capsys.readouterr().out


def test_a_misspelt_fusion_is_named(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(model), "--fusion", "gelo"]) == 1
    assert "no fusion is called 'gelo'; did you mean 'gelu'?" in capsys.readouterr().err


def test_what_stays_apart_on_purpose_has_a_section_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def body(b: Any, x: Any, y: Any) -> Any:
        ones = b.constant(np.ones(8, np.float32))
        return b.RMSNormalization(b.add(x, b.RMSNormalization(b.add(x, y), ones, axis=1)), ones, axis=1)

    path = tmp_path / "model.ir"
    irc.save(model_of(body, x="f32[B,8]", y="f32[B,8]"), path)
    assert run(["explain", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("rms_norm 2, skip_rms_norm 2")
    place = lines.index("recognised and left as several nodes")
    assert lines[place + 1].startswith("  skip_rms_norm 2, the first at RMSNormalization")
    assert "no target has a kernel for a sum and its normalization" in lines[place + 2]
    assert run(["explain", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fusions"] == {"rms_norm": 2, "skip_rms_norm": 2}
    assert [row["name"] for row in found["left_apart"]] == ["skip_rms_norm"] * 2
    assert all(row["node"] and row["why"] for row in found["left_apart"])
