"""Fusions of a bias into the matrix product before it.  Convolutions take theirs in the pass `batch-norm`."""

from __future__ import annotations

from typing import Any

from ...ir.graph import Constant
from ..pattern import Match, Tracer, equal, fusion


@fusion("gemm", near=99)
class FuseGemm:
    """a @ b + bias   ->   Gemm(a, b, bias), for matrices and a constant bias vector"""

    def pattern(self, p: Tracer, a: Any, b: Any, bias: Any) -> Any:
        return p.add(p.any_of(p.MatMul(a, b), p.bind("layer", p.Gemm(a, b))), bias)

    def check(self, m: Match) -> None:
        m.dims(m.a, "_ _")
        m.dims(m.b, "_ _")
        m.need(isinstance(m.bias, Constant) and m.bias.rank == 1, "the bias is no constant vector", m.bias)
        m.need(equal(m.bias.dims[0], m.result.dims[1]), "the bias has another length", m.bias)
        m.need(m.a.dtype.is_float, "only floating-point products", m.a)

    def rewrite(self, m: Match) -> Any:
        keywords = m.layer.node.keywords if m.layer is not None else {}
        return m.build.Gemm(m.a, m.b, m.bias, **{**keywords, "beta": 1.0})
