"""The fusion `squared-relu`: recognises how exporters spell sample.SquaredRelu."""

from irc.passes.pattern import fusion


@fusion("squared-relu", near=2)
class FuseSquaredRelu:
    """square(Relu(x)), perhaps times a number   ->   sample.SquaredRelu(x) {scale = number}"""

    def pattern(self, p, x):
        return p.optional.multiply(p.square(p.bind("positive", p.Relu(x))), p.scalar("scale"), default=1.0)

    def check(self, m):
        m.need(m.x.dtype.bits >= 32, "rounds once where the parts round several times", m.x)

    def rewrite(self, m):
        return m.build.sample.SquaredRelu(m.x, scale=m.scale)
