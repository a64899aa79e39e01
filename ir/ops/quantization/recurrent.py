"""DynamicQuantizeLSTM: an LSTM whose inputs and states are quantized anew at every product with its integer weights."""

import numpy as np

from ... import dtypes
from ...facts import make
from ...operators import FLOAT, INTEGER, PURE, Operand, operator
from ..recurrent import layer_arrays, layer_facts, layer_values, lstm_array_step, lstm_step, row_of
from ..widening import converted
from .linear import _dynamic_reference
from .products import _exact_product, _moved_array, integer_matmul


def _type(
    ctx, x, w, r, b, sequence_lens, initial_h, initial_c, p, w_scale, w_zero_point, r_scale, r_zero_point, *,
    hidden_size, direction, activations, activation_alpha, activation_beta, clip, input_forget,
):  # fmt: skip
    def turned(weights, what):
        ctx.need(weights.rank == 3, f"{what} must be [directions, inputs, 4 * hidden_size], got {weights.type}")
        d, i, g = weights.dims
        return make(x.dtype, d, g, i)

    y, state = layer_facts(
        ctx, 4, 8, 3, x, turned(w, "w"), turned(r, "r"), b, sequence_lens, initial_h, hidden_size, direction,
        activations, 0,
    )  # fmt: skip
    ctx.same_dtype(x, initial_c, p, w_scale, r_scale)
    if initial_c is not None:
        ctx.equal_dims(initial_c.dims, state.dims, "dims of initial_c")
    if p is not None:
        ctx.equal_dims(p.dims, (w.dims[0], 3 * hidden_size), "dims of p")
    for what, v in (("w_scale", w_scale), ("w_zero_point", w_zero_point), ("r_scale", r_scale),
                    ("r_zero_point", r_zero_point)):  # fmt: skip
        ctx.need(v.rank in (1, 2), f"{what} must be [directions] or [directions, 4 * hidden_size], got {v.type}")
        ctx.equal_dims(v.dims, (w.dims[0], 4 * hidden_size)[: v.rank], f"dims of {what}")
    return y, state, state


def _product_array(a, weights, scale, zero_point):
    """a[.., I] quantized as DynamicQuantizeLinear does, times weights[I, G] less their zero points, scaled, in f32."""
    q, a_scale, a_zero_point = _dynamic_reference(None, a.astype(np.float32))
    total = _exact_product(_moved_array(q, a_zero_point), _moved_array(weights, zero_point))
    return (total.astype(np.float32) * (a_scale * scale)).astype(np.float64)


def _product(b, a, weights, scale, zero_point):
    """As `_product_array`."""
    q, a_scale, a_zero_point = b.DynamicQuantizeLinear(a)
    total = integer_matmul(b, q, weights, a_zero_point, zero_point)
    return b.multiply(converted(b, total, dtypes.f32), b.multiply(scale, a_scale))


def _reference(
    ctx, x, w, r, b, sequence_lens, initial_h, initial_c, p, w_scale, w_zero_point, r_scale, r_zero_point, *,
    hidden_size, direction, activations, activation_alpha, activation_beta, clip, input_forget,
):  # fmt: skip
    def project(x, w, i):
        return _product_array(x, w.T, w_scale[i], w_zero_point[i])

    def make_step(i, functions, r, rb):
        def recurrent(hidden):
            return _product_array(hidden, r, r_scale[i], r_zero_point[i]) + rb

        return lstm_array_step(functions, recurrent, None if p is None else p[i], hidden_size, input_forget)

    return layer_arrays(
        ctx, make_step, 4, 3, x, w.transpose(0, 2, 1), r.transpose(0, 2, 1), b, sequence_lens, [initial_h, initial_c],
        direction, activations, activation_alpha, activation_beta, (clip, clip, 0.0), 0, project,
    )  # fmt: skip


def _decompose(
    ctx, x, w, r, b, sequence_lens, initial_h, initial_c, p, w_scale, w_zero_point, r_scale, r_zero_point, *,
    hidden_size, direction, activations, activation_alpha, activation_beta, clip, input_forget,
):  # fmt: skip
    build = ctx.build

    def project(b, x, w, i):
        return _product(b, x, _turned(b, w), row_of(b, w_scale, i), row_of(b, w_zero_point, i))

    def make_step(i, functions, r, rb):
        weights, scale, zero_point = _turned(build, r), row_of(build, r_scale, i), row_of(build, r_zero_point, i)

        def recurrent(inner, hidden):
            gates = _product(inner, hidden, weights, scale, zero_point)
            return gates if rb is None else inner.add(gates, rb)

        row = None if p is None else row_of(build, p, i)
        return lstm_step(build, functions, recurrent, row, hidden_size, input_forget)

    w, r = (build.transpose(v, permutation=(0, 2, 1)) for v in (w, r))
    return layer_values(
        ctx, make_step, 4, 3, x, w, r, b, sequence_lens, [initial_h, initial_c], direction, activations,
        activation_alpha, activation_beta, (clip, clip, 0.0), 0, project,
    )  # fmt: skip


def _turned(b, weights):
    return b.transpose(weights, permutation=(1, 0))


@operator("DynamicQuantizeLSTM", family="quantization", traits=PURE)
class DynamicQuantizeLSTM:
    """LSTM with integer weights w[D,I,4H], r[D,H,4H]; their scales and zero points are [D], or [D,4H] one a column.

    Everything else as in LSTM with layout 0.  x as a whole, and the state [B,H] before each step as a whole, are
    quantized as by DynamicQuantizeLinear; products of integers are exact; f32(sum) * (their scale * the weights' scale)
    is what LSTM has as the product.
    """

    x: Operand[FLOAT]
    w: Operand[INTEGER]
    r: Operand[INTEGER]
    b: Operand[FLOAT] | None = None
    sequence_lens: Operand[INTEGER] | None = None
    initial_h: Operand[FLOAT] | None = None
    initial_c: Operand[FLOAT] | None = None
    p: Operand[FLOAT] | None = None
    w_scale: Operand[FLOAT]
    w_zero_point: Operand[INTEGER]
    r_scale: Operand[FLOAT]
    r_zero_point: Operand[INTEGER]
    hidden_size: int
    direction: str = "forward"
    activations: tuple[str, ...] = ("Sigmoid", "Tanh", "Tanh")
    activation_alpha: tuple[float, ...] = ()
    activation_beta: tuple[float, ...] = ()
    clip: float = 0.0
    input_forget: bool = False
    infer = _type
    reference = _reference
    decompose = _decompose
