"""Optimizer steps and batch normalization in training, against formulas in float64."""

import numpy as np

from irc.testing.operators import run

GENERATOR = np.random.default_rng(7)
RATE, COUNT = np.array(0.1, np.float32), np.array(3, np.int64)


def pairs(*shapes):
    return [GENERATOR.random(s).astype(np.float32) for s in shapes]


def test_adagrad():
    x, g, h = (pairs((2,), (3,)) for _ in range(3))
    got = run("Adagrad", RATE, COUNT, x, g, h, norm_coefficient=0.01, decay_factor=0.1, epsilon=1e-5)
    for i in (0, 1):
        grad = 0.01 * x[i] + g[i]
        square = h[i] + grad**2
        np.testing.assert_allclose(got[i], x[i] - 0.1 / 1.3 * grad / (np.sqrt(square) + 1e-5), rtol=1e-6)
        np.testing.assert_allclose(got[2 + i], square, rtol=1e-6)


def test_adam():
    x, g, v, h = (pairs((2, 2)) for _ in range(4))
    got = run("Adam", RATE, COUNT, x, g, v, h, alpha=0.9, beta=0.99, norm_coefficient=0.01, norm_coefficient_post=0.02)
    grad = 0.01 * x[0] + g[0]
    average, square = 0.9 * v[0] + 0.1 * grad, 0.99 * h[0] + 0.01 * grad**2
    rate = 0.1 * np.sqrt(1 - 0.99**3) / (1 - 0.9**3)
    want = 0.98 * (x[0] - rate * average / (np.sqrt(square) + 1e-6))
    for a, b in zip(got, (want, average, square), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_momentum_first_step_takes_the_whole_gradient():
    x, g, v = (pairs((4,)) for _ in range(3))
    common = {"alpha": 0.9, "beta": 0.5, "norm_coefficient": 0.0}
    _, later = run("Momentum", RATE, COUNT, x, g, v, **common)
    _, first = run("Momentum", RATE, np.array(0, np.int64), x, g, v, **common)
    np.testing.assert_allclose(later, 0.9 * v[0] + 0.5 * g[0], rtol=1e-6)
    np.testing.assert_allclose(first, 0.9 * v[0] + g[0], rtol=1e-6)
    ahead, momentum = run("Momentum", RATE, COUNT, x, g, v, mode="nesterov", **common)
    np.testing.assert_allclose(ahead, x[0] - 0.1 * (g[0] + 0.9 * momentum), rtol=1e-6)


def test_batch_normalization_by_the_batch():
    x = GENERATOR.standard_normal((4, 3, 5)).astype(np.float32)
    scale, bias, mean, variance = pairs(*[(3,)] * 4)
    y, new_mean, new_variance = run("BatchNormalizationTraining", x, scale, bias, mean, variance, momentum=0.8)
    m, v = x.astype(np.float64).mean((0, 2)), x.astype(np.float64).var((0, 2))
    want = (x - m[:, None]) / np.sqrt(v + 1e-5)[:, None] * scale[:, None] + bias[:, None]
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(new_mean, 0.8 * mean + 0.2 * m, rtol=1e-5)
    np.testing.assert_allclose(new_variance, 0.8 * variance + 0.2 * v, rtol=1e-5)
