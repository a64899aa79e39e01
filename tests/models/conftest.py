"""Published models for the tests: taken from the packages that ship them, unpacked once into a cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

# name -> (package, file inside the wheel, SHA-256 of the file)
MODELS = {
    "det": (
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
    ),
    "rec": (
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
    ),
    "cls": (
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
    ),
    "common_det": (
        "ddddocr==1.6.1",
        "ddddocr/common_det.onnx",
        "6faa8ea85a8c1a634e5050c4a138fca10f30194e0d7abbe9ade1fcd423af6ed6",
    ),
    "common": (
        "ddddocr==1.6.1",
        "ddddocr/common.onnx",
        "33b5cd351ee94e73a6bf8fa18c415ed8b819b3ffd342e267c30d8ad8334e34e8",
    ),
    "common_old": (
        "ddddocr==1.6.1",
        "ddddocr/common_old.onnx",
        "b8f2ad9cbc1f2e3922a6cb9459e30824e7e2467f3fb4fd61420640e34ea0bf68",
    ),
    "nudenet": (
        "nudenet==3.4.2",
        "nudenet/320n.onnx",
        "c15d8273adad2d0a92f014cc69ab2d6c311a06777a55545f2c4eb46f51911f0f",
    ),
    "basic_pitch": (
        "basic-pitch==0.4.0",
        "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec",
    ),
    "magika": (
        "magika==1.0.3",
        "magika/models/standard_v3_3/model.onnx",
        "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
    ),
    "vad": (
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad.onnx",
        "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
    ),
    "vad_16k_op15": (
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_16k_op15.onnx",
        "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
    ),
    "vad_16k_sequence": (
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_16k_sequence.onnx",
        "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85",
    ),
    "vad_half": (
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_half.onnx",
        "1e0b195ad4806595ef4466f419d16fca7e4afcfc6669b8c0b5f76ea87547c769",
    ),
    "vad_op18": (
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_op18_ifless.onnx",
        "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28",
    ),
    "vad_openvino": (
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_openvino_16k.onnx",
        "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87",
    ),
    "shifts": (  # weights CC BY 4.0: "CAUSTIC model weights, Maximilian Zinke, 2026"
        "caustic-nmr==0.4.1",
        "caustic/data/best_v2_carbons.onnx",
        "ebc7bbc2fc59327a50384105207958948cd90d7b5c7ea1ec2906b473e02948b2",
    ),
    "boosted": (
        "atspm-detector==1.1.0",
        "atspm_detector/weights/function/function229_s0.onnx",
        "50864dedeb8c61f80ccbad3af4a56de4f86836a6a4dcf8aa96d90d7bce624420",
    ),
}


def cache_folder() -> Path:
    """Where models are kept between runs: $IRC_TEST_CACHE, else the user's cache folder."""
    base = (
        os.environ.get("IRC_TEST_CACHE") or Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "irc-tests"
    )
    return Path(base)


def fetch(name: str) -> Path:
    """The model file, downloaded with its package if it is not in the cache; OSError if it cannot be had."""
    package, member, digest = MODELS[name]
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{digest[:12]}.onnx"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test workers share the cache
        if path.exists():
            return path
        wheels = folder / "wheels"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels), package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"{package} cannot be downloaded: {done.stderr.strip()[-300:]}")
        stem = package.replace("-", "_").replace("==", "-")
        (wheel,) = wheels.glob(f"{stem}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            contents = archive.read(member)
        if hashlib.sha256(contents).hexdigest() != digest:
            raise OSError(f"{package}: {member} is not the file that the tests were written for")
        partial = path.with_suffix(".partial")
        partial.write_bytes(contents)
        partial.replace(path)
    return path


@pytest.fixture(scope="session")
def model_path() -> Callable[[str], Path]:
    """Name of a published model to its file.  Without network and cache the test is skipped, except in CI."""

    def get(name: str) -> Path:
        try:
            return fetch(name)
        except OSError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"the published model {name} is not at hand: {error}")

    return get
