"""Recurrent layers with ONNX's conventions: weights, gate order, activations, directions, layout, sequence lengths."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .. import dtypes
from ..dims import equal
from ..facts import make
from ..operators import FLOAT, INTEGER, PURE, Operand, operator
from .gates import PARAMETERS, activations, gate_arrays, gate_values
from .widening import converted, count, statistics_type, wide_array

DIRECTIONS = ("forward", "reverse", "bidirectional")


def layer_facts(ctx, gates, biases, names, x, w, r, b, lens, h0, hidden_size, direction, activations, layout):
    """(y, y_h) of a recurrent layer with `gates` gates and `names` activations a direction; checks all operands."""
    ctx.need(direction in DIRECTIONS, f"direction must be one of {', '.join(DIRECTIONS)}, got {direction!r}")
    ctx.need(layout in (0, 1), f"layout must be 0 or 1, got {layout}")
    count = 2 if direction == "bidirectional" else 1
    ctx.need(x.rank == 3, f"x must be [time, batch, input] (or batch first with layout 1), got {x.type}")
    time, batch = x.dims[:2] if layout == 0 else (x.dims[1], x.dims[0])
    hidden = hidden_size
    ctx.equal_dims(w.dims, (count, gates * hidden, x.dims[2]), "dims of w")
    ctx.equal_dims(r.dims, (count, gates * hidden, hidden), "dims of r")
    if b is not None:
        ctx.equal_dims(b.dims, (count, biases * hidden), "dims of b")
    if lens is not None:
        ctx.equal_dims(lens.dims, (batch,), "dims of sequence_lens")
    state = (count, batch, hidden) if layout == 0 else (batch, count, hidden)
    if h0 is not None:
        ctx.equal_dims(h0.dims, state, "dims of initial_h")
    wanted = names * count
    ctx.need(
        len(activations) in (names, wanted), f"activations needs {names} names a direction, got {list(activations)}"
    )
    for name in activations:
        ctx.need(name in PARAMETERS, f"no activation is called {name!r}; expected one of {', '.join(PARAMETERS)}")
    dtype = ctx.same_dtype(x, w, r, b, h0)
    y = (time, count, batch, hidden) if layout == 0 else (batch, time, count, hidden)
    return make(dtype, *y), make(dtype, *state)


def _lstm_type(
    ctx, x, w, r, b, sequence_lens, initial_h, initial_c, p, *, hidden_size, direction, activations, activation_alpha,
    activation_beta, clip, input_forget, layout,
):  # fmt: skip
    y, state = layer_facts(
        ctx, 4, 8, 3, x, w, r, b, sequence_lens, initial_h, hidden_size, direction, activations, layout
    )
    ctx.same_dtype(x, initial_c, p)
    if initial_c is not None:
        ctx.equal_dims(initial_c.dims, state.dims, "dims of initial_c")
    if p is not None:
        ctx.equal_dims(p.dims, (w.dims[0], 3 * hidden_size), "dims of p")
    return y, state, state


def _gru_type(
    ctx, x, w, r, b, sequence_lens, initial_h, *, hidden_size, direction, activations, activation_alpha,
    activation_beta, clip, linear_before_reset, layout,
):  # fmt: skip
    return layer_facts(ctx, 3, 6, 2, x, w, r, b, sequence_lens, initial_h, hidden_size, direction, activations, layout)


def _rnn_type(
    ctx, x, w, r, b, sequence_lens, initial_h, *, hidden_size, direction, activations, activation_alpha,
    activation_beta, clip, layout,
):  # fmt: skip
    return layer_facts(ctx, 1, 2, 1, x, w, r, b, sequence_lens, initial_h, hidden_size, direction, activations, layout)


# Each layer is a step (gates of x, state..) -> new state.. for one direction.  The reference and the decomposition run
# such steps over time: a row that is past its length keeps its state, so a reverse direction starts at its last one.


def _directions(direction: str) -> tuple[bool, ...]:
    """Whether each direction runs backwards."""
    return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]


def _run_arrays(
    gates, lens, states, backwards: bool, step: Callable[..., Any]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """(y[T,B,H], final states) of one direction on f64 arrays; gates[T,B,G] are those of x, with their bias."""
    y = np.zeros((*gates.shape[:2], states[0].shape[-1]))
    for t in reversed(range(gates.shape[0])) if backwards else range(gates.shape[0]):
        live = np.ones((gates.shape[1], 1), bool) if lens is None else (t < lens)[:, None]
        new = step(gates[t], *states)
        states = [np.where(live, n, s) for n, s in zip(new, states, strict=True)]
        y[t] = np.where(live, states[0], 0)
    return y, states


def _run_values(b, x, project, bias, lens, states, backwards: bool, step: Callable[..., Any]):
    """As `_run_arrays`, by a `while` over time; `project(x)` are the gates of x without bias."""
    time, batch, hidden = x.dims[0], x.dims[1], states[0].dims[1]
    if equal(time, 0) is True:
        return b.full(0, x.dtype, (time, batch, hidden)), states
    gates = project(x)
    gates = gates if bias is None else b.add(gates, bias)
    zero, size = b.constant(0, dtypes.i64), count(b, (time,), dtypes.i64)
    lens = None if lens is None else b.reshape(converted(b, lens, dtypes.i64), dims=(batch, 1))

    def body(inner, s, y, *states):
        t = inner.subtract(inner.subtract(size, 1), s) if backwards else s
        now = inner.dynamic_slice(gates, (t, zero, zero), sizes=(1, batch, gates.dims[2]))
        new = step(inner, inner.reshape(now, dims=(batch, gates.dims[2])), *states)
        row = new[0]
        if lens is not None:
            live = inner.compare(t, lens, direction="lt")
            new = [inner.select(live, n, old) for n, old in zip(new, states, strict=True)]
            row = inner.select(live, new[0], inner.constant(0, x.dtype))
        y = inner.dynamic_update_slice(y, inner.reshape(row, dims=(1, batch, hidden)), (t, zero, zero))
        return inner.add(s, 1), y, *new

    inits = (zero, b.full(0, x.dtype, (time, batch, hidden)), *states)
    types = [v.type for v in inits]
    cond = b.region(types, lambda inner, s, *_: inner.compare(s, size, direction="lt"))
    _, y, *states = b.while_(inits, cond=cond, body=b.region(types, body))
    return y, states


def _part(b, x, axis: int, start: int, size: int):
    """`size` elements of an axis from `start` on."""
    starts = tuple(start if i == axis else 0 for i in range(x.rank))
    limits = tuple(start + size if i == axis else d for i, d in enumerate(x.dims))
    return b.slice(x, starts=starts, limits=limits, strides=(1,) * x.rank)


def row_of(b, x, i: int):
    """Row i of the leading axis, without that axis; None stays."""
    return None if x is None else b.reshape(_part(b, x, 0, i, 1), dims=x.dims[1:])


def layer_arrays(
    ctx, make_step, gates, each, x, w, r, b, lens, initial, direction, names, alphas, betas, clips, layout,
    project=lambda x, w, i: np.matmul(x, w.T),
):  # fmt: skip
    """Results of a layer: every direction run by `make_step(i, functions, r, rb)`, stacked; `gates` gates of x.

    `project(x, w, i)` are the gates of x in direction i, without bias; w and r have one row a gate and element.
    """
    x, w, r = wide_array(x), wide_array(w), wide_array(r)
    if layout:
        x, initial = x.swapaxes(0, 1), [None if v is None else v.swapaxes(0, 1) for v in initial]
    hidden, backwards = r.shape[2], _directions(direction)
    rows = activations(names, alphas, betas, each, len(backwards))
    b = np.zeros((len(backwards), 2 * gates * hidden)) if b is None else wide_array(b)
    ys, finals = [], []
    for i, back in enumerate(backwards):
        zero = np.zeros((x.shape[1], hidden))
        states = [zero if v is None else wide_array(v[i]) for v in initial]
        step = make_step(i, gate_arrays(rows[i], clips), r[i].T, b[i, gates * hidden :])
        y, states = _run_arrays(project(x, w[i], i) + b[i, : gates * hidden], lens, states, back, step)
        ys.append(y)
        finals.append(states)
    y = np.stack(ys, 1)
    states = [np.stack(column) for column in zip(*finals, strict=True)]
    if layout:
        y, states = y.transpose(2, 0, 1, 3), [v.swapaxes(0, 1) for v in states]
    return (y, *states)


def layer_values(
    ctx, make_step, gates, each, x, w, r, b, lens, initial, direction, names, alphas, betas, clips, layout,
    project=lambda b, x, w, i: b.dot_general(x, w, lhs_contracting=(2,), rhs_contracting=(1,)),
):  # fmt: skip
    """As `layer_arrays`; rb is None where there is no bias, and integer weights stay as they are."""
    build, dtype = ctx.build, x.dtype
    wide = statistics_type(dtype)
    x, w, r = (converted(build, v, wide) if v.dtype.is_float else v for v in (x, w, r))
    initial = [None if v is None else converted(build, v, wide) for v in initial]
    if layout:
        x = build.transpose(x, permutation=(1, 0, 2))
        initial = [None if v is None else build.transpose(v, permutation=(1, 0, 2)) for v in initial]
    hidden, backwards = r.dims[2], _directions(direction)
    rows = activations(names, alphas, betas, each, len(backwards))
    ys, finals = [], []
    for i, back in enumerate(backwards):
        zero = build.full(0, wide, (x.dims[1], hidden))
        states = [zero if v is None else row_of(build, v, i) for v in initial]
        bias = None if b is None else converted(build, row_of(build, b, i), wide)
        wb, rb = (None if b is None else _part(build, bias, 0, k * gates * hidden, gates * hidden) for k in (0, 1))
        step = make_step(i, gate_values(rows[i], clips), row_of(build, r, i), rb)
        y, states = _run_values(build, x, partial(_projected, build, project, w, i), wb, lens, states, back, step)
        ys.append(build.reshape(y, dims=(y.dims[0], 1, *y.dims[1:])))
        finals.append([build.reshape(v, dims=(1, *v.dims)) for v in states])
    y = ys[0] if len(ys) == 1 else build.concatenate(tuple(ys), axis=1)
    states = [c[0] if len(c) == 1 else build.concatenate(c, axis=0) for c in zip(*finals, strict=True)]
    if layout:
        y = build.transpose(y, permutation=(2, 0, 1, 3))
        states = [build.transpose(v, permutation=(1, 0, 2)) for v in states]
    return tuple(converted(build, v, dtype) for v in (y, *states))


def _projected(b, project, w, i, x):
    return project(b, x, row_of(b, w, i), i)


def _recurrent_product(b, h, r, bias):
    """h[B,H] times r[G,H], plus the bias if there is one."""
    y = b.dot_general(h, r, lhs_contracting=(1,), rhs_contracting=(1,))
    return y if bias is None else b.add(y, bias)


def lstm_array_step(functions, recurrent, p, hidden_size, input_forget):
    """(gates of x, h, c) -> (h, c); `recurrent(h)` are the gates of h with bias, p the peepholes[3 * H] or None."""
    f, g, h = functions
    peepholes = np.zeros((3, hidden_size)) if p is None else wide_array(p).reshape(3, hidden_size)

    def step(gates, hidden, cell):
        i, o, f_, c = np.split(gates + recurrent(hidden), 4, -1)
        i = f(i + peepholes[0] * cell)
        f_ = 1 - i if input_forget else f(f_ + peepholes[2] * cell)
        cell = f_ * cell + i * g(c)
        return f(o + peepholes[1] * cell) * h(cell), cell

    return step


def _lstm_reference(
    ctx, x, w, r, b, sequence_lens, initial_h, initial_c, p, *, hidden_size, direction, activations, activation_alpha,
    activation_beta, clip, input_forget, layout,
):  # fmt: skip
    def make_step(i, functions, r, rb):
        row = None if p is None else p[i]
        return lstm_array_step(functions, lambda hidden: hidden @ r + rb, row, hidden_size, input_forget)

    return layer_arrays(
        ctx, make_step, 4, 3, x, w, r, b, sequence_lens, [initial_h, initial_c], direction, activations,
        activation_alpha, activation_beta, (clip, clip, 0.0), layout,
    )  # fmt: skip


def lstm_step(build, functions, recurrent, p, hidden_size, input_forget):
    """As `lstm_array_step`; p is in the type of the states, `recurrent` takes the builder too."""
    f, g, h = functions
    peepholes = [None if p is None else _part(build, p, 0, k * hidden_size, hidden_size) for k in range(3)]

    def step(inner, gates, hidden, cell):
        def seen(gate, k):
            return gate if p is None else inner.add(gate, inner.multiply(peepholes[k], cell))

        gates = inner.add(gates, recurrent(inner, hidden))
        i, o, f_, c = (_part(inner, gates, 1, k * hidden_size, hidden_size) for k in range(4))
        i = f(inner, seen(i, 0))
        f_ = inner.subtract(inner.constant(1, i.dtype), i) if input_forget else f(inner, seen(f_, 2))
        cell = inner.add(inner.multiply(f_, cell), inner.multiply(i, g(inner, c)))
        return inner.multiply(f(inner, seen(o, 1)), h(inner, cell)), cell

    return step


def _lstm(
    ctx, x, w, r, b, sequence_lens, initial_h, initial_c, p, *, hidden_size, direction, activations, activation_alpha,
    activation_beta, clip, input_forget, layout,
):  # fmt: skip
    build = ctx.build

    def make_step(index, functions, r, rb):
        row = None if p is None else converted(build, row_of(build, p, index), r.dtype)

        def recurrent(inner, hidden):
            return _recurrent_product(inner, hidden, r, rb)

        return lstm_step(build, functions, recurrent, row, hidden_size, input_forget)

    return layer_values(
        ctx, make_step, 4, 3, x, w, r, b, sequence_lens, [initial_h, initial_c], direction, activations,
        activation_alpha, activation_beta, (clip, clip, 0.0), layout,
    )  # fmt: skip


def _gru_reference(
    ctx, x, w, r, b, sequence_lens, initial_h, *, hidden_size, direction, activations, activation_alpha,
    activation_beta, clip, linear_before_reset, layout,
):  # fmt: skip
    def make_step(i, functions, r, rb):
        f, g = functions
        two = 2 * hidden_size

        def step(gates, hidden):
            z, reset = np.split(f(gates[:, :two] + hidden @ r[:, :two] + rb[:two]), 2, -1)
            if linear_before_reset:
                product = reset * (hidden @ r[:, two:] + rb[two:])
            else:
                product = (reset * hidden) @ r[:, two:] + rb[two:]
            return ((1 - z) * g(gates[:, two:] + product) + z * hidden,)

        return step

    return layer_arrays(
        ctx, make_step, 3, 2, x, w, r, b, sequence_lens, [initial_h], direction, activations, activation_alpha,
        activation_beta, (clip, clip), layout,
    )  # fmt: skip


def _gru(
    ctx, x, w, r, b, sequence_lens, initial_h, *, hidden_size, direction, activations, activation_alpha,
    activation_beta, clip, linear_before_reset, layout,
):  # fmt: skip
    build = ctx.build

    def make_step(index, functions, r, rb):
        f, g = functions
        n = hidden_size
        r_gates, r_new = _part(build, r, 0, 0, 2 * n), _part(build, r, 0, 2 * n, n)
        b_gates, b_new = (None, None) if rb is None else (_part(build, rb, 0, 0, 2 * n), _part(build, rb, 0, 2 * n, n))

        def step(inner, gates, hidden):
            both = inner.add(_part(inner, gates, 1, 0, 2 * n), _recurrent_product(inner, hidden, r_gates, b_gates))
            both = f(inner, both)
            z, reset = _part(inner, both, 1, 0, n), _part(inner, both, 1, n, n)
            if linear_before_reset:
                product = inner.multiply(reset, _recurrent_product(inner, hidden, r_new, b_new))
            else:
                product = _recurrent_product(inner, inner.multiply(reset, hidden), r_new, b_new)
            new = g(inner, inner.add(_part(inner, gates, 1, 2 * n, n), product))
            rest = inner.subtract(inner.constant(1, z.dtype), z)
            return (inner.add(inner.multiply(rest, new), inner.multiply(z, hidden)),)

        return step

    return layer_values(
        ctx, make_step, 3, 2, x, w, r, b, sequence_lens, [initial_h], direction, activations, activation_alpha,
        activation_beta, (clip, clip), layout,
    )  # fmt: skip


def _rnn_reference(
    ctx, x, w, r, b, sequence_lens, initial_h, *, hidden_size, direction, activations, activation_alpha,
    activation_beta, clip, layout,
):  # fmt: skip
    def make_step(i, functions, r, rb):
        return lambda gates, hidden: (functions[0](gates + hidden @ r + rb),)

    return layer_arrays(
        ctx, make_step, 1, 1, x, w, r, b, sequence_lens, [initial_h], direction, activations, activation_alpha,
        activation_beta, (clip,), layout,
    )  # fmt: skip


def _rnn(
    ctx, x, w, r, b, sequence_lens, initial_h, *, hidden_size, direction, activations, activation_alpha,
    activation_beta, clip, layout,
):  # fmt: skip
    def make_step(index, functions, r, rb):
        def step(inner, gates, hidden):
            return (functions[0](inner, inner.add(gates, _recurrent_product(inner, hidden, r, rb))),)

        return step

    return layer_values(
        ctx, make_step, 1, 1, x, w, r, b, sequence_lens, [initial_h], direction, activations, activation_alpha,
        activation_beta, (clip,), layout,
    )  # fmt: skip


@operator("LSTM", family="recurrent", traits=PURE)
class LSTM:
    """ONNX LSTM (gates i, o, f, c).  x[T,B,I], w[D,4H,I], r[D,4H,H], b[D,8H], sequence_lens[B], h0/c0[D,B,H], p[D,3H].

    (y[T,D,B,H], y_h[D,B,H], y_c[D,B,H]); with layout 1 batch comes first.  Rows past their sequence length are 0 in y.
    activations: 3 names a direction; activation_alpha / activation_beta fill their parameters in order.  clip > 0
    limits what the gates' activations are applied to (not the cell).  input_forget: f is 1 - i.
    """

    x: Operand[FLOAT]
    w: Operand[FLOAT]
    r: Operand[FLOAT]
    b: Operand[FLOAT] | None = None
    sequence_lens: Operand[INTEGER] | None = None
    initial_h: Operand[FLOAT] | None = None
    initial_c: Operand[FLOAT] | None = None
    p: Operand[FLOAT] | None = None
    hidden_size: int
    direction: str = "forward"
    activations: tuple[str, ...] = ("Sigmoid", "Tanh", "Tanh")
    activation_alpha: tuple[float, ...] = ()
    activation_beta: tuple[float, ...] = ()
    clip: float = 0.0
    input_forget: bool = False
    layout: int = 0
    infer = _lstm_type
    reference = _lstm_reference
    decompose = _lstm


@operator("GRU", family="recurrent", traits=PURE)
class GRU:
    """ONNX GRU (gates z, r, h).  x[T,B,I], w[D,3H,I], r[D,3H,H], b[D,6H], sequence_lens[B], initial_h[D,B,H].

    (y[T,D,B,H], y_h[D,B,H]); otherwise as LSTM.  activations: 2 names a direction.
    """

    x: Operand[FLOAT]
    w: Operand[FLOAT]
    r: Operand[FLOAT]
    b: Operand[FLOAT] | None = None
    sequence_lens: Operand[INTEGER] | None = None
    initial_h: Operand[FLOAT] | None = None
    hidden_size: int
    direction: str = "forward"
    activations: tuple[str, ...] = ("Sigmoid", "Tanh")
    activation_alpha: tuple[float, ...] = ()
    activation_beta: tuple[float, ...] = ()
    clip: float = 0.0
    linear_before_reset: bool = False
    layout: int = 0
    infer = _gru_type
    reference = _gru_reference
    decompose = _gru


@operator("RNN", family="recurrent", traits=PURE)
class RNN:
    """ONNX RNN.  x[T,B,I], w[D,H,I], r[D,H,H], b[D,2H], sequence_lens[B], initial_h[D,B,H].  (y, y_h) as GRU."""

    x: Operand[FLOAT]
    w: Operand[FLOAT]
    r: Operand[FLOAT]
    b: Operand[FLOAT] | None = None
    sequence_lens: Operand[INTEGER] | None = None
    initial_h: Operand[FLOAT] | None = None
    hidden_size: int
    direction: str = "forward"
    activations: tuple[str, ...] = ("Tanh",)
    activation_alpha: tuple[float, ...] = ()
    activation_beta: tuple[float, ...] = ()
    clip: float = 0.0
    layout: int = 0
    infer = _rnn_type
    reference = _rnn_reference
    decompose = _rnn
