"""Hostile files: changed ONNX models, texts and containers give a model or an error of irc, soon and in little memory.

`check(seed)` draws one file and one change of it.  A change edits any field of the protobuf (numbers, names, bytes,
missing, doubled and exchanged parts, external data), or flips bytes of the file.  `python -P tests/fuzz/files.py
--minutes 5` runs for longer than tests/fuzz/test_files.py does; `--seed NAME` repeats one.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import Message

import irc

SECONDS = 10
MEGABYTES = 600
"""What one file may add to the memory of the process at its greatest."""
NUMBERS = [0, 1, -1, 2, 3, 7, 255, 2**31 - 1, -(2**31), 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63)]
NAMES = ["", "x", "y", "../x", "/etc/passwd", "a\0b", "-1", "é" * 300, "N", "\n", "x" * 5000]
FLOATS = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e38, 1e-45, -1.0, 0.5]
PLACES = ["location", "offset", "length", "checksum", "bogus"]
VALUES = ["", "-1", "0", "1", "99999999999999999999", "1e3", "../w", "/dev/zero", "w", "w/../w", ".", "\0", "0x10", "٣"]


class Found(AssertionError):
    """A file that was answered by something else than a model or an error of irc."""


class _TooLong(BaseException):
    pass


@cache
def originals() -> list[onnx.ModelProto]:
    """Models of the ONNX backend suite of less than 20 kB."""
    from onnx.backend.test.loader import load_model_tests

    np.random.seed(0)  # the suite draws from NumPy's global generator
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = load_model_tests(kind="node")
    models = [row.model for row in sorted(rows, key=lambda row: row.name)]
    return [m for m in models if m.ByteSize() < 20_000]


@cache
def texts() -> list[str]:
    folder = Path(__file__).parent.parent / "filecheck"
    return [p.read_text(encoding="utf-8") for p in sorted(folder.glob("*.ir"))]


def _messages(message: Message) -> Iterator[Message]:
    stack = [message]
    while stack:
        yield (top := stack.pop())
        for field, value in top.ListFields():
            if field.message_type is not None:
                stack.extend(value if _repeated(field) else [value])


def _repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def edit(draw: Random, model: onnx.ModelProto) -> None:
    """Change one field of one message."""
    every = list(_messages(model))
    tensors = [m for m in every if isinstance(m, onnx.TensorProto)]
    if tensors and draw.random() < 0.15:
        _misplace(draw, draw.choice(tensors))
        return
    nodes = [m for m in every if isinstance(m, onnx.NodeProto)]
    if nodes and draw.random() < 0.3:
        _rewire(draw, draw.choice(nodes), every)
        return
    message: Any = draw.choice(every)
    field = draw.choice(message.DESCRIPTOR.fields)
    if _repeated(field):
        _edit_list(draw, getattr(message, field.name), field)
    elif field.message_type is not None:
        if draw.random() < 0.5:
            message.ClearField(field.name)
        else:
            getattr(message, field.name).SetInParent()
    elif draw.random() < 0.2:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _value(draw, field, getattr(message, field.name)))


def _edit_list(draw: Random, values: Any, field: Any) -> None:
    at = draw.randrange(len(values)) if values else 0
    match draw.randrange(4):
        case 0 if values:
            del values[at]
        case 1 if values:
            values.append(values[at])
        case 2 if len(values) > 1:
            kept = list(values)
            draw.shuffle(kept)
            del values[:]
            values.extend(kept)
        case _ if field.message_type is not None:
            values.add()
        case _:
            made = _value(draw, field, values[at] if values else None)
            if values and draw.random() < 0.6:
                values[at] = made
            else:
                values.append(made)


def _value(draw: Random, field: Any, old: Any) -> Any:
    match field.cpp_type:
        case field.CPPTYPE_STRING if field.type == field.TYPE_BYTES:
            kept = bytes(old or b"")
            return draw.choice([b"", kept[: len(kept) // 2], kept + b"\0", b"\xff\xfe", kept[:-1], b"\0" * 4096])
        case field.CPPTYPE_STRING:
            return draw.choice(NAMES)
        case field.CPPTYPE_FLOAT | field.CPPTYPE_DOUBLE:
            return draw.choice(FLOATS)
        case field.CPPTYPE_ENUM:
            return draw.choice([v.number for v in field.enum_type.values])
        case field.CPPTYPE_INT32:
            return draw.choice([n for n in NUMBERS if -(2**31) <= n < 2**31] + list(range(27)))
        case field.CPPTYPE_UINT64:
            return draw.choice([n for n in NUMBERS if n >= 0])
        case _:
            return draw.choice([*NUMBERS, (old or 0) + 1, (old or 0) - 1])


def _misplace(draw: Random, tensor: onnx.TensorProto) -> None:
    """External data that is not there, or not where it says."""
    tensor.data_location = onnx.TensorProto.EXTERNAL
    if draw.random() < 0.7:
        tensor.ClearField("raw_data")
    for _ in range(draw.randrange(1, 4)):
        tensor.external_data.add(key=draw.choice(PLACES), value=draw.choice(VALUES))


def _rewire(draw: Random, node: onnx.NodeProto, every: list[Message]) -> None:
    """Wrong arity, circles, doubled names, attributes that are missing, too many or of another type."""
    names = [n for m in every if isinstance(m, onnx.NodeProto) for n in (*m.input, *m.output)] + ["", "nowhere"]
    match draw.randrange(6):
        case 0 if node.input:
            node.input[draw.randrange(len(node.input))] = draw.choice(names)
        case 1:
            node.input.append(draw.choice(names))
        case 2 if node.output:
            node.output[draw.randrange(len(node.output))] = draw.choice(names)
        case 3:
            node.op_type = draw.choice([m.op_type for g in originals() for m in g.graph.node])
        case 4 if node.attribute:
            chosen = draw.choice(node.attribute)
            numbers: list[Any] = [1, -1, 2**62, [1], [2**62, -1], [], 0.5, float("nan"), [0.5]]
            value: Any = draw.choice([*numbers, "x", ["x"], b"\xff"])
            name = chosen.name
            chosen.CopyFrom(onnx.helper.make_attribute(name, value, attr_type=7 if value == [] else None))
        case _:
            node.attribute.append(onnx.helper.make_attribute(draw.choice(["axis", "axes", "to", "pads", "bogus"]), 1))


def flipped(draw: Random, payload: bytes) -> bytes:
    out = bytearray(payload)
    for _ in range(draw.choice([1, 1, 2, 5])):
        if out:
            out[draw.randrange(len(out))] = draw.randrange(256)
    if draw.random() < 0.2:
        del out[draw.randrange(len(out) + 1) :]
    return bytes(out)


def _garbled(draw: Random, text: str) -> bytes:
    """A text with numbers or words exchanged for others of it, or bytes flipped."""
    words = text.split(" ")
    for _ in range(draw.choice([1, 2, 4])):
        words[draw.randrange(len(words))] = draw.choice([*words, str(draw.choice(NUMBERS)), "", f"f32[{2**40}]"])
    out = " ".join(words).encode()
    return flipped(draw, out) if draw.random() < 0.3 else out


def _onnx_file(draw: Random, folder: Path) -> Path:
    model = onnx.ModelProto()
    model.CopyFrom(draw.choice(originals()))
    (folder / "w").write_bytes(bytes(64))
    for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
        edit(draw, model)
    payload = model.SerializeToString()
    path = folder / "m.onnx"
    path.write_bytes(flipped(draw, payload) if draw.random() < 0.25 else payload)
    return path


@cache
def _containers() -> list[bytes]:
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for model in originals()[::97]:
            try:
                irc.save(irc.import_onnx(model), path := Path(folder) / "m.ir")
            except irc.IrcError:
                continue
            out.append(path.read_bytes())
    return out


def _read(path: Path) -> None:
    model = irc.import_onnx(path) if path.suffix == ".onnx" else irc.load(path)
    if "main" in model.functions:
        irc.compile(model, target="reference")


def check(seed: str) -> str:
    """What became of the file of this seed: "model" or the error's name; Found if it was anything else."""
    draw = Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        match draw.randrange(8):
            case 0:
                path = folder / "m.ir"
                path.write_bytes(_garbled(draw, draw.choice(texts())))
            case 1:
                path = folder / "m.ir"
                path.write_bytes(flipped(draw, draw.choice(_containers())))
            case _:
                path = _onnx_file(draw, folder)
        return _answer(seed, path)


def _answer(seed: str, path: Path) -> str:
    def stop(number: int, frame: Any) -> None:
        raise _TooLong

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    handler = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _read(path)
        answer = "model"
    except irc.IrcError as error:
        answer = type(error).__name__
        if not str(error).strip():
            raise Found(f"seed {seed}: {answer} says nothing") from error
    except (Exception, _TooLong) as error:
        where = [f"{f.filename.rsplit('/irc/')[-1]}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)][-4:]
        raise Found(f"seed {seed}: {type(error).__name__}: {str(error)[:300]} at {' < '.join(where[::-1])}") from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if grown > MEGABYTES * 1024 * (1024 if sys.platform == "darwin" else 1):
        raise Found(f"seed {seed}: took {grown} more memory")
    return answer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--start", default="files", help="names of the files begin with this")
    parser.add_argument("--seed", help="one file only")
    options = parser.parse_args()
    until, found, number, answers = time.monotonic() + 60 * options.minutes, 0, 0, dict[str, int]()
    for number in itertools.count():
        if time.monotonic() > until or (options.seed and number):
            break
        try:
            answer = check(options.seed or f"{options.start}.{number}")
            answers[answer] = answers.get(answer, 0) + 1
        except Found as fault:
            found += 1
            print(f"{fault}\n", flush=True)
    print(f"{number} files, {found} faults; {answers}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
