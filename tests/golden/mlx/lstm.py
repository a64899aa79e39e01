"""MLX code of lstm, written by irc."""

import mlx.core as mx


def _starts(starts, limits):
    """Starts of a block as one vector, clamped so that the block fits."""
    rows = [mx.clip(s, 0, max(limit, 0)).astype(mx.int32) for s, limit in zip(starts, limits, strict=True)]
    return mx.stack(rows)


def main(x, w):
    """x: f32[T,B,4] -> y: f32[T,1,B,8], h: f32[1,B,8], c: f32[1,B,8]"""
    T, B = x.shape[:2]
    constant = mx.array(
        [
            0.023215992, 0.11758209, 0.07973542, -0.07948732, 0.23288253, 0.25224575, -0.03492246, -0.040860597,
            -0.08046411, -0.3158777, 0.031224342, 0.14163394, -0.2025775, 0.25666034, 0.18264562, -0.14870824,
            -0.07830267, 0.23323894, -0.18733673, -0.27509755, 0.013900296, 0.054843653, 0.061193492, 0.08439558,
            0.2706245, 0.13618469, 0.013430791, -0.17715104, 0.07699238, 0.13316043, 0.13308081, 0.09635753,
        ],
        mx.float32,
    )
    constant_1 = mx.array(
        [
            0.028859016, 0.17628267, 0.06683166, -0.22773387, -0.075968914, 0.24831872, -0.033613324, 0.0025218762,
            0.10647022, -0.13532802, -0.01645289, -0.0722359, 0.15839313, 0.09818524, 0.10167119, -0.13471626,
            -0.0096991835, 0.32492948, 0.18263301, -0.21744184, -0.27466443, -0.098863356, 0.19825526, -0.34275854,
            0.16790229, 0.079245985, 0.022186968, -0.087996334, -0.060641173, 0.024272732, -0.20729767, -0.2442633,
        ],
        mx.float32,
    )
    broadcast_in_dim = mx.zeros((B, 8), mx.float32)
    add = mx.addmm(constant, x, w["lstm.w_1_1"].T)
    broadcast_in_dim_1 = mx.zeros((T, B, 8), mx.float32)
    state, state_1, state_2, state_3 = mx.array(0, mx.int64), broadcast_in_dim_1, broadcast_in_dim, broadcast_in_dim
    for _ in range(T):
        dynamic_slice = mx.slice(add, _starts([state], [T - 1]), (0,), (1, B, 32))
        add_1 = dynamic_slice.reshape(B, 32) + mx.addmm(constant_1, state_2, w["lstm.r_1_1"].T)
        multiply = mx.sigmoid(add_1[:, :8]) * mx.tanh(add_1[:, 24:])
        add_2 = mx.sigmoid(add_1[:, 16:24]) * state_3 + multiply
        multiply_1 = mx.sigmoid(add_1[:, 8:16]) * mx.tanh(add_2)
        dynamic_update_slice = mx.slice_update(state_1, multiply_1[None], _starts([state], [T - 1]), (0,))
        add_3 = state + 1
        state, state_1, state_2, state_3 = add_3, dynamic_update_slice, multiply_1, add_2
    y = state_1[:, None]
    h = state_2[None]
    c = state_3[None]
    return y, h, c


def load(path):
    """The weights, from a safetensors file."""
    w = mx.load(path, format="safetensors")
    return w
