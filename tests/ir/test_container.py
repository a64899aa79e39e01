"""The container `model.ir`: other libraries read it, it comes back, hostile files are refused, writing is safe."""

from __future__ import annotations

import json
import os
import random
import resource
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irc.ir import build, container, dtypes, safetensors
from irc.ir.build import Builder
from irc.ir.compare import equal
from irc.ir.data import ArrayData, Data, MappedData, SplatData
from irc.ir.dims import symbol
from irc.ir.errors import FormatError, IrcError
from irc.ir.model import Model
from irc.ir.text import print_model
from irc.ir.types import tensor

F32 = dtypes.f32


def array_of(dtype: dtypes.DType, count: int) -> Data:
    """`count` different elements of a type, as far as it has so many."""
    if dtype.is_string:
        return ArrayData(np.array([f"s{i}é" * (i % 3) for i in range(count)], object), dtype)
    if dtype.is_bool:
        return ArrayData(np.arange(count) % 3 == 0, dtype)
    values = np.arange(count) % (2 if dtype.bits < 3 else 8)
    return ArrayData((values + 1 if dtype.name == "f8e8m0fnu" else values).astype(dtype.numpy), dtype)


def model_with(constants: dict[str, Data]) -> Model:
    """main(x) -> x + x, and these constants."""
    model = Model("m")
    for name, data in constants.items():
        model.add_constant(name, data)
    x = ("x", tensor(F32, symbol("B"), 2))
    build.function(model, "main", [x], lambda b, x: {"out": b.add(b.add(x, x), 1.5)})
    return model


def every_dtype() -> Model:
    return model_with({d.name: array_of(d, 70 + i) for i, d in enumerate(dtypes.ALL)})


def small() -> Model:
    """As little as has everything: a text, a padded tensor, bytes, strings, an empty tensor, a derived constant."""
    constants = {
        "w": ArrayData(np.arange(6, dtype=np.float32).reshape(2, 3)),
        "d": ArrayData(np.arange(3, dtype=np.float64)),
        "s": ArrayData(np.array(["a", "bc"], object)),
        "e": ArrayData(np.zeros((0, 5), np.int8)),
        "flags": ArrayData(np.array([True, False])),
    }
    model = Model("m")
    for name, data in constants.items():
        model.add_constant(name, data)
    t = model.add_derived("w_t", Builder(model, model.init).transpose(model.constants["w"], permutation=(1, 0)))
    build.function(model, "main", [("x", tensor(F32, 3, 2))], lambda b, x: {"out": b.add(x, t)})
    return model


def saved(model: Model, folder: Path) -> Path:
    path = folder / "model.ir"
    container.save(model, path)
    return path


def parts(blob: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(blob[:8], "little")
    return json.loads(blob[8 : 8 + length]), blob[8 + length :]


def joined(header: Any, body: bytes) -> bytes:
    text = (header if isinstance(header, str) else json.dumps(header)).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(text)) + text + body


# ----------------------------------------------------------------------------------------------------- what others read


def test_safetensors_and_mlx_read_every_dtype(tmp_path: Path):
    import mlx.core as mx
    from safetensors import safe_open

    path = saved(every_dtype(), tmp_path)
    loaded = mx.load(str(path), format="safetensors")
    with safe_open(str(path), "np") as file:
        names = set(file.keys())
        assert set(loaded) == names
        assert {d.name for d in dtypes.ALL} <= names
        for dtype in dtypes.ALL:
            data = array_of(dtype, 70 + dtypes.ALL.index(dtype))
            if dtype not in container.NATIVE:
                expected = np.frombuffer(data.tobytes(), np.uint8)
            elif dtype is dtypes.bf16:
                expected = data.numpy().astype(np.float32)  # NumPy itself has no bfloat16
            else:
                expected = data.numpy()
            mine = loaded[dtype.name].astype(mx.float32) if dtype is dtypes.bf16 else loaded[dtype.name]
            assert np.array_equal(np.array(mine), expected), dtype
            if dtype not in (dtypes.bf16, dtypes.c64):  # this version of safetensors gives neither to NumPy
                assert np.array_equal(file.get_tensor(dtype.name), expected), dtype
        assert bytes(file.get_tensor("irc.module")).decode() == print_model(every_dtype())


def test_everything_starts_at_a_multiple_of_64_bytes(tmp_path: Path):
    path = saved(every_dtype(), tmp_path)
    with open(path, "rb") as file:
        entries, metadata = safetensors.read_header(file, path, path.stat().st_size)
    assert metadata == {"irc.container": "1"}
    assert all(e.offset % 64 == 0 for name, e in entries.items() if not name.startswith("irc.pad."))
    assert any(name.startswith("irc.pad.") for name in entries)
    for name, constant in container.load(path).constants.items():
        assert constant.data is not None
        if name != "string":
            assert constant.data.numpy().ctypes.data % 64 == 0, name
            assert not constant.data.numpy().flags.owndata, name


def test_the_same_model_gives_the_same_bytes(tmp_path: Path):
    first = saved(every_dtype(), tmp_path).read_bytes()
    container.save(container.load(tmp_path / "model.ir"), tmp_path / "again.ir")
    assert (tmp_path / "again.ir").read_bytes() == first


# ---------------------------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("make", [every_dtype, small])
def test_a_model_comes_back_equal(make: Callable[[], Model], tmp_path: Path):
    model = make()
    back = container.load(saved(model, tmp_path))
    assert equal(model, back)
    assert print_model(back) == print_model(model)


def test_uniform_constants_take_no_room(tmp_path: Path):
    model = model_with({"ones": SplatData(1.0, F32, (1 << 16, 1 << 16))})
    path = saved(model, tmp_path)
    assert path.stat().st_size < 2000
    back = container.load(path).constants["ones"].data
    assert back is not None
    assert back.shape == (1 << 16, 1 << 16)
    assert back.splat == 1.0


NAMES = st.one_of(
    st.sampled_from(["__metadata__", "irc.module", "irc.pad.0", "irc.constant.x", "irc.", "irc", "dtype", ""]),
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12),
).filter(bool)
SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


@st.composite
def constants(draw: st.DrawFn) -> Data:
    dtype = draw(st.sampled_from(dtypes.ALL))
    shape = draw(SHAPES)
    count = int(np.prod(shape, dtype=int))
    if dtype.is_string:
        texts = draw(st.lists(st.text(st.characters(exclude_categories=("Cs",))), min_size=count, max_size=count))
        return ArrayData(np.array([*texts, None], object)[:-1].reshape(shape), dtype)
    raw = np.frombuffer(draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize)), np.uint8)
    if dtype.bits < 8:
        raw = raw & ((1 << dtype.bits) - 1)
    return ArrayData(raw.view(dtype.numpy).reshape(shape), dtype)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.dictionaries(NAMES, constants(), max_size=6))
def test_any_constants_come_back(tmp_path: Path, data: dict[str, Data]):
    model = model_with(data)
    path = saved(model, tmp_path)
    back = container.load(path)
    assert list(back.constants) == list(data)
    for name, constant in back.constants.items():
        assert constant.data is not None
        assert constant.data.equals(data[name]), name
    with open(path, "rb") as file:
        safetensors.read_header(file, path, path.stat().st_size)


def test_a_file_can_be_replaced_while_its_model_is_in_use(tmp_path: Path):
    path = saved(model_with({"w": ArrayData(np.arange(100, dtype=np.float32))}), tmp_path)
    model = container.load(path)
    container.save(model_with({"v": ArrayData(np.zeros(5000, np.float32))}), path)
    data = model.constants["w"].data
    assert data is not None
    assert np.array_equal(data.numpy(), np.arange(100, dtype=np.float32))
    container.save(model, path)
    assert equal(container.load(path), model)


def test_bits_that_no_element_has_are_not_written(tmp_path: Path):
    four = ArrayData(np.array([0xF3] * 70, np.uint8).view(ml_dtypes.int4))
    flags = ArrayData(np.array([2, 0] * 35, np.uint8).view(np.bool_))
    back = container.load(saved(model_with({"four": four, "flags": flags}), tmp_path)).constants
    assert all(c.data is not None for c in back.values())
    assert back["four"].data.numpy().astype(int).tolist() == [3] * 70  # type: ignore[union-attr]  # asserted above
    assert back["flags"].data.numpy().tolist() == [True, False] * 35  # type: ignore[union-attr]  # asserted above


# -------------------------------------------------------------------------------------------------------- hostile files


def outcome(path: Path, original: Model) -> str:
    """ "equal", "other" (another sound model) or the message of the FormatError; another exception goes on."""
    try:
        model = container.load(path)
        for constant in model.constants.values():
            if constant.data is not None:
                constant.data.numpy()
    except FormatError as error:
        return str(error) if str(path) in str(error) else f"the file is not named: {error}"
    return "equal" if equal(model, original) else "other"


def test_a_file_cut_anywhere_is_refused(tmp_path: Path):
    model = small()
    blob = saved(model, tmp_path).read_bytes()
    cut = tmp_path / "cut.ir"
    assert len(blob) < 5000
    for length in range(len(blob)):
        cut.write_bytes(blob[:length])
        assert outcome(cut, model) not in ("equal", "other"), length
    cut.write_bytes(blob)
    assert outcome(cut, model) == "equal"


def entry(name: str, field: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        header[name][field] = value

    return change


def hostile_headers() -> Iterator[tuple[str, Callable[[dict[str, Any]], Any], str]]:
    """(label, change of the header, what the message says)"""
    for label, dtype in {"unknown": "F31", "number": 3, "null": None, "list": ["F32"], "lower": "f32"}.items():
        yield f"dtype-{label}", entry("w", "dtype", dtype), "tensor 'w': unknown dtype"
    yield "dtype-other", entry("w", "dtype", "I32"), "tensor 'w': the text says f32[2,3], so its dtype must be F32"
    yield "dtype-unused", entry("w", "dtype", "F8_E4M3"), "takes 6 bytes"
    shapes = {
        "negative": [-2, -3], "float": [2.0, 3.0], "bool": [True, 6], "null": None, "string": "23", "deep": [[2], 3],
        "rank": [1] * 65, "huge": [1 << 70], "infinite": [float("inf")],
    }  # fmt: skip
    for label, shape in shapes.items():
        yield f"shape-{label}", entry("w", "shape", shape), "tensor 'w': shape must be"
    yield "shape-product", entry("w", "shape", [1 << 40, 1 << 40]), "too many elements"
    yield "shape-product-zero", entry("e", "shape", [0, 1 << 40, 1 << 40]), "too many elements"
    yield "shape-overflow", entry("w", "shape", [(1 << 62), 4]), "too many elements"
    yield "shape-other", entry("w", "shape", [3, 2]), "so its shape must be [2, 3], not [3, 2]"
    yield "shape-short", entry("w", "shape", [2, 2]), "F32 of shape [2, 2] takes 16 bytes, data_offsets span 24"
    yield "shape-bytes", entry("d", "shape", [2, 12]), "must be a vector of bytes"
    offsets = {
        "negative": [-8, 16],
        "reversed": [24, 0],
        "one": [0],
        "three": [0, 8, 24],
        "float": [0.0, 24.0],
        "null": None,
        "object": {},
    }
    for label, value in offsets.items():
        yield f"offsets-{label}", entry("w", "data_offsets", value), "tensor 'w': data_offsets must be two integers"
    yield "offsets-bool", entry("w", "data_offsets", [False, True]), "data_offsets must be two integers"

    def shifted(by: int) -> Callable[[dict[str, Any]], None]:
        def change(header: dict[str, Any]) -> None:
            header["w"]["data_offsets"] = [n + by for n in header["w"]["data_offsets"]]

        return change

    yield "offsets-overlap", shifted(-4), "overlaps the one before it"
    yield "offsets-gap", shifted(4), "leaves a gap before it"
    yield "offsets-beyond", shifted(1 << 40), "a gap"
    yield "offsets-64-bit", shifted(1 << 62), "a gap"
    yield "offsets-more", shifted(1 << 65), "must be two integers"
    for field in ("dtype", "shape", "data_offsets"):
        yield f"without-{field}", lambda h, f=field: h["w"].pop(f), "tensor 'w' must be an object with dtype, shape and"
    yield "extra-field", entry("w", "stride", [1]), "tensor 'w' must be an object"
    for label, value in {"null": None, "list": [], "string": "x", "number": 1}.items():
        yield f"entry-{label}", lambda h, v=value: h.update(w=v), "tensor 'w' must be an object"
    yield "entry-long", lambda h: h.update(w={"dtype": "x" * 10_000}), "at most 8192 characters"
    yield "metadata-list", lambda h: h.update(__metadata__=[]), "__metadata__ must be an object of strings"
    yield "metadata-number", lambda h: h.update(__metadata__={"a": 1}), "__metadata__ must be an object of strings"
    yield "metadata-version", lambda h: h.update(__metadata__={"irc.container": "2"}), "container version '2'"
    yield "tensor-missing", lambda h: h.pop("w"), "gap"
    yield "empty", lambda h: h.clear(), "the file has"
    yield "no-module", lambda h: h.update({"module": h.pop("irc.module")}), "no tensor irc.module"
    yield "module-dtype", entry("irc.module", "dtype", "I8"), "tensor irc.module must be a vector of U8"
    yield "module-rank", lambda h: h["irc.module"]["shape"].append(1), "tensor irc.module must be a vector of U8"
    yield "renamed", lambda h: h.update(v=h.pop("w")), "the contents of the weight #w are missing"
    yield "unknown", lambda h: h.update(v={**h["e"]}), "tensor 'v': the text declares no constant 'v'"
    yield "reserved", lambda h: h.update({"irc.else": h.pop("w")}), "tensor 'irc.else': names that start with irc."
    yield "escaped", lambda h: h.update({"irc.constant.w": h.pop("w")}), "needs no escape"


EMPTY = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
HOSTILE = list(hostile_headers())


@pytest.mark.parametrize(("change", "message"), [h[1:] for h in HOSTILE], ids=[h[0] for h in HOSTILE])
def test_a_hostile_header_is_refused(change: Callable[[dict[str, Any]], Any], message: str, tmp_path: Path):
    model = small()
    path = saved(model, tmp_path)
    header, body = parts(path.read_bytes())
    change(header)
    path.write_bytes(joined(header, body))
    assert message in outcome(path, model)


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (b"", "0 bytes; a safetensors file starts with 8 bytes"),
        (b"\x01\x02", "2 bytes"),
        (struct.pack("<Q", 0), "expected '{'"),
        (struct.pack("<Q", 3) + b"{}", "header length 3 is more than the 2 bytes"),
        (struct.pack("<Q", (1 << 64) - 1) + b"{}", "is more than the allowed"),
        (struct.pack("<Q", 100_000_001) + b"{}", "is more than the allowed"),
        (joined("[]", b""), "expected '{'"),
        (joined(" {}", b""), "expected '{'"),
        (joined("{}", b""), "no tensor irc.module"),
        (joined("{} x", b""), "only spaces may follow"),
        (joined("{}{}", b""), "only spaces may follow"),
        (joined("{", b""), "expected a tensor's name"),
        (joined("{1:2}", b""), "expected a tensor's name"),
        (joined('{"a"', b""), "expected ':'"),
        (joined('{"a":', b""), "no valid JSON"),
        (joined('{"a":{}', b""), "must be an object with dtype"),
        (joined('{"a":' + "[" * 100_000, b""), "nested too deeply"),
        (joined('{"a":' + '{"a":' * 100_000, b""), "nested too deeply"),
        (joined('{"a":NaN}', b""), "must be an object"),
        (joined('{"a":' + "9" * 5000 + "}", b""), "no valid JSON"),
        (joined('{"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}}', b""), "'dtype' stands twice"),
        (joined('{"a":' + EMPTY + ',"a":' + EMPTY + "}", b""), "the tensor 'a' twice"),
        (joined('{"__metadata__":{},"__metadata__":{}}', b""), "__metadata__ twice"),
        (joined('{"\ud800":1}', b""), "not UTF-8"),
        (struct.pack("<Q", 4) + b'{"\xff"', "not UTF-8"),
        (joined('{"irc.module":' + EMPTY.replace("0]", "2]") + "}", b"\xff\xfe"), "not UTF-8 at byte 0"),
        (joined('{"irc.module":' + EMPTY + "}", b""), ""),
        (joined('{"irc.module":' + EMPTY + "}", b"x"), "the tensors end at byte"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_container_is_refused(blob: bytes, message: str, tmp_path: Path):
    path = tmp_path / "bad.ir"
    path.write_bytes(blob)
    found = outcome(path, small())
    assert found not in ("equal", "other")
    assert message in found


def test_a_missing_file_a_folder_and_a_pipe_are_format_errors(tmp_path: Path):
    with pytest.raises(FormatError, match=r"none\.ir: cannot be read"):
        container.load(tmp_path / "none.ir")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(FormatError, match="cannot be read: it is no regular file"):
            container.load(path)


@pytest.mark.parametrize(
    ("constant", "at", "byte", "message"),
    [
        ("flags", 0, 2, "no bool"),
        ("s", 0, 200, "string 0 of the tensor"),
        ("s", 4, 0xFF, "not UTF-8"),
        ("s", 5, 1, "bytes follow the strings"),
    ],
)
def test_contents_that_no_element_has_are_refused(constant: str, at: int, byte: int, message: str, tmp_path: Path):
    model = small()
    path = saved(model, tmp_path)
    blob = bytearray(path.read_bytes())
    with open(path, "rb") as file:
        entries, _ = safetensors.read_header(file, path, len(blob))
    blob[entries[constant].offset + at] = byte
    path.write_bytes(blob)
    assert message in outcome(path, model)


def peak_memory() -> int:
    """Most bytes that this process has ever had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def test_flipped_bytes_are_refused_or_harmless(tmp_path: Path):
    model = small()
    blob = saved(model, tmp_path).read_bytes()
    header, _ = parts(blob)
    start = int.from_bytes(blob[:8], "little") + 8
    end = start + header["irc.module"]["data_offsets"][1]
    path = tmp_path / "flipped.ir"
    generator = random.Random(7)
    seen = {"equal": 0, "other": 0, "refused": 0}
    before = peak_memory()
    for _ in range(10_000):
        flipped = bytearray(blob)
        for _ in range(generator.choice((1, 1, 1, 2, 8))):
            flipped[generator.randrange(end)] = generator.randrange(256)
        path.write_bytes(flipped)
        found = outcome(path, model)
        seen[found if found in seen else "refused"] += 1
    assert peak_memory() - before < 64 << 20, "no flipped length or shape makes the reader allocate"
    assert seen["refused"] > 7000, seen
    assert seen["equal"] > 50, seen  # a flip that writes the same byte, or one among the spaces after the header


def test_a_large_header_takes_little_memory(tmp_path: Path):
    """Ten megabytes of lists would take gigabytes if they were parsed before they were judged."""
    path = tmp_path / "bad.ir"
    path.write_bytes(joined('{"a":{"dtype":[' + "[]," * 3_500_000 + "[]]}}", b""))
    tracemalloc.start()
    with pytest.raises(FormatError, match="at most 8192 characters"):
        container.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 25 << 20


# -------------------------------------------------------------------------------------------------------------- writing


class Failing(Data):
    """Contents that break off half way."""

    def __init__(self, error: BaseException | None) -> None:
        self.dtype, self.shape, self.error = F32, (1000,), error

    def numpy(self) -> Any:
        return np.zeros(1000, np.float32)

    def chunks(self) -> Iterator[memoryview]:
        yield memoryview(bytes(2000))
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (OSError(28, "No space left on device"), IrcError, "model.ir: cannot be written: No space left on device"),
        (KeyboardInterrupt("stop"), KeyboardInterrupt, "stop"),
        (FormatError("the source went away"), FormatError, "the source went away"),
        (None, IrcError, "has 2000 bytes, 4000 were announced"),
    ],
)
def test_a_write_that_fails_leaves_the_old_file(
    error: BaseException | None, expected: type[BaseException], message: str, tmp_path: Path
):
    path = saved(small(), tmp_path)
    before = path.read_bytes()
    with pytest.raises(expected, match=message):
        container.save(model_with({"bad": Failing(error)}), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.ir"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path):
    path = saved(small(), tmp_path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))  # Python ignores SIGXFSZ: write fails with EFBIG
    try:
        with pytest.raises(IrcError, match="cannot be written: File too large"):
            container.save(model_with({"w": ArrayData(np.zeros(100_000, np.float32))}), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.ir"]


def test_a_folder_that_is_missing_is_an_error_of_irc(tmp_path: Path):
    with pytest.raises(IrcError, match="cannot be written: No such file or directory"):
        container.save(small(), tmp_path / "none" / "model.ir")


def test_a_link_is_written_through_and_the_umask_holds(tmp_path: Path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "model.ir", tmp_path / "link.ir"
    link.symlink_to(target)
    container.save(small(), link)
    assert link.is_symlink()
    assert equal(container.load(target), small())
    mask = os.umask(0)
    os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~mask


def test_names_that_no_file_can_hold_are_an_error(tmp_path: Path):
    with pytest.raises(IrcError, match="not valid Unicode"):
        container.save(model_with({"\ud800": array_of(F32, 70)}), tmp_path / "model.ir")
    assert os.listdir(tmp_path) == []


# --------------------------------------------------------------------------------------------------------------- memory

MEASURE = """
import sys
from pathlib import Path
import numpy as np
from irc.ir import build, container, dtypes
from irc.ir.data import MappedData
from irc.ir.model import Model
from irc.ir.types import tensor

def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(l.split()[1]) for l in lines if l.startswith(field)) // 1024

source, target = map(Path, sys.argv[1:])
model = Model()
model.add_constant("w", MappedData(source, 0, dtypes.f32, (1 << 28,)))
build.function(model, "main", [("x", tensor(dtypes.f32, 2))], lambda b, x: {"out": b.add(x, x)})
import irc.ir.text
irc.ir.text.parse_model(irc.ir.text.print_model(Model()), filename="warm")
anon, peak = status("RssAnon"), status("VmHWM")
container.save(model, target)
back = container.load(target)
w = back.constants["w"].data.numpy()
assert w.shape == (1 << 28,) and w[0] == 1.0 and w[-1] == 2.0
print(status("RssAnon") - anon, status("VmHWM") - peak)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the figures are read from Linux's /proc")
def test_a_gigabyte_streams(tmp_path: Path):
    source = tmp_path / "weights"
    with open(source, "wb") as file:  # sparse: only the ends take room
        file.write(struct.pack("<f", 1.0))
        file.seek((1 << 30) - 4)
        file.write(struct.pack("<f", 2.0))
    command = [sys.executable, "-c", MEASURE, str(source), str(tmp_path / "model.ir")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    anon, peak = map(int, done.stdout.split())
    assert anon < 100, "megabytes of memory of its own"
    assert peak < 200, "megabytes at the worst moment, mapped pages included"


def test_mapped_contents_are_shared_and_lazy(tmp_path: Path):
    path = saved(model_with({f"w{i}": array_of(F32, 100) for i in range(50)}), tmp_path)
    model = container.load(path)
    files = {id(c.data._file) for c in model.constants.values() if isinstance(c.data, MappedData)}
    assert len(files) == 1
    assert len(model.constants) == 50
    assert all("_array" not in vars(c.data) for c in model.constants.values())
