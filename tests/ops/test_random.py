"""Random operators: known answers of Threefry, distributions, and that equal keys give equal bits on every target."""

import numpy as np
import onnx
import pytest
from scipy import special, stats

import irc
from irc.ir import dtypes
from irc.ir.build import function
from irc.ir.errors import InferenceError
from irc.ir.model import Model
from irc.ir.ops.gauss import QUANTILES
from irc.ir.ops.random import POWERS, normal_quantiles
from irc.ir.reference import evaluate
from irc.ir.types import TensorType
from irc.testing.operators import check_composite, model_of, run

KEY = np.array([0x13198A2E, 0x03707344], np.uint32)
MANY = 100_000


def threefry(key, counter):
    """Threefry-2x32-20 written down once more, on Python integers, both words."""
    mask, words = 0xFFFFFFFF, (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = (counter[0] + words[0]) & mask, (counter[1] + words[1]) & mask
    for i in range(20):
        x = (x + y) & mask
        r = ((13, 15, 26, 6), (17, 29, 16, 24))[i // 4 % 2][i % 4]
        y = (((y << r) | (y >> (32 - r))) & mask) ^ x
        if i % 4 == 3:
            group = i // 4 + 1
            x = (x + words[group % 3]) & mask
            y = (y + words[(group + 1) % 3] + group) & mask
    return x, y


def test_threefry_is_the_published_one():
    """The known answers of the Random123 distribution."""
    assert threefry((0, 0), (0, 0)) == (0x6B200159, 0x99BA4EFE)
    assert threefry((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF)) == (0x1CB996FC, 0xBB002BE7)


def test_bits_are_threefry_blocks():
    bits = check_composite("RandomBits", KEY, dims=(2, 3))
    want = [threefry(tuple(map(int, KEY)), (0, i))[0] for i in range(6)]
    assert bits.reshape(-1).tolist() == want


def test_uniform():
    u = run("RandomUniform", KEY, dims=(MANY,), low=-1.0, high=3.0)
    assert u.min() >= -1
    assert u.max() < 3
    assert stats.kstest(u, "uniform", (-1, 4)).pvalue > 1e-3
    bits = run("RandomBits", KEY, dims=(MANY,)).astype(np.float64)
    np.testing.assert_array_equal(u, (bits * 4 / 2**32 - 1).astype(np.float32))


@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64, dtypes.f16, dtypes.bf16], ids=str)
@pytest.mark.parametrize("low, high", [(1.0, 1.0 + 2.0**-6), (3.0, -1.0), (0.1, 0.7), (1e-38, 2e-38), (-0.3, 0.0)])
def test_uniform_stays_in_its_interval(dtype, low, high):
    if dtype is dtypes.f16 and high < 1e-30:
        low, high = 0.0, 2.0**-24  # the least subnormal number
    held = [np.float32(v).astype(dtype.numpy) if dtype.bits < 32 else np.float32(v) for v in (low, high)]
    u = run("RandomUniform", KEY, dims=(1 << 16,), dtype=dtype, low=low, high=high)
    assert u.dtype == dtype.numpy
    assert u.min() >= min(held)
    assert u.max() <= max(held)
    assert not (u == held[1]).any()


def test_uniform_of_one_number():
    assert (run("RandomUniform", KEY, dims=(9,), low=3.0, high=3.0) == 3).all()


def test_the_table_of_quantiles_is_what_its_text_says():
    nodes = (1 + np.cos(np.pi * np.arange(1, 10, 2) / 10)) / 2
    fit = np.linalg.inv(np.vander(nodes, increasing=True)).T * (-1.0) ** np.arange(5)
    parts = [2.0 ** -(5 + z) * np.arange(8 + i, 10 + i) for z in range(32) for i in range(8)]
    rows = [-special.ndtri(a + (b - a) * nodes) * 2**32 @ fit for a, b in parts]
    np.testing.assert_allclose(QUANTILES, rows, atol=0.51, rtol=0)


def test_powers_of_two_are_what_their_text_says():
    t, out = np.linspace(0, 1, 10_001), 0.0
    for c in reversed(POWERS):
        out = c - t * out
    assert np.abs(out / 2**31 - 2.0**-t).max() < 2**-28.7


def test_quantiles_are_right_from_end_to_end():
    edges = np.concatenate([2 ** np.arange(32) + d for d in (-1, 0, 1)] + [np.arange(2**31 - 99, 2**31), np.arange(99)])
    spread = np.random.default_rng(0).integers(0, 2**31, 100_000)
    lower = np.unique(np.concatenate([edges, spread]))
    lower = lower[lower < 2**31].astype(np.uint32)
    model = Model("quantiles")
    function(model, "main", [("bits", TensorType(dtypes.u32, (2 * lower.size,)))], normal_quantiles)
    (got,) = evaluate(model, [np.concatenate([lower, ~lower])])
    below, above = np.split(got, 2)
    np.testing.assert_array_equal(below, -above)
    error = below / 2**32 - special.ndtri((lower + 0.5) / 2**32)
    assert np.abs(error).max() < 2**-27.8
    assert above[0] / 2**32 == pytest.approx(6.338, abs=1e-3)


def test_normal():
    x = run("RandomNormal", KEY, dims=(MANY,), mean=2.0, scale=0.5)
    assert stats.kstest(x, "norm", (2, 0.5)).pvalue > 1e-3
    bits = run("RandomBits", KEY, dims=(MANY,))
    want = 2 + 0.5 * special.ndtri((bits + 0.5) / 2**32)
    assert (np.abs(x - want) <= np.spacing(np.abs(x)) / 2 + 2**-28.7).all()


@pytest.mark.parametrize(
    "mean, scale, want",
    [(5.0, 0.0, 5.0), (0.0, 0.0, 0.0), (1e30, 1e-30, 1e30), (-3e-30, 1e-38, -3e-30)],
)
def test_normal_that_cannot_leave_its_mean(mean, scale, want):
    assert (run("RandomNormal", KEY, dims=(99,), mean=mean, scale=scale) == np.float32(want)).all()


def test_normal_of_odd_scales_is_a_rounded_sum():
    n = run("RandomNormal", KEY, dims=(MANY,))
    off = np.spacing(np.abs(n)).astype(np.float64) / 2
    for mean, scale in ((0.1, 1e6), (1e6, 0.1), (0.0, -3e-20), (1e37, 1e36)):
        x = run("RandomNormal", KEY, dims=(MANY,), mean=mean, scale=scale)
        mean, scale = np.float32([mean, scale]).astype(np.float64)
        want, unit = mean + scale * n.astype(np.float64), np.spacing(np.abs(x)).astype(np.float64)
        assert (np.abs(x - want) <= unit / 2 + abs(scale) * off + 2**-28 * (abs(mean) + 7 * abs(scale))).all()


@pytest.mark.parametrize(
    "name, attributes, message",
    [
        ("RandomNormal", {"mean": np.inf}, "mean must be finite in f32 and f32, got inf"),
        ("RandomNormal", {"scale": np.nan}, "scale must be finite in f32 and f32, got nan"),
        ("RandomUniform", {"high": 1e39}, "high must be finite in f32 and f32, got 1e[+]39"),
        ("RandomUniform", {"low": -1e5, "dtype": dtypes.f16}, "low must be finite in f32 and f16, got -100000"),
        ("RandomUniform", {"dtype": dtypes.i32}, "dtype must be a floating-point type, got i32"),
    ],
)
def test_attributes_that_give_no_distribution(name, attributes, message):
    with pytest.raises(InferenceError, match=message):
        run(name, KEY, dims=(3,), **attributes)


def test_bernoulli_and_multinomial_follow_their_probabilities():
    hits = run("Bernoulli", KEY, np.full(MANY, 0.3, np.float32), dtype=dtypes.i32)
    assert abs(hits.mean() - 0.3) < 4 * np.sqrt(0.21 / MANY)
    logits = np.log(np.array([[0.2, 0.5, 0.3]], np.float32))
    drawn = run("Multinomial", KEY, logits, samples=MANY)
    counts = np.bincount(drawn[0], minlength=3)
    assert stats.chisquare(counts, MANY * np.array([0.2, 0.5, 0.3])).pvalue > 1e-3


def test_bernoulli_at_its_ends():
    x = np.array([0, 1, np.nan, -1, 2, np.inf, -np.inf, 1e-40, np.nextafter(0, 1)], np.float32)
    hits = run("Bernoulli", KEY, np.repeat(x[:, None], 1000, axis=1), dtype=dtypes.i32)
    assert hits.mean(axis=1).tolist() == [0, 1, 0, 0, 1, 1, 0, 0, 0]


def test_multinomial_of_many_classes_and_of_rows_without_any():
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 3, (1, 50)).astype(np.float32)
    drawn = run("Multinomial", KEY, logits, samples=MANY, dtype=dtypes.i64)[0]
    p = special.softmax(logits[0].astype(np.float64))
    often = p * MANY > 20
    counts = np.bincount(drawn, minlength=50)
    observed, expected = (np.append(v[often], v[~often].sum()) for v in (counts, p * MANY))
    assert stats.chisquare(observed, expected * (observed.sum() / expected.sum())).pvalue > 1e-3
    nan, inf = np.nan, np.inf
    odd = np.array(
        [[1, 2, nan], [0, 3, inf], [-inf] * 3, [-inf, -inf, 5], [-30, -30, 5], [3e38, -3e38, 3e38]], np.float32
    )
    drawn = run("Multinomial", KEY, odd, samples=1000)
    assert [sorted(set(row)) for row in drawn.tolist()] == [[0], [0], [0], [2], [2], [0, 2]]
    with pytest.raises(InferenceError, match="there must be classes"):
        run("Multinomial", KEY, np.zeros((1, 0), np.float32))


def test_dropout_scales_what_it_keeps():
    x = np.arange(1, 1001, dtype=np.float32)
    y, mask = run("Dropout", KEY, x, np.array(0.25, np.float32))
    np.testing.assert_allclose(y, np.where(mask, x / 0.75, 0), rtol=1e-6)
    assert abs(mask.mean() - 0.75) < 4 * np.sqrt(0.25 * 0.75 / 1000)
    y, mask = run("Dropout", KEY, x, np.array(0.0, np.float32))
    assert mask.all()
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("other", [KEY ^ np.uint32(1), KEY[::-1].copy()])
def test_other_keys_give_other_numbers(other):
    assert (run("RandomBits", KEY, dims=(64,)) != run("RandomBits", other, dims=(64,))).sum() > 60


TARGETS = ("reference", "xla", "mlx{compile=off}", "onnx")
HEAD = '<ir_version: 10, opset_import: ["" : 22]>'


def sampler(seed):
    """The samplers of ONNX for 1e5 numbers, seeded or not."""
    seed = "" if seed is None else f", seed = {seed}"
    return onnx.parser.parse_model(f"""{HEAD}
    agraph () => (float[{MANY}] u, float[{MANY}] x, int32[{MANY}] hits) {{
        share = Constant <value = float {{0.3}}> ()
        count = Constant <value_ints = [{MANY}]> ()
        p = Expand (share, count)
        u = RandomUniform <shape = [{MANY}], low = -1.0, high = 3.0 {seed}> ()
        x = RandomNormal <shape = [{MANY}], mean = 2.0, scale = 0.5 {seed}> ()
        hits = Bernoulli <dtype = 6 {seed}> (p)
    }}""")


@pytest.fixture(scope="module")
def samples():
    """What each target draws from the seeded samplers."""
    model = irc.import_onnx(sampler(7.0))
    return {target: [np.asarray(a) for a in irc.compile(model, target=target)()] for target in TARGETS}


@pytest.mark.parametrize("target", TARGETS)
def test_samples_of_targets_follow_their_distributions(samples, target):
    u, x, hits = samples[target]
    assert stats.kstest(u, "uniform", (-1, 4)).pvalue > 1e-3
    assert stats.kstest(x, "norm", (2, 0.5)).pvalue > 1e-3
    assert stats.binomtest(int(hits.sum()), MANY, 0.3).pvalue > 1e-3
    assert abs(np.corrcoef(u, x)[0, 1]) < 4 / np.sqrt(MANY)  # two nodes, one seed


def bits_of(x):
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


@pytest.mark.parametrize("target", TARGETS[1:])
def test_targets_draw_the_same_numbers(samples, target):
    for got, want in zip(samples[target], samples["reference"], strict=True):
        np.testing.assert_array_equal(bits_of(got), bits_of(want))


def assert_equal_bits(target, name, *operands, key=KEY, **attributes):
    model, _ = model_of(name, key, *operands, **attributes)
    results = [irc.compile(model, target=t)(key, *operands) for t in ("reference", target)]
    for want, got in zip(*(r if isinstance(r, tuple) else (r,) for r in results), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(bits_of(got), bits_of(want))


SOME = (dtypes.f32, dtypes.f64, dtypes.f16, dtypes.bf16)


def passes_bf16(target, dtype):
    """ONNX Runtime's Python interface takes and gives no bf16."""
    return target != "onnx" or dtype is not dtypes.bf16


@pytest.mark.parametrize("target", TARGETS[1:])
@pytest.mark.parametrize("mean, scale", [
    (0.0, 1.0), (2.0, 0.5), (0.3, 1.7), (1e6, 0.1), (0.1, -1e6), (-3e-30, 1e-36), (1e38, 1e38),
])  # fmt: skip
def test_normal_numbers_are_equal_to_the_bit(target, mean, scale):
    assert_equal_bits(target, "RandomNormal", dims=(MANY,), mean=mean, scale=scale)


@pytest.mark.parametrize("target", TARGETS[1:])
@pytest.mark.parametrize("low, high", [
    (0.0, 1.0), (0.1, 0.7), (1.0, 1 + 2.0**-22), (-1e-30, 1e30), (3.0, -1.0), (-3e38, 3e38),
])  # fmt: skip
def test_uniform_numbers_are_equal_to_the_bit(target, low, high):
    assert_equal_bits(target, "RandomUniform", dims=(MANY,), low=low, high=high)


@pytest.mark.parametrize("target", TARGETS[1:])
def test_numbers_of_every_type_are_equal_to_the_bit(target):
    for dtype in SOME:
        if passes_bf16(target, dtype):
            assert_equal_bits(target, "RandomNormal", dims=(MANY,), mean=0.3, scale=1.7, dtype=dtype)
            assert_equal_bits(target, "RandomUniform", dims=(MANY,), low=-0.3, high=1.7, dtype=dtype)


@pytest.mark.parametrize("target", TARGETS[1:])
@pytest.mark.parametrize("key", [(0, 0), (2**32 - 1, 2**32 - 1), (0, 2**31)])
def test_numbers_of_extreme_keys_are_equal_to_the_bit(target, key):
    assert_equal_bits(target, "RandomNormal", key=np.array(key, np.uint32), dims=(4, 1000), mean=-1.0, scale=3.3)


@pytest.mark.parametrize("target", TARGETS[1:])
def test_choices_and_masks_are_equal_to_the_bit(target):
    rng = np.random.default_rng(0)
    p, logits = rng.random(MANY), rng.normal(0, 4, (5, 40))
    p[:8], logits[0, ::2], logits[1] = (0, 1, np.nan, -1, 2, 2.0**-32, np.inf, -np.inf), -np.inf, -np.inf
    for dtype in SOME:
        if passes_bf16(target, dtype):
            assert_equal_bits(target, "Bernoulli", p.astype(dtype.numpy), dtype=dtypes.i32)
            assert_equal_bits(target, "Dropout", p[8:].astype(dtype.numpy), np.array(0.3, np.float32))
    assert_equal_bits(target, "Multinomial", logits.astype(np.float32), samples=2000)
    assert_equal_bits(target, "Dropout", p[8:].astype(np.float32), np.array(0.7, np.float64))


def test_fused_kernels_of_mlx_draw_the_same_numbers():
    assert_equal_bits("mlx{compile=on}", "RandomNormal", dims=(MANY,), mean=0.3, scale=1.7)


@pytest.mark.parametrize("target", TARGETS)
def test_without_a_seed_every_run_differs_and_seed_fixes_it(target):
    text = f"""{HEAD}
    agraph () => (float[64] u) {{ u = RandomUniform <shape = [64]> () }}"""
    model = irc.import_onnx(onnx.parser.parse_model(text))
    run_once = irc.compile(model, target=target)
    first, second = (np.asarray(run_once()[0]) for _ in range(2))
    assert (first != second).sum() > 60
    fixed = [np.asarray(irc.compile(model, target=target, seed=5)()[0]) for _ in range(2)]
    np.testing.assert_array_equal(*fixed)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", ["", ", seed = 3.0"], ids=["unseeded", "seeded"])
def test_iterations_of_loops_draw_other_numbers(target, seed):
    text = f"""{HEAD}
    agraph (int64 n) => (float[R, 16] rows) {{
        on = Constant <value = bool {{1}}> ()
        rows = Loop (n, on) <body = outer (int64 i, bool c) => (bool go, float[16] row) {{
            go = Identity (c)
            row = RandomUniform <shape = [16] {seed}> ()
        }}>
    }}"""
    rows = np.asarray(irc.compile(irc.import_onnx(onnx.parser.parse_model(text)), target=target)(np.int64(5))[0])
    assert rows.shape == (5, 16)
    assert len(np.unique(rows)) > 75


def test_iterations_of_nested_loops_differ_whichever_loop_goes_on():
    text = f"""{HEAD}
    agraph (int64 n) => (float[R, S, 4] rows) {{
        on = Constant <value = bool {{1}}> ()
        rows = Loop (n, on) <body = outer (int64 i, bool c) => (bool go, float[S, 4] block) {{
            go = Identity (c)
            block = Loop (n, on) <body = inner (int64 j, bool d) => (bool further, float[4] row) {{
                further = Identity (d)
                row = RandomNormal <shape = [4], seed = 3.0> ()
            }}>
        }}>
    }}"""
    rows = irc.compile(irc.import_onnx(onnx.parser.parse_model(text)), target="reference")(np.int64(3))[0]
    assert len(np.unique(rows)) == 36


def test_branches_draw_from_the_key_of_the_executable():
    text = f"""{HEAD}
    agraph (bool p) => (float[8] y) {{
        y = If (p) <
            then_branch = yes () => (float[8] a) {{ a = RandomUniform <shape = [8]> () }},
            else_branch = no () => (float[8] b) {{ b = RandomNormal <shape = [8]> () }}>
    }}"""
    exe = irc.compile(irc.import_onnx(onnx.parser.parse_model(text)), target="reference")
    drawn = [exe(np.array(True))[0].tolist() for _ in range(2)]
    assert drawn[0] != drawn[1]
