"""Operators of ONNX Runtime that irc does not import, each with the reason that a report gives."""

from __future__ import annotations

from ..registry import onnx_op

_SEARCH = (
    "generates a whole sequence: the search runs decoder graphs in attributes, with caches that grow.  Export the "
    "decoder itself and search on the host"
)
REFUSED = {
    "BeamSearch": _SEARCH,
    "GreedySearch": _SEARCH,
    "Sampling": _SEARCH,
    "WhisperBeamSearch": _SEARCH,
    "EPContext": "holds a program that one execution provider compiled for its device.  Export the model without it",
}


def _refuse(type_, why):
    @onnx_op(type_, domain="com.microsoft")
    def handler(ctx, *xs, **attributes):
        ctx.refuse(why)


for _type, _why in REFUSED.items():
    _refuse(_type, _why)
