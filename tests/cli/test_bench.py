"""`irc bench`: what it measures, how it is printed, what it refuses.  How fast anything is, is not tested here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irc
from irc.cli.main import run as cli
from irc.ir import build, dims, dtypes
from irc.ir.model import Model
from irc.ir.types import TensorType
from irc.testing import benchmark

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"


def bench(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    assert cli(["bench", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_targets_side_by_side(capsys: pytest.CaptureFixture[str]):
    words = ("-t", "xla", "-t", "mlx{compile=off}", "-t", "reference", "--against", "onnxruntime", "--runs", 4)
    found = bench(capsys, DIGITS, *words, "--sizes", "batch=1,3")
    assert (found["runs"], found["ratio_to"]) == (4, "onnxruntime")
    assert [c["sizes"] for c in found["cases"]] == [{"batch": 1}, {"batch": 3}]
    for case in found["cases"]:
        names = [row["name"] for row in case["rows"]]
        assert names == ["xla", "mlx{compile=off}", "reference", "onnxruntime"]
        for row in case["rows"]:
            assert 0 < row["call"]["p10"] <= row["call"]["median"] <= row["call"]["p90"]
            assert row["first_call"] > 0 < row["ready"]
            assert row["ratio"] > 0
        xla, mlx, reference, judge = case["rows"]
        assert judge["ratio"] == 1
        for row in (xla, mlx):
            assert row["copy_in"]["median"] > 0 < row["copy_out"]["median"]
            assert row["memory_bytes"] > 10 * 64 * 4, "at least the images and weights"
        for row in (reference, judge):
            assert "copy_in" not in row, "they compute on NumPy's arrays"
            assert row["memory_bytes"] is None
    compiled = found["cases"][0]["rows"][0]
    assert compiled["first_call"] > 3 * compiled["call"]["median"], "the first call compiles"


def test_without_a_judge_the_first_target_is_the_measure(capsys: pytest.CaptureFixture[str]):
    assert cli(["bench", str(DIGITS), "-t", "reference", "-t", "onnx", "--dim", "batch=2", "--runs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[-2:] == ["x", "reference"]
    assert [line.split()[0] for line in lines[1:]] == ["reference", "onnx"]
    assert lines[1].split()[-1] == "1.00"


def test_artifacts_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    irc.compile(DIGITS, target="mlx{compile=off}").save(tmp_path / "digits.mlx")
    found = bench(capsys, tmp_path / "digits.mlx", "--dim", "batch=2", "--runs", 2)
    assert [r["name"] for r in found["cases"][0]["rows"]] == ["mlx{compile=off}"]
    assert cli(["bench", str(tmp_path / "digits.mlx"), "-t", "xla", "--dim", "batch=2"]) == 2
    assert "leave --target" in capsys.readouterr().err


def test_entries_that_run_in_stages_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def body(b: Any, x: Any) -> Any:
        count = b.reduce((b.convert(b.compare(x, 0.0, direction="gt"), dtype=dtypes.i64),), axes=(0,), kind="sum")
        b.bind_dim(count, dim="n")
        return b.iota(dtype=dtypes.i64, dims=(dims.symbol("n"),), axis=0)

    model = Model("m")
    build.function(model, "main", [("x", TensorType(dtypes.f32, (5,)))], body)
    irc.save(model, tmp_path / "m.ir")
    found = bench(capsys, tmp_path / "m.ir", "-t", "xla", "--runs", 2)
    (row,) = found["cases"][0]["rows"]
    assert row["call"]["median"] > 0
    assert row["memory_bytes"] is None


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["--runs", "0"], 2, "0 is not in the range"),
        (["--sizes", "batch=-1"], 2, "sizes must not be negative"),
        (["--sizes", "batch=many"], 2, "expected a size like 8 or 1,8"),
        (["--sizes", "batch"], 2, "expected NAME=VALUE"),
        (["--sizes", "lot=1"], 1, "no dim 'lot'"),
        (["--sizes", "batch=2", "--dim", "batch=2"], 2, "give one of them"),
        (["--dim", "batch=1", "-t", "xla", "-t", "xla"], 2, "named twice"),
        (["--dim", "batch=1", "-t", "tpux"], 1, "tpux"),
        (["--dim", "batch=1", "--against", "me"], 2, "'onnxruntime'"),
        ([], 1, "unspecified"),
        (["--inputs", "missing.npz"], 1, "No such file"),
    ],
)
def test_nonsense_is_refused(words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]):
    assert cli(["bench", str(DIGITS), *words]) == code
    assert said in capsys.readouterr().err


def test_the_judge_needs_the_onnx_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    irc.save(irc.read(DIGITS), tmp_path / "m.ir")
    assert cli(["bench", str(tmp_path / "m.ir"), "--dim", "batch=1", "--against", "onnxruntime"]) == 2
    assert "runs the .onnx file itself" in capsys.readouterr().err
    shutil.copy(tmp_path / "m.ir", tmp_path / "m.onnx")
    assert cli(["bench", str(tmp_path / "m.onnx"), "--dim", "batch=1"]) == 1
    capsys.readouterr()


def test_given_inputs_are_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    np.savez(tmp_path / "x.npz", image=np.zeros((3, 1, 8, 8), np.float32))
    found = bench(capsys, DIGITS, "-t", "onnx", "--inputs", tmp_path / "x.npz", "--runs", 1)
    assert found["cases"][0]["rows"][0]["call"]["median"] > 0
    assert cli(["bench", str(DIGITS), "-t", "onnx", "--inputs", str(tmp_path / "x.npz"), "--sizes", "batch=1"]) == 1
    assert "batch" in capsys.readouterr().err


def test_calls_alternate():
    order: list[str] = []
    calls = {name: lambda name=name: order.append(name) for name in "ab"}
    times = benchmark.interleaved(calls, 4)
    warm = benchmark.WARM_CALLS
    assert "".join(order) == "a" * warm + "b" * warm + "ab" + "ba" + "ab" + "ba"
    assert [len(t.seconds) for t in times.values()] == [4, 4]
    with pytest.raises(irc.InputError, match="runs must be positive, got 0"):
        benchmark.interleaved(calls, 0)


def test_percentiles_are_of_the_times_measured():
    times = benchmark.Times(tuple(float(i) for i in range(20, 0, -1)))
    assert times.as_dict() == {"median": 10.5, "p10": 2.0, "p90": 18.0}
    assert benchmark.Times((3.0,)).as_dict() == {"median": 3.0, "p10": 3.0, "p90": 3.0}


def test_ratios_are_taken_round_by_round():
    """A machine that slows down midway slows both: the ratio of medians would not see it."""
    slow = (1.0, 1.0, 10.0)
    assert benchmark.ratio(benchmark.Times(tuple(2 * s for s in slow)), benchmark.Times(slow)) == 2
