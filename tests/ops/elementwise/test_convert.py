"""Conversion between all element types, bits read as another type, fewer bits of precision."""

import ml_dtypes
import numpy as np
import pytest

from irc.ir import dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError, InputError
from irc.ir.types import tensor
from irc.testing.operators import facts_of, run

B, S = symbol("B"), symbol("S")
FLOATS = [d for d in dtypes.ALL if d.is_float]
INTEGERS = [d for d in dtypes.ALL if d.is_integer]


@pytest.mark.parametrize("source", dtypes.ALL, ids=str)
@pytest.mark.parametrize("target", dtypes.ALL, ids=str)
def test_convert_between_every_pair(source, target):
    powers = dtypes.f8e8m0fnu in (source, target)  # it has no zero and no three
    if {1, 2} & {source.bits, target.bits}:
        values = [1, 1, 1, 1] if powers else [0, 1, 1, 0]
    else:
        values = [1, 1, 2, 4] if powers else [0, 1, 2, 3]
    x = np.array([str(v) for v in values], object) if source.is_string else np.array(values).astype(source.numpy)
    got = run("convert", x, dtype=target)
    assert got.dtype == target.numpy
    if target.is_string:
        back = [v == "True" for v in got] if source.is_bool else [complex(v).real for v in got]
        assert back == values
    else:
        assert [v.real for v in got.astype(np.complex128)] == values


@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_float_to_integer_saturates(target):
    low, high = int(target.min_value()), int(target.max_value())
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 1.9, -0.9, float(high), float(low)])
    assert [int(v) for v in run("convert", x, dtype=target)] == [0, high, low, high, low, min(1, high), 0, high, low]


def test_nan_is_true():
    assert run("convert", np.array([np.nan, 0.0, -0.0, 1e-30], np.float32), dtype=dtypes.bool_).tolist() == [
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("target", [d for d in FLOATS if d.bits < 16 and d is not dtypes.f8e8m0fnu], ids=str)
def test_narrow_floats_saturate_on_demand(target):
    greatest = float(target.finfo().max)
    x = np.array([1e9, -1e9, np.inf, 1.0], np.float32)
    assert run("convert", x, dtype=target, saturate=True).astype(float).tolist() == [greatest, -greatest, greatest, 1.0]
    plain = run("convert", x, dtype=target).astype(float)
    if target is dtypes.f8e5m2:
        assert plain.tolist() == [np.inf, -np.inf, np.inf, 1.0]
    elif target.bits < 8:
        assert plain.tolist() == [greatest, -greatest, greatest, 1.0]
    else:
        assert np.isnan(plain[:3]).all()


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits <= 16 and d is not dtypes.f8e8m0fnu], ids=str)
def test_every_value_rounds_to_the_nearest_even_once(dtype):
    """A hair above and below each midpoint between neighbours, which a detour over f32 would take for the midpoint."""
    patterns = np.arange(1 << dtype.bits, dtype=np.uint16 if dtype.bits == 16 else np.uint8).view(dtype.numpy)
    with np.errstate(invalid="ignore"):
        wide = patterns.astype(np.float64)
    values = np.unique(wide[np.isfinite(wide)])
    middle = (values[1:] + values[:-1]) / 2
    np.testing.assert_array_equal(run("convert", values, dtype=dtype).astype(float), values)
    np.testing.assert_array_equal(run("convert", np.nextafter(middle, np.inf), dtype=dtype).astype(float), values[1:])
    np.testing.assert_array_equal(run("convert", np.nextafter(middle, -np.inf), dtype=dtype).astype(float), values[:-1])


def test_bf16_is_rounded_once_from_f64_and_from_i64():
    x = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1 + 2.0**-8 - 2.0**-40])
    assert run("convert", x, dtype=dtypes.bf16).astype(float).tolist() == [1 + 2.0**-7, 1.0, 1.0]
    big = np.array([2**62 + 2**54 + 1, 2**62 + 2**54, -(2**62) - 2**54 - 1], np.int64)
    assert run("convert", big, dtype=dtypes.bf16).astype(float).tolist() == [
        2.0**62 + 2.0**55,
        2.0**62,
        -(2.0**62) - 2.0**55,
    ]


def test_strings():
    text = np.array(["3.14", "1e-5", "-INF", "NaN", "100.5"], object)
    np.testing.assert_array_equal(
        run("convert", text, dtype=dtypes.f32), np.array([3.14, 1e-5, -np.inf, np.nan, 100.5], np.float32)
    )
    assert run("convert", np.array(["100.5", "-7", "999"], object), dtype=dtypes.i8).tolist() == [100, -7, 127]
    assert run("convert", np.array([0.1, 1.5], np.float32), dtype=dtypes.string).tolist() == ["0.1", "1.5"]
    assert run("convert", np.array([True, False]), dtype=dtypes.string).tolist() == ["True", "False"]
    assert run("convert", np.array([1.1], ml_dtypes.bfloat16), dtype=dtypes.string).tolist() == ["1.1015625"]
    with pytest.raises(InputError, match="the string 'pi' cannot be converted to f32"):
        run("convert", np.array(["pi"], object), dtype=dtypes.f32)


def test_complex_to_real_drops_the_imaginary_part():
    assert run("convert", np.array([2.5 + 1j]), dtype=dtypes.f32).tolist() == [2.5]
    assert run("convert", np.array([2.5 + 1j]), dtype=dtypes.i32).tolist() == [2]
    assert run("convert", np.array([1j, 0]), dtype=dtypes.bool_).tolist() == [True, False]


@pytest.mark.parametrize(
    "source, target",
    [
        ("f32", "i32"),
        ("f64", "u8"),
        ("u8", "f64"),
        ("u16", "u4"),
        ("i4", "i32"),
        ("f8e4m3fn", "u8"),
        ("i2", "u8"),
        ("u8", "u8"),
    ],
)
def test_bits_stay(source, target):
    source, target = dtypes.DType.of(source), dtypes.DType.of(target)
    count = max(1, target.bits // source.bits)
    x = np.arange(-3, count * 3 - 3).reshape(3, count).astype(source.numpy)
    there = run("bitcast_convert", x, dtype=target)
    back = run("bitcast_convert", there, dtype=source)
    np.testing.assert_array_equal(back.reshape(x.shape).view(np.uint8), x.view(np.uint8))
    if source.bits >= 8 and target.bits >= 8:
        want = (
            x.view(target.numpy)
            if source.bits >= target.bits
            else x.reshape(3, -1, target.bits // source.bits).view(target.numpy)
        )
        np.testing.assert_array_equal(there.reshape(-1).view(np.uint8), want.reshape(-1).view(np.uint8))


def test_bitcast_dims_and_errors():
    assert facts_of("bitcast_convert", tensor(dtypes.f32, B), dtype=dtypes.u8).type == tensor(dtypes.u8, B, 4)
    assert facts_of("bitcast_convert", tensor(dtypes.u4, B, 8), dtype=dtypes.i32).type == tensor(dtypes.i32, B)
    with pytest.raises(
        InferenceError, match="the last dim of x, read as the wider f32, and 4 must be equal, got 3 and 4"
    ):
        facts_of("bitcast_convert", tensor(dtypes.u8, B, 3), dtype=dtypes.f32)
    with pytest.raises(InferenceError, match="the bits of c64 cannot be read as f64"):
        facts_of("bitcast_convert", tensor(dtypes.c64, B), dtype=dtypes.f64)


def test_low_bits_come_first():
    assert run("bitcast_convert", np.array([0x4321], np.uint16), dtype=dtypes.u4).astype(int).tolist() == [[1, 2, 3, 4]]


def test_reduce_precision_is_rounding_to_the_narrower_format():
    x = np.array([1.0009765625, 65519.0, 65520.0, 1e-8, -3.14159, np.nan, -np.inf, 6.1e-5], np.float32)
    with np.errstate(over="ignore"):
        half = x.astype(np.float16).astype(np.float32)
    half[3] = half[7] = 0  # below the least normal number of the format
    np.testing.assert_array_equal(run("reduce_precision", x, exponent_bits=5, mantissa_bits=10), half)
    brain = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(run("reduce_precision", x, exponent_bits=8, mantissa_bits=7), brain)
    with pytest.raises(InferenceError, match="exponent_bits must be at least 1, got 0"):
        run("reduce_precision", x, exponent_bits=0, mantissa_bits=3)
