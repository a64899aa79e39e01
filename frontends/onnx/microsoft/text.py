"""com.microsoft string operators."""

from __future__ import annotations

from ..registry import onnx_op


@onnx_op("Tokenizer", domain="com.microsoft")
def tokenizer(ctx, x, *, mark, mincharnum, pad_value, separators=(), tokenexp=""):
    return ctx.build.Tokenizer(
        x, separators=separators, token=tokenexp, least=mincharnum, pad_value=pad_value, mark=bool(mark)
    )
