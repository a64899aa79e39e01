"""Random operators: known answers of Threefry, distributions, and that equal keys give equal numbers."""

import numpy as np
import onnx
import pytest
from scipy import stats

import irc
from irc.ir import dtypes
from irc.testing.operators import check_composite, run

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


def test_normal():
    x = run("RandomNormal", KEY, dims=(MANY,), mean=2.0, scale=0.5)
    assert stats.kstest(x, "norm", (2, 0.5)).pvalue > 1e-3


def test_bernoulli_and_multinomial_follow_their_probabilities():
    hits = run("Bernoulli", KEY, np.full(MANY, 0.3, np.float32), dtype=dtypes.i32)
    assert abs(hits.mean() - 0.3) < 4 * np.sqrt(0.21 / MANY)
    logits = np.log(np.array([[0.2, 0.5, 0.3]], np.float32))
    drawn = run("Multinomial", KEY, logits, samples=MANY)
    counts = np.bincount(drawn[0], minlength=3)
    assert stats.chisquare(counts, MANY * np.array([0.2, 0.5, 0.3])).pvalue > 1e-3


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


TARGETS = ("reference", "xla", "mlx{compile=off}")
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


@pytest.mark.parametrize("target", TARGETS[1:])
def test_targets_draw_the_same_numbers(samples, target):
    for got, want, exact in zip(samples[target], samples["reference"], (True, False, True), strict=True):
        if exact:
            np.testing.assert_array_equal(got, want)
        else:  # of equal bits; in the tails the inverse of erf loses what x * x does near 1: 2^-24 / (1 - x^2)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-5)


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
