"""Folding of per-channel scales and shifts into the weights of the convolution or matrix product before them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..ir import dtypes
from ..ir.build import Builder
from ..ir.graph import Constant, Node, Value
from ..ir.model import Model
from ..ir.rewrite import Rewriter
from .canonicalize.table import ranked, same, same_type
from .manager import Level, Pass, register

_LAYERS = ("Conv", "ConvTranspose", "Gemm")


@register
@dataclass(frozen=True)
class FoldBatchNorm(Pass):
    """Give a constant affine map per channel to the weights of the layer before it.

    %c = Conv(%x, #w); %y = BatchNormalization(%c, #scale, #bias, #mean, #variance)   ->   %y = Conv(%x, #w1, #b1)
    %c = Gemm(%x, #w, #b); %y = multiply(%c, #k)                                       ->   %y = Gemm(%x, #w1, #b1)

    With constant weights, f32 or f64, and no other use of %c.  The new weights are nodes of `init`, in their type.
    Rounding changes: each new weight carries at most three roundings more than the old ones did.
    """

    name: ClassVar[str] = "batch-norm"
    level: ClassVar[Level] = Level.CANONICAL

    def run(self, model: Model, rewriter: Rewriter) -> None:
        derived = dict(zip(model.derived, model.init.outputs, strict=True))
        for node in rewriter.worklist(model.nodes()):
            affine = _affine(node)
            if affine is not None:
                _fold(model, rewriter, affine, derived)


@dataclass(frozen=True)
class _Affine:
    """`node` computes layer * scale + shift per channel; the constants that scale and shift are made of."""

    node: Node
    layer: Node
    kind: str
    constants: tuple[Constant, ...]


def _layer(value: Value | None, user: Node) -> Node | None:
    """The layer with constant weights that computes `value` for this one user, in the same graph (not in a loop's)."""
    node = value.node if value is not None else None
    if node is None or node.op.name not in _LAYERS or value is None or node.graph is not user.graph:
        return None
    if len(value.uses) != 1:
        return None
    weights, bias = node.operands[1], node.operand("c" if node.op.name == "Gemm" else "b")
    if not isinstance(weights, Constant) or not (bias is None or isinstance(bias, Constant)):
        return None
    return node if weights.dtype in (dtypes.f32, dtypes.f64) and ranked(value) else None


def _affine(node: Node) -> _Affine | None:
    if node.op.name == "BatchNormalization":
        layer, rest = _layer(node.operands[0], node), node.operands[1:]
        if layer is None or not same_type(layer.result, node.result):
            return None
        constants = tuple(v for v in rest if isinstance(v, Constant) and v.dtype is layer.result.dtype)
        return _Affine(node, layer, "BatchNormalization", constants) if len(constants) == 4 else None
    if node.op.name not in ("multiply", "add"):
        return None
    layer, constant = _layer(node.operands[0], node), node.operands[1]
    if layer is None or not isinstance(constant, Constant) or not same_type(layer.result, node.result):
        return None
    return _Affine(node, layer, node.op.name, (constant,)) if _is_per_channel(constant, layer) else None


def _is_per_channel(constant: Constant, layer: Node) -> bool:
    """One element for all, or one along the layer's channel axis."""
    channel_from_end = layer.result.rank - 1 if layer.op.name != "Gemm" else 1  # axis 1 of [N, C, ..]; last of [M, N]
    dims = constant.dims
    channels = layer.result.dims[1]
    for place, dim in enumerate(reversed(dims), start=1):
        if not same(dim, 1) and not (place == channel_from_end and same(dim, channels)):
            return False
    return True


def _fold(model: Model, rewriter: Rewriter, affine: _Affine, derived: dict[Constant, Value]) -> None:
    """Write the new layer; `derived` takes derived constants to the values of `init` behind them, and grows."""
    layer, node = affine.layer, affine.node
    build = rewriter.end(model.init).at(node.location)

    def inside(constant: Constant) -> Value:
        return derived.get(constant, constant)

    def publish(name: str, value: Value) -> Constant:
        constant = model.add_derived(name, value)
        derived[constant] = value
        return constant

    channels = layer.result.dims[1]
    scale, shift = _terms(build, node, [_vector(build, inside(c), channels) for c in affine.constants], affine.kind)
    weights = layer.operands[1]
    bias = layer.operand("c" if layer.op.name == "Gemm" else "b")
    assert isinstance(weights, Constant)
    new_weights: Value = weights
    if scale is not None:
        new_weights = publish(
            f"{weights.name or layer.op.name}.folded", _scaled_weights(build, layer, inside(weights), scale)
        )
    new_bias = _new_bias(build, layer, None if bias is None else inside(bias), scale, shift)
    if new_bias is not None:
        stem = (weights.name or layer.op.name).removesuffix(".weight")
        named = bias.name if bias is not None and bias.name else f"{stem}.bias"
        new_bias = publish(f"{named}.folded", new_bias)
    attributes = layer.attributes.as_dict()
    if layer.op.name == "Gemm" and new_bias is not None:
        attributes["beta"] = 1.0
    made = rewriter.before(node, sources=(layer,)).apply(
        layer.op, layer.operands[0], new_weights, new_bias, **attributes
    )
    rewriter.replace(node, made)
    rewriter.erase(layer)


def _vector(build: Builder, value: Value, channels: Any) -> Value:
    """A per-channel constant as a vector; a single element as a scalar."""
    size = value.tensor.size
    if same(size, channels) and value.rank == 1:
        return value
    out: Value = build.reshape(value, dims=(channels,) if same(size, channels) else ())
    return out


def _terms(build: Builder, node: Node, constants: list[Value], kind: str) -> tuple[Value | None, Value | None]:
    """(scale, shift), None for 1 and 0."""
    if kind == "multiply":
        return constants[0], None
    if kind == "add":
        return None, constants[0]
    scale, bias, mean, variance = constants
    factor = build.divide(scale, build.sqrt(build.add(variance, node.keywords["epsilon"])))
    return factor, build.subtract(bias, build.multiply(mean, factor))


def _scaled_weights(build: Builder, layer: Node, weights: Value, scale: Value) -> Value:
    """Each output channel of the weights times its scale."""
    name, dims = layer.op.name, weights.dims
    if scale.rank == 0:
        out = build.multiply(weights, scale)
    elif name == "Conv":
        out = build.multiply(weights, build.reshape(scale, dims=(dims[0],) + (1,) * (len(dims) - 1)))
    elif name == "Gemm":
        out = build.multiply(
            weights, build.reshape(scale, dims=(dims[0], 1)) if layer.keywords["transpose_b"] else scale
        )
    else:
        # ConvTranspose: [C, M / group, kernel..]; output channel g * (M / group) + j is column j of group g's rows.
        groups = layer.keywords["group"]
        split = build.reshape(weights, dims=(groups, dims[0] // groups, *dims[1:]))
        factor = build.reshape(scale, dims=(groups, 1, dims[1], *(1,) * (len(dims) - 2)))
        out = build.reshape(build.multiply(split, factor), dims=dims)
    result: Value = out
    return result


def _new_bias(
    build: Builder, layer: Node, bias: Value | None, scale: Value | None, shift: Value | None
) -> Value | None:
    """bias * scale + shift, with a Gemm's beta taken in."""
    if bias is not None and layer.op.name == "Gemm" and layer.keywords["beta"] != 1.0:
        bias = build.multiply(bias, layer.keywords["beta"])
    if bias is not None and scale is not None:
        bias = build.multiply(bias, scale)
    if bias is None and shift is not None and layer.op.name != "Gemm" and shift.rank == 0:
        channels = layer.result.dims[1]  # a convolution's bias has one element a channel
        spread: Value = build.broadcast_in_dim(shift, dims=(channels,), broadcast_dimensions=())
        return spread
    if shift is not None:
        bias = shift if bias is None else build.add(bias, shift)
    return bias
