"""Element types: one object a type, views, ONNX numbers, limits."""

from __future__ import annotations

import copy
import pickle

import ml_dtypes
import numpy as np
import onnx
import pytest

from irc.ir import dtypes
from irc.ir.dtypes import DType
from irc.ir.errors import IrcError


def test_every_onnx_type_is_known():
    for name, number in onnx.TensorProto.DataType.items():
        if name != "UNDEFINED":
            assert DType.from_onnx(number).onnx == number, name


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_lookups_are_inverse_and_instances_are_singletons(dtype):
    assert DType.of(dtype.name) is dtype
    assert DType.from_numpy(dtype.numpy) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d.is_integer], ids=str)
def test_integer_limits(dtype):
    bits = dtype.bits - (dtype.kind == "int")
    assert int(dtype.max_value()) == 2**bits - 1
    assert int(dtype.min_value()) == (-(2**bits) if dtype.kind == "int" else 0)


def test_float_limits_are_infinite_where_the_type_has_infinity():
    assert dtypes.f32.max_value() == np.inf
    assert dtypes.bf16.min_value() == ml_dtypes.bfloat16(-np.inf)
    assert float(dtypes.f8e4m3fn.max_value()) == 448.0
    assert float(dtypes.f8e4m3fn.min_value()) == -448.0
    assert float(dtypes.f8e5m2.max_value()) == np.inf


def test_unknown_names_and_types_are_refused():
    with pytest.raises(IrcError, match="no element type is called 'float'"):
        DType.of("float")
    with pytest.raises(IrcError, match="datetime64"):
        DType.from_numpy(np.dtype("datetime64[s]"))
    with pytest.raises(IrcError, match="99"):
        DType.from_onnx(99)
