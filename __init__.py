"""irc: a compiler for trained models.  ONNX in, one typed graph IR, XLA and MLX out.

    model = irc.import_onnx("model.onnx")
    irc.save(model, "model.ir")
    run = irc.compile(model, target="xla")
    outputs = run(images)

Everything heavy is imported when it is first needed.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .ir.build import Builder
    from .ir.dims import symbol
    from .ir.errors import (
        AssumptionError,
        FormatError,
        InferenceError,
        InputError,
        IrcError,
        UnsupportedError,
        VerifyError,
    )
    from .ir.model import Model
    from .passes import run_passes
    from .runtime.executable import Executable
    from .targets.base import Target

_EXPORTS = {
    "AssumptionError": ".ir.errors",
    "Builder": ".ir.build",
    "Executable": ".runtime.executable",
    "FormatError": ".ir.errors",
    "InferenceError": ".ir.errors",
    "InputError": ".ir.errors",
    "IrcError": ".ir.errors",
    "Model": ".ir.model",
    "UnsupportedError": ".ir.errors",
    "VerifyError": ".ir.errors",
    "run_passes": ".passes",
    "symbol": ".ir.dims",
}
__version__ = "0.1.0"
__all__ = [
    "AssumptionError",
    "Builder",
    "Executable",
    "FormatError",
    "InferenceError",
    "InputError",
    "IrcError",
    "Model",
    "UnsupportedError",
    "VerifyError",
    "compile",
    "import_onnx",
    "load",
    "load_executable",
    "read",
    "run_passes",
    "save",
    "symbol",
]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'irc' has no attribute {name!r}")
    value = getattr(importlib.import_module(_EXPORTS[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def import_onnx(source: Any) -> Model:
    """The model of an ONNX file or `ModelProto`.  UnsupportedError lists everything that cannot be imported."""
    from .ir.errors import IrcError

    if not isinstance(source, str | os.PathLike | bytes) and not hasattr(source, "SerializeToString"):
        raise IrcError(f"expected a path, bytes or an ONNX ModelProto, got {type(source).__name__}")
    from .frontends.onnx.importer import import_onnx as importer

    return importer(source)


def _open_front_doors(model: Model) -> None:
    """Import the front end that types the late nodes of a model, if it has any."""
    if any(node.op.name == "onnx" for node in model.nodes()):
        importlib.import_module(".frontends.onnx.late", __name__)


def load(path: str | Path, *, verify: bool = True) -> Model:
    """The model of a container file; its weights stay mapped.  FormatError or VerifyError says what is wrong."""
    from .ir.container import load as load_container

    model = load_container(_path(path))
    _open_front_doors(model)
    if verify:
        from .ir.verify import check

        check(model)
    return model


def read(source: Any) -> Model:
    """A model from an `.ir` or `.onnx` path, a `ModelProto`, or a model itself."""
    from .ir.errors import IrcError
    from .ir.model import Model

    if isinstance(source, Model):
        return source
    if not isinstance(source, str | os.PathLike):
        return import_onnx(source)
    path = Path(source)
    if path.suffix.lower() == ".ir":
        return load(path)
    if path.suffix.lower() == ".onnx":
        return import_onnx(path)
    raise IrcError(f"{path}: expected a file ending in .ir or .onnx")


def save(model: Model, path: str | os.PathLike[str], *, opset: int | None = None) -> None:
    """Write a model, whole or not at all: as ONNX where the path ends in `.onnx`, else as a container (`.ir`).

    ONNX is written from a copy in the operators that its operator set `opset` (21 to 28, default 21) has;
    UnsupportedError lists what it cannot express.
    """
    if Path(path).suffix.lower() == ".onnx":
        from .targets.onnx.export import save_onnx
        from .targets.onnx.lowering import OPSET

        save_onnx(model, Path(path), opset=OPSET if opset is None else opset)
    elif opset is not None:
        from .ir.errors import IrcError

        raise IrcError(f"{path}: only a file ending in .onnx has an operator set; leave opset out")
    else:
        from .ir.container import save as save_container

        save_container(model, path)


def compile(
    source: Any,
    *,
    target: str | Target,
    entry: str | None = None,
    dims: Mapping[str, int | Sequence[int]] | None = None,
    passes: str | None = None,
    seed: int | None = None,
    shapes: str = "exact",
    cache: bool | str | os.PathLike[str] | None = None,
    **options: Any,
) -> Executable:
    """A model, ready to run on a target.

    `source` is a path (`.ir`, `.onnx`), an ONNX `ModelProto` or a `Model`, which stays as it is.  `target` is `"xla"`,
    `"mlx{compile=off}"`, ...; `options` are further target options.  `passes` replaces the default pipeline.  `dims`
    compiles ahead: `dims={"B": [1, 8]}`.  Otherwise a shape is compiled at its first call.

    `seed` fixes what random operators without a seed of their own draw, call by call.

    `shapes="bucket"` compiles for sizes rounded up to powers of two, so that few programs serve many shapes; results
    have their true shapes.  It does so for dims, also those that hang on values, whose operators all have a rule for
    it; `report.bucketed` and `report.exact` say which.

    `cache` is the folder of a disk cache, or True for the user's own: code that a target has compiled before, for the
    same program, versions and processor, is taken from there.  See `runtime.disk_cache`.

    Everything the target cannot do is reported at once, here: UnsupportedError.
    """
    from . import targets
    from .ir.clone import clone_model
    from .passes import DEFAULT, parse_pipeline, run_pipeline
    from .runtime.disk_cache import DiskCache
    from .runtime.executable import Executable
    from .runtime.report import Report

    report = Report()
    disk = None if cache is None or cache is False else DiskCache(None if cache is True else _path(cache))
    backend = targets.configured(target, options)
    started = time.perf_counter()
    model = clone_model(read(source))
    report.add_time("import", time.perf_counter() - started)
    report.nodes_before = sum(1 for _ in model.nodes())
    started = time.perf_counter()
    run_pipeline(model, parse_pipeline(DEFAULT if passes is None else passes))
    report.add_time("passes", time.perf_counter() - started)
    report.nodes_after = sum(1 for _ in model.nodes())
    report.constants = len(model.constants)
    report.constant_bytes = sum(c.data.nbytes for c in model.constants.values() if c.data is not None)
    executable = Executable(model, backend, entry=entry, report=report, seed=seed, shapes=shapes, cache=disk)
    executable.prepare()
    for values in _combinations(executable, dims or {}):
        executable.specialize(**values)
    return executable


def _path(path: Any) -> Path:
    from .ir.errors import IrcError

    if not isinstance(path, str | os.PathLike):
        raise IrcError(f"expected a path, got {type(path).__name__}")
    return Path(path)


def _combinations(executable: Executable, dims: Mapping[str, Any]) -> list[dict[str, int]]:
    """One mapping for each combination of the sizes asked for."""
    if not dims:
        return []
    names = [executable.dim_symbol(n) for n in dims]
    choices = [[v] if isinstance(v, str) or not isinstance(v, Iterable) else list(v) for v in dims.values()]
    return [dict(zip(names, values, strict=True)) for values in product(*choices)]


def load_executable(path: str | Path) -> Executable:
    """The executable of an artifact folder.  This runs the code in it; its files are checked against its manifest."""
    from . import targets
    from .runtime.artifact import load as load_artifact
    from .runtime.artifact import read_manifest

    folder = _path(path)
    manifest = read_manifest(folder)
    executable = load_artifact(folder, targets.get(manifest["target"]), manifest)
    _open_front_doors(executable.model)
    return executable
