"""Voice detection with state: all ONNX variants that silero-vad publishes, 50 steps against ONNX Runtime.

They hold If (a branch for each sampling rate, the other of which cannot have the call's sizes; ranks that hang on
sizes), LSTM cells, and float16 weights.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import irc

VARIANTS = ("vad", "vad_16k_op15", "vad_16k_sequence", "vad_half", "vad_op18", "vad_openvino")
STEPS, WINDOW, CONTEXT, RATE = 50, 512, 64, 16000


def speech(steps: int) -> np.ndarray:
    """A tone that rises, with breaks and noise; f32 [steps, WINDOW]."""
    rng = np.random.default_rng(0)
    t = np.arange(steps * WINDOW) / RATE
    tone = 0.3 * np.sin(2 * np.pi * (150 + 400 * t) * t) * (np.sin(2 * np.pi * 3 * t) > 0)
    return (tone + 0.03 * rng.standard_normal(t.shape)).astype(np.float32).reshape(steps, WINDOW)


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("target", ["xla", "mlx{compile=off}"])
@pytest.mark.parametrize("name", VARIANTS)
def test_fifty_steps_with_state(name: str, target: str, model_path: Callable[[str], Path]):
    judge, run = session(model_path(name)), irc.compile(model_path(name), target=target)
    names = [i.name for i in judge.get_inputs()]
    states = [n for n in names if n not in ("input", "sr")]
    size = 1 if "h" in states else 2
    ours = theirs = {n: np.zeros((size, 1, 128), np.float32) for n in states}
    context = np.zeros(CONTEXT, np.float32)
    for window in speech(STEPS):
        x = np.concatenate([context, window])[None]
        context = window[-CONTEXT:]
        given = {"input": x, "sr": np.array(RATE)}
        want = judge.run(None, {n: {**given, **theirs}[n] for n in names})
        got = [np.asarray(a) for a in run(*({**given, **ours}[n] for n in run.input_types))]
        for a, b in zip(got, want, strict=True):
            # Both keep their own states: f32 sums of some 400 terms, fed back through gates for 50 steps.
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-4 * max(1.0, float(np.abs(b).max())))
        theirs, ours = (dict(zip(states, out[1:], strict=True)) for out in (want, got))
    assert run.report.host_steps == 0


@pytest.mark.parametrize("target", ["xla", "mlx{compile=off}", "reference"])
def test_a_rate_that_does_not_go_with_the_length_is_reported(target: str, model_path: Callable[[str], Path]):
    run = irc.compile(model_path("vad"), target=target)
    state = np.zeros((2, 1, 128), np.float32)
    x = np.zeros((1, WINDOW + CONTEXT), np.float32)
    with pytest.raises(irc.IrcError, match="decoder/rnn"):
        run(x, state, np.array(8000))
    half = np.zeros((1, (WINDOW + CONTEXT) // 2), np.float32)
    want = session(model_path("vad")).run(None, {"input": half, "state": state, "sr": np.array(8000)})
    for a, b in zip(run(half, state, np.array(8000)), want, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", VARIANTS)
def test_what_opt_writes_gives_the_same(name: str, model_path: Callable[[str], Path], tmp_path: Path):
    """The optimized model as an ONNX file, branches that cannot be typed and waiting nodes included."""
    irc.save(irc.run_passes(irc.import_onnx(model_path(name))), tmp_path / "smaller.onnx")
    judge, written = session(model_path(name)), session(tmp_path / "smaller.onnx")
    names = [i.name for i in judge.get_inputs()]
    size = 1 if "h" in names else 2
    x = np.concatenate([np.zeros(CONTEXT, np.float32), speech(1)[0]])[None]
    given = {n: np.zeros((size, 1, 128), np.float32) for n in names} | {"input": x, "sr": np.array(RATE)}
    feeds = {n: given[n] for n in names}
    for a, b in zip(written.run(None, feeds), judge.run(None, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * max(1.0, float(np.abs(b).max())))
