"""A published model of text lines of any width with two programs, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

import irc


def test_text_lines_of_many_widths_need_two_programs(model_path: Callable[[str], Path]):
    """Convolutions, pools, softmax over the places of the line: what is behind its end never matters."""
    run = irc.compile(model_path("rec"), target="xla", shapes="bucket")
    assert run.report.exact == {}
    judge = onnxruntime.InferenceSession(str(model_path("rec")), providers=["CPUExecutionProvider"])
    for width in (136, 100, 181, 250, 97):
        x = np.random.default_rng(width).standard_normal((1, 3, 48, width)).astype(np.float32)
        (got,), (want,) = run(x), judge.run(None, {judge.get_inputs()[0].name: x})
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * np.abs(want).max())
    assert run.compile_count == 2  # for widths up to 128 and up to 256
