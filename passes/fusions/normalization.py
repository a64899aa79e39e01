"""Fusions of normalizations spelled in primitives: layer, RMS and group normalization."""

from __future__ import annotations

from typing import Any

from ...ir import dims as sizes
from ...ir.dims import Size
from ...ir.graph import Value
from ..pattern import Match, Tracer, equal, fusion


def _check_mean(m: Match, axes: tuple[int, ...], factor: float | None) -> None:
    """A sum times a number is a mean if the number is one over the number of elements."""
    count = sizes.product([m.x.dims[a] for a in axes])
    if factor is not None:
        m.need(isinstance(count, int) and abs(factor * count - 1) < 1e-6, f"a sum over {count} is scaled by {factor}")


def _check_trailing(m: Match, axes: tuple[int, ...]) -> None:
    rank = m.x.rank
    m.need(axes == tuple(range(rank - len(axes), rank)), f"axes {list(axes)} are not the last ones", m.x)
    m.need(len(axes) > 0, "no axis is normalized", m.x)


def _check_parameter(m: Match, value: Value | None, axes: tuple[int, ...], what: str) -> None:
    """A scale or bias varies along normalized axes only (else it is a residual, or a modulation a sample)."""
    if value is None:
        return
    leading = value.dims[: max(value.rank - len(axes), 0)]
    m.need(all(equal(d, 1) for d in leading), f"the {what} varies along axes that are not normalized", value)
    m.need(value.rank <= m.x.rank, f"the {what} has a higher rank than the operand", value)
    m.need(value.dtype.is_float, f"the {what} is not floating-point", value)


def _normalized_dims(m: Match, axes: tuple[int, ...]) -> tuple[Size, ...]:
    return tuple(m.x.dims[a] for a in axes)


def _scale(m: Match, axes: tuple[int, ...], required: bool) -> Value | None:
    """The scale with the numbers of the product in it; ones where one is required and there is none."""
    gain = 1.0 if m.gain is None else m.gain
    scale = _vector(m, m.scale, axes)
    if scale is not None:
        return scale if gain == 1.0 else m.build.multiply(scale, gain)
    if gain == 1.0 and not required:
        return None
    full: Value = m.build.full(gain, m.result.dtype, _normalized_dims(m, axes))
    return full


def _vector(m: Match, value: Value | None, axes: tuple[int, ...]) -> Value | None:
    """A parameter without the leading axes of size 1, spread where one number stands for all."""
    if value is None:
        return None
    dims = value.dims[max(value.rank - len(axes), 0) :]
    narrow: Value = value if len(dims) == value.rank else m.build.reshape(value, dims=dims)
    wanted = _normalized_dims(m, axes)
    if len(dims) == len(wanted) and all(map(equal, dims, wanted)):
        return narrow
    spread: Value = m.build.broadcast_in_dim(
        narrow, dims=wanted, broadcast_dimensions=tuple(range(len(wanted) - len(dims), len(wanted)))
    )
    return spread


def _operand(m: Match) -> Value:
    """x in the element type of the result: conversions around the statistics are the composite's own."""
    x, dtype = m.source(m.x), m.result.dtype
    if x.dtype is dtype:
        return x
    given: Value = m.x
    if given.dtype is dtype:
        return given
    m.need(x.dtype.bits < dtype.bits, f"the result is rounded to {dtype} from {x.dtype}", m.x)
    wide: Value = m.build.convert(x, dtype=dtype)
    return wide


def _epsilon(m: Match) -> float:
    m.need(m.epsilon is None or m.epsilon >= 0, f"epsilon is {m.epsilon}", m.root)
    return m.epsilon or 0.0


@fusion("layer-norm", near=6)
class FuseLayerNormalization:
    """(x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * scale + bias   ->   LayerNormalization(x, scale, bias)

    mean(x^2) - mean(x)^2 in the place of the variance, as flax writes it, is refused: it cancels where the mean is
    large beside the deviation (and may be clipped at 0), so the results are others.
    """

    def pattern(self, p: Tracer, x: Any) -> Any:
        mean = p.mean(x, "axes")
        centred = p.any_of(p.subtract(x, mean), p.convert(p.subtract(x, mean)))
        in_one_pass = p.bind("in_one_pass", p.subtract(p.mean(p.square(x), "variance_axes"), p.square(mean)))
        variance = p.any_of(p.mean(p.square(centred), "variance_axes"), in_one_pass, p.Relu(in_one_pass))
        inverse = p.inverse_sqrt(p.any_of(p.add(variance, p.scalar("epsilon")), p.maximum(variance, 0.0)))
        normal = p.product(centred, inverse, scalar="gain", rest="scale")
        shifted = p.any_of(p.add(normal, p.any("bias")), p.add(p.convert(normal), p.any("bias")), normal)
        factor = p.any_of(p.product(inverse, rest="scale"), inverse)
        # TensorFlow's: x * f + (bias - mean * f).
        folded = p.add(p.multiply(x, factor), p.subtract(p.any("bias"), p.multiply(mean, factor)))
        return p.any_of(p.convert(shifted), shifted, folded)

    def check(self, m: Match) -> None:
        why = "the variance is mean(x^2) - mean(x)^2, which cancels where LayerNormalization's does not"
        m.need(m.in_one_pass is None, why, m.in_one_pass)
        m.need(m.axes == m.variance_axes, f"mean along {m.axes}, variance along {m.variance_axes}", m.root)
        _check_trailing(m, m.axes)
        _check_mean(m, m.axes, m.axes_factor)
        _check_mean(m, m.axes, m.variance_axes_factor)
        _check_parameter(m, m.scale, m.axes, "scale")
        _check_parameter(m, m.bias, m.axes, "bias")
        m.need(m.result.dtype.is_float, "the result is not floating-point", m.root)

    def rewrite(self, m: Match) -> Any:
        scale = _scale(m, m.axes, required=m.bias is not None)
        y, _, _ = m.build.LayerNormalization(
            _operand(m), scale, _vector(m, m.bias, m.axes), axis=m.axes[0], epsilon=_epsilon(m)
        )
        out: Value = y
        return out


@fusion("centred-rms-norm", after="rms-norm", near=99)
class FuseCentredNormalization:
    """RMSNormalization(x - mean(x), scale)   ->   LayerNormalization(x, scale)"""

    def pattern(self, p: Tracer, x: Any) -> Any:
        centred = p.subtract(x, p.mean(x, "axes"))
        return p.RMSNormalization(centred, p.any("scale"), axis=p.attribute("axis"), epsilon=p.attribute("epsilon"))

    def check(self, m: Match) -> None:
        _check_mean(m, m.axes, m.axes_factor)
        m.need(m.axes == tuple(range(m.axis, m.x.rank)), "mean and square are along different axes", m.root)

    def rewrite(self, m: Match) -> Any:
        y, _, _ = m.build.LayerNormalization(_operand(m), m.scale, axis=m.axis, epsilon=m.epsilon)
        return y


@fusion("rms-norm", near=4)
class FuseRMSNormalization:
    """x / sqrt(mean(x^2) + epsilon) * scale   ->   RMSNormalization(x, scale)"""

    def pattern(self, p: Tracer, x: Any) -> Any:
        mean = p.mean(p.square(x), "axes")
        inverse = p.inverse_sqrt(p.any_of(p.add(mean, p.scalar("epsilon")), mean))
        normal = p.product(x, inverse, scalar="gain", rest="scale")
        return p.any_of(p.convert(normal), normal)

    def check(self, m: Match) -> None:
        _check_trailing(m, m.axes)
        _check_mean(m, m.axes, m.axes_factor)
        _check_parameter(m, m.scale, m.axes, "scale")
        m.need(m.result.dtype.is_float, "the result is not floating-point", m.root)

    def rewrite(self, m: Match) -> Any:
        return m.build.RMSNormalization(
            _operand(m), _scale(m, m.axes, required=True), axis=m.axes[0], epsilon=_epsilon(m)
        )


@fusion("group-norm", near=3)
class FuseGroupNormalization:
    """reshape(InstanceNormalization(reshape(x), 1, 0)) * scale + bias   ->   GroupNormalization(x, scale, bias)"""

    def pattern(self, p: Tracer, x: Any) -> Any:
        grouped = p.bind("grouped", p.reshape(x))
        normal = p.InstanceNormalization(grouped, 1.0, 0.0, epsilon=p.attribute("epsilon"))
        back = p.reshape(normal)
        scaled = p.any_of(p.product(back, scalar="gain", rest="scale"), back)
        return p.any_of(p.add(scaled, p.any("bias")), scaled)

    def check(self, m: Match) -> None:
        x, dims = m.x, m.grouped.dims
        m.need(x.rank >= 3, "the operand is not [N, C, spatial..]", x)
        m.need(equal(dims[0], x.dims[0]) and isinstance(dims[1], int), "the groups are not split from C", m.grouped)
        m.need(m.result.rank == x.rank and all(map(equal, m.result.dims, x.dims)), "not reshaped back", m.root)
        m.need(equal(sizes.mod(x.dims[1], dims[1]), 0), "the groups do not divide the channels", m.grouped)
        for what, value in (("scale", m.scale), ("bias", m.bias)):
            m.need(value is None or _is_per_channel(value, x), f"the {what} is not one number a channel", value)

    def rewrite(self, m: Match) -> Any:
        channels, dtype = m.x.dims[1], m.x.dtype
        gain = m.gain if m.gain is not None else 1.0
        scale = m.build.full(gain, dtype, (channels,)) if m.scale is None else _channel_vector(m, m.scale, channels)
        if m.scale is not None and gain != 1.0:
            scale = m.build.multiply(scale, gain)
        bias = m.build.full(0.0, dtype, (channels,)) if m.bias is None else _channel_vector(m, m.bias, channels)
        return m.build.GroupNormalization(m.x, scale, bias, num_groups=m.grouped.dims[1], epsilon=m.epsilon)


def _is_per_channel(value: Value, x: Value) -> bool:
    """One number for all, or [C, 1, ..] (perhaps with a leading 1)."""
    if value.rank > x.rank:
        return False
    place = value.rank - (x.rank - 1)
    return all(equal(d, 1) or (i == place and equal(d, x.dims[1])) for i, d in enumerate(value.dims))


def _channel_vector(m: Match, value: Value, channels: Size) -> Value:
    if equal(value.tensor.size, channels):
        vector: Value = m.build.reshape(value, dims=(channels,))
        return vector
    scalar = m.build.reshape(value, dims=())
    spread: Value = m.build.broadcast_in_dim(scalar, dims=(channels,), broadcast_dimensions=())
    return spread
