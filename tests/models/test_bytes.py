"""The same model gives the same container and code bytes; a gigabyte of weights passes through in little memory."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import onnx
from onnx import TensorProto, helper

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"

IMPORT_AND_EMIT = """
import hashlib, sys
import irc
model = irc.import_onnx(sys.argv[1])
irc.save(model, sys.argv[2])
text = hashlib.sha256()
for target in ("xla", "mlx{compile=off}"):
    executable = irc.compile(model, target=target, dims={"batch": 2} if target == "xla" else None)
    text.update(executable.source.encode())
print(text.hexdigest())
"""

GIGABYTE = """
import sys, time
import irc

def status(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) / 1024

import irc.frontends.onnx, irc.ir.container, irc.ir.verify
anonymous, peak, started = status("RssAnon"), status("VmHWM"), time.monotonic()
model = irc.import_onnx(sys.argv[1])
irc.save(model, sys.argv[2])
loaded = irc.load(sys.argv[2])
(weight,) = [c for c in loaded.constants.values() if c.data.nbytes > 1 << 29]
print(status("RssAnon") - anonymous, status("VmHWM") - peak, time.monotonic() - started, weight.data.nbytes)
"""


def test_the_same_model_gives_the_same_bytes_whatever_the_hash_seed(tmp_path):
    found = set()
    for seed in ("0", "1", "4242"):
        out = tmp_path / f"{seed}.ir"
        done = subprocess.run(
            [sys.executable, "-P", "-c", IMPORT_AND_EMIT, str(DIGITS), str(out)],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        found.add((hashlib.sha256(out.read_bytes()).hexdigest(), done.stdout.strip()))
    assert len(found) == 1


def test_a_gigabyte_of_external_data_is_never_in_memory(tmp_path):
    """Import, save and load: less than 100 MB more anonymous memory, less than 200 MB more at the peak, in seconds."""
    side = 1 << 14
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate(4 * side * side)  # a hole: reads as zeros, takes no disk
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[side, side], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "weights.bin"), ("offset", "0"), ("length", str(4 * side * side))):
        weight.external_data.add(key=key, value=value)
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", side]) for n in "xy"]
    graph = helper.make_graph([node], "big", info[:1], info[1:], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), tmp_path / "big.onnx")
    done = subprocess.run(
        [sys.executable, "-P", "-c", GIGABYTE, str(tmp_path / "big.onnx"), str(tmp_path / "big.ir")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    anonymous, peak, seconds, size = (float(word) for word in done.stdout.split())
    assert size == 1 << 30
    assert anonymous < 100
    assert peak < 200
    assert seconds < 60
