"""Fusions of activation functions: logistic, Softmax, Gelu, Swish, HardSwish, Softplus, Mish."""

from __future__ import annotations

import math
from typing import Any

from ...ir.graph import Value
from ..pattern import Match, Tracer, about, equal, fusion


@fusion("logistic", near=99)
class FuseLogistic:
    """1 / (1 + exp(-x))   ->   logistic(x)"""

    def pattern(self, p: Tracer, x: Any) -> Any:
        return p.inverse(p.add(p.exponential(p.negate(x)), 1.0))

    def rewrite(self, m: Match) -> Any:
        return m.build.logistic(m.x)


@fusion("softmax")
class FuseSoftmax:
    """exp(x - max(x)) / sum(exp(x - max(x)))   ->   Softmax(x)"""

    def pattern(self, p: Tracer, x: Any) -> Any:
        top = p.any_of(
            p.ReduceMax(x, axes=p.attribute("axes"), keepdims=True),
            p.reshape(p.optional.maximum(p.reduce((x,), axes=p.attribute("axes"), kind="max"), p.any("floor"))),
            p.reshape(p.ReduceMax(x, axes=p.attribute("axes"), keepdims=False)),
        )
        powers = p.any_of(p.exponential(p.subtract(x, p.bind("top", top))), p.exponential(x))
        total = p.any_of(
            p.ReduceSum(powers, axes=p.attribute("axes"), keepdims=True),
            p.reshape(p.reduce((powers,), axes=p.attribute("axes"), kind="sum")),
            p.reshape(p.ReduceSum(powers, axes=p.attribute("axes"), keepdims=False)),
        )
        return p.divide(powers, p.bind("total", total))

    def check(self, m: Match) -> None:
        m.need(len(m.axes) == 1, "Softmax works along one axis", m.root)
        m.need(m.floor is None or m.number(m.floor) == -math.inf, "the maximum has a floor above -inf", m.floor)
        for value in (m.top, m.total):
            m.need(value is None or _keeps(value, m.x, m.axes), "the reduced axis is not kept with size 1", value)

    def rewrite(self, m: Match) -> Any:
        return m.build.Softmax(m.x, axis=m.axes[0])


def _keeps(value: Value, x: Value, axes: tuple[int, ...]) -> bool:
    """Whether a reduction's result has x's dims with size 1 along the axes."""
    if value.rank != x.rank:
        return False
    return all(equal(d, 1 if i in axes else x.dims[i]) for i, d in enumerate(value.dims))


@fusion("gelu")
class FuseGelu:
    """0.5 * x * (1 + erf(x / sqrt(2)))   ->   Gelu(x)"""

    def pattern(self, p: Tracer, x: Any) -> Any:
        root = math.sqrt(0.5)
        gate = p.add(p.erf(p.product(x, scalar=root)), 1.0)
        by_complement = p.erfc(p.product(x, scalar=-root))
        halved = p.add(p.product(p.erf(p.product(x, scalar=root)), scalar=0.5), 0.5)
        return p.any_of(p.product(x, gate, scalar=0.5), p.product(x, by_complement, scalar=0.5), p.product(x, halved))

    def rewrite(self, m: Match) -> Any:
        return m.build.Gelu(m.x)


@fusion("gelu-tanh")
class FuseGeluTanh:
    """0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))   ->   Gelu(x) {approximate = "tanh"}"""

    def pattern(self, p: Tracer, x: Any) -> Any:
        outer, inner = math.sqrt(2 / math.pi), 0.044715
        cubes = (p.product(x, x, x, scalar=inner), p.product(p.power(x, 3.0), scalar=inner),
                 p.product(p.Pow(x, 3.0), scalar=inner))  # fmt: skip
        sums = p.any_of(*(p.add(x, cube) for cube in cubes))
        squares = p.any_of(p.product(x, x, scalar=inner), p.product(p.power(x, 2.0), scalar=inner))
        argument = p.any_of(
            p.product(sums, scalar=outer),
            p.product(x, p.add(squares, 1.0), scalar=outer),
            p.add(p.product(x, scalar=outer), p.product(x, x, x, scalar=outer * inner)),
        )
        gate = p.add(p.tanh(argument), 1.0)
        halved = p.add(p.product(p.tanh(argument), scalar=0.5), 0.5)
        return p.any_of(p.product(x, gate, scalar=0.5), p.product(x, halved))

    def rewrite(self, m: Match) -> Any:
        return m.build.Gelu(m.x, approximate="tanh")


@fusion("swish", after="logistic", near=99)
class FuseSwish:
    """x * logistic(alpha * x)   ->   Swish(x) {alpha}"""

    def pattern(self, p: Tracer, x: Any) -> Any:
        return p.any_of(
            p.product(x, p.logistic(x)),
            p.product(x, p.logistic(p.product(x, scalar="alpha"))),
            p.product(x, p.inverse(p.add(p.exponential(p.product(x, scalar="minus_alpha")), 1.0))),
        )

    def check(self, m: Match) -> None:
        m.need(m.x.dtype.is_float, "Swish is of floating-point values", m.x)

    def rewrite(self, m: Match) -> Any:
        alpha = m.alpha if m.alpha is not None else -m.minus_alpha if m.minus_alpha is not None else 1.0
        return m.build.Swish(m.x, alpha=alpha)


@fusion("hard-swish", near=2)
class FuseHardSwish:
    """x * clip(x + 3, 0, 6) / 6   ->   HardSwish(x)"""

    def pattern(self, p: Tracer, x: Any) -> Any:
        by_clip = p.product(x, p.clip(p.add(x, 3.0), 0.0, 6.0), scalar=1 / 6)
        scaled = p.product(x, p.clip(p.add(p.product(x, scalar=1 / 6), 0.5), 0.0, 1.0))
        gate = p.HardSigmoid(x, alpha=p.attribute("alpha"), beta=p.attribute("beta"))
        return p.any_of(by_clip, scaled, p.product(x, gate))

    def check(self, m: Match) -> None:
        m.need(m.alpha is None or about(m.alpha, 1 / 6), f"the slope is {m.alpha}, not 1/6", m.root)
        m.need(m.beta is None or about(m.beta, 0.5), f"the shift is {m.beta}, not 1/2", m.root)

    def rewrite(self, m: Match) -> Any:
        return m.build.HardSwish(m.x)


@fusion("softplus", near=99)
class FuseSoftplus:
    """log(1 + exp(x))   ->   Softplus(x)"""

    def pattern(self, p: Tracer, x: Any) -> Any:
        powers = p.exponential(x)
        return p.any_of(p.log(p.add(powers, 1.0)), p.log_plus_one(powers))

    def rewrite(self, m: Match) -> Any:
        return m.build.Softplus(m.x)


@fusion("mish", after="softplus", near=2)
class FuseMish:
    """x * tanh(softplus(x))   ->   Mish(x)"""

    def pattern(self, p: Tracer, x: Any) -> Any:
        return p.product(x, p.tanh(p.Softplus(x)))

    def rewrite(self, m: Match) -> Any:
        return m.build.Mish(m.x)
