"""ONNX nodes of the domain `irc.sample`."""

from irc.frontends.onnx.registry import onnx_op


@onnx_op("SquaredRelu", domain="irc.sample", since=1)
def squared_relu(ctx, x, *, scale=1.0):
    return ctx.build.sample.SquaredRelu(x, scale=scale)
