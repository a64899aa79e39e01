"""Contents of constants: sharing, equality by bits, mapping without copies."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from irc.ir import dtypes
from irc.ir.build import Builder
from irc.ir.data import ArrayData, MappedData, SplatData
from irc.ir.errors import FormatError
from irc.ir.model import Function, Model


def test_arrays_are_read_only_and_not_copied():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    data = ArrayData(array)
    assert np.shares_memory(data.numpy(), array)
    with pytest.raises(ValueError, match="read-only"):
        data.numpy()[0, 0] = 1
    assert ArrayData(array.T).numpy().flags.c_contiguous


def test_the_builder_copies_what_can_be_written_to():
    model = Model()
    build = Builder(model, model.add_function(Function("main")).body)
    array = np.arange(200, dtype=np.float32)
    view = array[:100]
    view.flags.writeable = False
    constants = [build.constant(array), build.constant(view)]
    array[:] = -1
    for constant in constants:
        assert constant.data.numpy()[:3].tolist() == [0, 1, 2]
    frozen = np.frombuffer(bytes(800), np.float32)
    assert np.shares_memory(build.constant(frozen).data.numpy(), frozen)


def test_equality_is_by_bits_whatever_holds_them(tmp_path):
    array = np.full((5000,), -0.0, np.float32)
    (tmp_path / "w").write_bytes(b"12345678" + array.tobytes())
    mapped = MappedData(tmp_path / "w", 8, dtypes.f32, (5000,))
    assert mapped.equals(ArrayData(array))
    assert SplatData(-0.0, dtypes.f32, (5000,)).equals(mapped)
    assert not ArrayData(np.zeros(5000, np.float32)).equals(mapped), "-0.0 is not 0.0"
    nan = ArrayData(np.array([np.nan], np.float32))
    assert nan.equals(ArrayData(np.array([np.nan], np.float32)))
    assert not ArrayData(np.zeros((2, 3), np.float32)).equals(ArrayData(np.zeros((3, 2), np.float32)))
    assert not ArrayData(np.zeros(4, np.int32)).equals(ArrayData(np.zeros(4, np.float32)))


def test_mapped_data_outside_the_file_is_refused(tmp_path):
    (tmp_path / "w").write_bytes(bytes(15))
    with pytest.raises(FormatError, match="16 bytes at offset 0 does not fit in the file's 15 bytes"):
        MappedData(tmp_path / "w", 0, dtypes.f32, (4,))
    with pytest.raises(FormatError, match="offset -4"):
        MappedData(tmp_path / "w", -4, dtypes.f32, (1,))


def test_mapped_data_reads_any_type_unaligned(tmp_path):
    array = np.array([1.5, -2.0, 448.0], ml_dtypes.float8_e4m3fn)
    (tmp_path / "w").write_bytes(b"x" + array.tobytes())
    got = MappedData(tmp_path / "w", 1, dtypes.f8e4m3fn, (3,)).numpy()
    assert got.tobytes() == array.tobytes()
    assert not got.flags.writeable


def test_splat_takes_no_memory():
    data = SplatData(3, dtypes.i64, (1 << 20, 1 << 10))
    assert data.numpy().strides == (0, 0)
    assert data.splat == 3
    assert data.nbytes == 8 << 30
    assert data.equals(SplatData(3, dtypes.i64, data.shape))
    assert not data.equals(SplatData(4, dtypes.i64, data.shape))


def test_strings_keep_their_bytes():
    a = ArrayData(np.array(["a", "bc"], object))
    assert a.dtype is dtypes.string
    assert not a.equals(ArrayData(np.array(["ab", "c"], object))), "lengths are part of the bytes"
