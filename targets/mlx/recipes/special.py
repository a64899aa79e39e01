"""Recipes for special functions: error functions, logarithm of gamma, digamma."""

import math

import mlx.core as mx

from .floats import _exp, _sin


def _erfc_scale(z):
    """erfc(z) * e^(z^2) for z >= 0: t * e^P(t) with t = 2 / (2 + z), P a Chebyshev series."""
    t = 2 / (2 + z)
    series = (
        -0.6513268598908547, 0.6419697923564905, 0.019476473204185864, -0.009561514786808504, -0.0009465953444820034,
        0.0003668394978529489, 4.252332480707871e-05, -2.027857811206124e-05, -1.6242900046312822e-06,
        1.3036558358342454e-06, 1.5626441852032978e-08, -8.523809562131986e-08, 6.52905464867088e-09,
        5.059343583241921e-09, -9.913641613475565e-10, -2.273652882437441e-10, 9.646805305484137e-11,
        2.3938177183246677e-12, -6.885974513160223e-12, 8.944589612920291e-13, 3.1304732127403363e-13,
        -1.1280448300199595e-13, 3.803013162260659e-16, 6.959467819265782e-15, -1.9172060519322333e-15,
    )  # fmt: skip
    count = len(series) if z.dtype == mx.float64 else 13
    u = 4 * t - 2
    first, second = mx.zeros_like(z), mx.zeros_like(z)
    for c in reversed(series[1:count]):
        first, second = u * first - second + c, first
    return t * _precise_exp(u * first / 2 - second + series[0])


def _precise_exp(x):
    """e^x to the last bits (mx.exp is off by up to 15 of them)."""
    if x.dtype == mx.float64:
        return _exp(x)
    k = mx.round(x * (1 / math.log(2)))
    r = x - k * 0.693359375 + k * 2.12194440e-4
    p = 1 + r * (1 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720 + r / 5040))))))
    half = mx.floor(mx.clip(k, -300, 300) / 2)
    return p * mx.power(mx.array(2.0, x.dtype), half) * mx.power(mx.array(2.0, x.dtype), mx.clip(k, -300, 300) - half)


def _erfc(x):
    """1 - erf(x) without cancellation."""
    z = mx.minimum(mx.abs(x), 40)
    if x.dtype == mx.float64:
        high = z.astype(mx.float32).astype(mx.float64)
    else:
        high = (z.view(mx.int32) & -4096).view(mx.float32)
    tail = _erfc_scale(z) * _precise_exp(-high * high) * _precise_exp((high - z) * (high + z))
    return mx.where(x < 0, 2 - tail, mx.where(x != x, x, tail))


def _erf(x):
    """The error function: a series near 0, 1 - erfc elsewhere."""
    square = x * x
    term, total = 2 / math.sqrt(math.pi) * x, mx.zeros_like(x)
    for n in range(15 if x.dtype == mx.float64 else 8):
        total = total + term / (2 * n + 1)
        term = -term * square / (n + 1)
    tail = 1 - _erfc(mx.abs(x))
    return mx.where(mx.abs(x) < 0.5, total, mx.where(x < 0, -tail, tail))


def _erfinv(x):
    """The inverse error function: MLX's, corrected by two steps of Newton's method."""
    y = mx.erfinv(x.astype(mx.float32)).astype(x.dtype)
    y = mx.where(mx.abs(y) < math.inf, y, mx.where(x < 0, -5.9, 5.9).astype(x.dtype))
    for _ in range(3):
        tail = (1 - mx.abs(x)) - _erfc(mx.abs(y))
        error = mx.where(mx.abs(x) > 0.5, mx.where(x < 0, tail, -tail), _erf(y) - x)
        error = mx.where(mx.abs(x) > 0.5, mx.where(x < 0, -tail, tail), error)
        y = y - error * (math.sqrt(math.pi) / 2) * _precise_exp(y * y)
    y = mx.where(x == 0, x, mx.where(mx.abs(x) == 1, x * math.inf, y))
    return mx.where(mx.abs(x) > 1, math.nan, y)


def _lgamma_positive(x):
    """log gamma(x) for x >= 1/2: Stirling's series after shifting x beyond 8."""
    shift, product = mx.zeros_like(x), mx.ones_like(x)
    for _ in range(8):
        small = x + shift < 8
        product = mx.where(small, product * (x + shift), product)
        shift = mx.where(small, shift + 1, shift)
    z = x + shift
    r = 1 / (z * z)
    series = (
        1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r * (1 / 1188 - r * (691 / 360360 - r / 156)))))
    ) / z
    return (z - 0.5) * (mx.log(z) - 1) - 0.5 + 0.5 * math.log(2 * math.pi) + series - mx.log(product)


def _lgamma_near(e):
    """log gamma(1 + e) for |e| <= 1/4, by its Taylor series: zeta(k) / k."""
    terms, last = (40, 100) if e.dtype == mx.float64 else (14, 12)
    total, rest = mx.zeros_like(e), last - 0.5
    for k in range(terms, 1, -1):
        zeta = sum(n ** -float(k) for n in range(1, last)) + rest ** (1 - k) / (k - 1) - k * rest ** (-1 - k) / 24
        zeta += 7 * k * (k + 1) * (k + 2) * rest ** (-3 - k) / 5760
        total = (total + (-1) ** k * zeta / k) * e
    return (total - 0.5772156649015329) * e


def _lgamma(x):
    """log |gamma(x)|."""
    z = mx.where(x < 0.5, 1 - x, x)
    above = _lgamma_positive(mx.minimum(z, 1e30))
    above = mx.where(mx.abs(z - 1) <= 0.25, _lgamma_near(mx.clip(z - 1, -0.25, 0.25)), above)
    near_two = mx.clip(z - 2, -0.25, 0.25)
    above = mx.where(mx.abs(z - 2) <= 0.25, _lgamma_near(near_two) + mx.log1p(near_two), above)
    above = mx.where(z > 1e30, z * (mx.log(z) - 1), above)
    part = mx.abs(x - mx.round(x))
    below = (
        math.log(math.pi)
        - mx.log(mx.abs(_sin(math.pi * part) if x.dtype == mx.float64 else mx.sin(math.pi * part)))
        - above
    )
    below = mx.where(part == 0, math.inf, below)
    return mx.where(mx.abs(x) == math.inf, math.inf, mx.where(x < 0.5, below, above))


def _digamma(x):
    """The derivative of log gamma: a recurrence up to 8, then an asymptotic series; reflection below 1/2."""
    z = mx.where(x < 0.5, 1 - x, x)
    total = mx.zeros_like(x)
    for _ in range(8):
        small = z < 8
        total = mx.where(small, total - 1 / z, total)
        z = mx.where(small, z + 1, z)
    r = 1 / (z * z)
    series = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * (691 / 32760 - r / 12))))))
    above = total + mx.log(z) - 0.5 / z - series
    part = x - mx.round(x)
    below = above - math.pi / mx.tan(math.pi * part)
    below = mx.where(part == 0, math.nan, below)
    below = mx.where(x == 0, -1 / x, below)
    below = mx.where(x == -math.inf, math.nan, below)
    return mx.where(x < 0.5, below, above)
