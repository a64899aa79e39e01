"""Random operators: known answers of Threefry, distributions, and that equal keys give equal numbers."""

import numpy as np
import pytest
from scipy import stats

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
