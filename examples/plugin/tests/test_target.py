"""The target `numpy`: every operator it claims, the digits model, its code, artifacts, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest

import irc
from irc.testing import check_target, model_of

DIGITS = Path(__file__).parents[2] / "digits"


def test_every_claimed_operator():
    ulps = {"dot_general": 64, "convolution": 64, "reduce": 64, "exponential": 8, "tanh": 8}
    report = check_target("numpy", ulps=ulps)
    assert {"add", "reduce", "dot_general", "convolution", "select"} <= set(report.ran)
    assert "sort" in report.unclaimed
    assert "add" not in report.unclaimed


@pytest.fixture(scope="module")
def images():
    with np.load(DIGITS / "digits.npz") as data:
        held = data["held_out"]
        return (data["images"][held][:, None] / 16).astype(np.float32), data["labels"][held]


@pytest.fixture(scope="module")
def digits(images):
    return irc.compile(DIGITS / "digits.onnx", target="numpy", dims={"batch": len(images[0])})


def test_digits(digits, images):
    got = digits(images[0])[0]
    assert (got.argmax(1) == images[1]).mean() > 0.99
    want = irc.compile(DIGITS / "digits.onnx", target="onnx")(images[0])[0]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_the_code_reads_as_numpy(digits):
    lines = digits.source.splitlines()
    assert "def main(image, weights):" in lines
    assert any(line.startswith("    classifier = ") and "weights['classifier.bias']" in line for line in lines)
    assert lines[-1] == "    return (probabilities, )"


def test_artifact(digits, images, tmp_path):
    digits.save(tmp_path / "digits.numpy")
    again = irc.load_executable(tmp_path / "digits.numpy")
    np.testing.assert_array_equal(again(images[0])[0], digits(images[0])[0])
    assert (again.compile_count, again.load_count) == (0, 1)


def test_what_it_lacks_is_reported_at_once():
    model = model_of(lambda b, x: (b.lgamma(x), b.cbrt(x)), x="f32[4]")
    with pytest.raises(
        irc.UnsupportedError, match=r"(?s)numpy has no lowering of lgamma.*numpy has no lowering of cbrt"
    ):
        irc.compile(model, target="numpy")
