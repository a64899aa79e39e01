"""Composites on MLX, native and decomposed: one module for all sizes, run at three of them against the reference."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from irc import targets
from irc.ir import build, types
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.runtime.lower import lower
from irc.runtime.report import Report

spec = importlib.util.spec_from_file_location("mlx_composites", Path(__file__).with_name("mlx_composites.py"))
assert spec is not None
composites = importlib.util.module_from_spec(spec)
sys.modules["mlx_composites"] = composites
spec.loader.exec_module(composites)  # type: ignore[union-attr]  # a file has a loader
ROWS = composites.rows()

NATIVE = {
    "Relu", "Gelu", "HardSwish", "Swish", "Clip", "Pow", "ReduceMean-keep", "ReduceMax-keep",
    "ArgMax-float-False", "CumSum-False-False", "Conv", "Conv-depthwise", "Conv-batch-normalization",
    "MaxPool-False", "AveragePool-True", "GlobalAveragePool", "MatMul", "MatMul-batches", "Gemm", "Einsum",
    "Split-equal", "Tile", "Trilu-upper", "TopK", "Resize-floor", "Softmax", "LayerNormalization",
    "RMSNormalization", "Attention", "Attention-causal",
}  # fmt: skip
"""Composites that MLX takes as they are; the others may be decomposed."""


@pytest.fixture(scope="module")
def mlx():
    return targets.get("mlx{compile=off}")


def inputs_of(signature, sizes):
    r = np.random.default_rng(sum(sizes.values()))
    out = []
    for _, type_ in signature:
        dims = types.substitute(type_, sizes).shape
        if type_.dtype.is_float:
            out.append((r.standard_normal(dims) * 2).astype(type_.dtype.numpy))
        else:
            out.append(r.integers(0 if type_.dtype.kind == "uint" else -9, 9, dims).astype(type_.dtype.numpy))
    return out


@pytest.mark.parametrize(("name", "signature", "body", "bound"), ROWS, ids=[r[0] for r in ROWS])
def test_composite(mlx, name, signature, body, bound):
    model = Model(name)
    build.function(model, "main", signature, body)
    report = Report()
    legal = lower(model, "main", mlx, {}, report)
    if name in NATIVE:
        assert not report.decomposed
    program = mlx.compile(legal, "main", {})
    for sizes in ({"B": 2, "S": 7}, {"B": 1, "S": 5}, {"B": 3, "S": 9}):
        arrays = inputs_of(signature, sizes)
        for got, wanted in zip(program.run(arrays, True), evaluate(model, arrays), strict=True):
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
            if wanted.dtype.kind != "f" or bound == 0:
                np.testing.assert_array_equal(got, wanted)
                continue
            finite = np.isfinite(wanted)
            np.testing.assert_array_equal(got[~finite], wanted[~finite])
            scale = max(1.0, float(np.abs(wanted[finite]).max(initial=0)))
            worst = np.abs(got[finite].astype(np.float64) - wanted[finite]).max(initial=0) / scale
            assert worst <= bound * np.finfo(np.float32).eps
