"""Artifacts: a folder with a compiled model that runs without compiling again.

    manifest.json     target, options, versions, entry types, hashes of everything else
    model.ir          the model with its weights, `init` evaluated (canonical, or legal for a shape-polymorphic target)
    code/             emitted code, one file a program
    compiled/<n>/     what the target needs to load program n

Loading an artifact runs code, so every file is checked against the manifest first.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..ir.clone import clone_model
from ..ir.container import load as load_model
from ..ir.container import save as save_model
from ..ir.data import ArrayData
from ..ir.errors import FormatError, IrcError
from ..ir.model import Model
from ..ir.reference import Evaluator
from .backend import Backend
from .report import Report

if TYPE_CHECKING:
    from .executable import Executable

FORMAT = 1
"""Version of the folder layout and manifest."""


def evaluate_init(model: Model) -> Model:
    """The model with its derived constants computed and `init` empty; a copy if there was anything to do."""
    if not model.derived:
        return model
    evaluator = Evaluator(model)
    arrays = [evaluator.constant(c) for c in model.derived]
    out = clone_model(model)
    for constant, array in zip(list(out.derived), arrays, strict=True):
        constant.resolve(ArrayData(array, constant.dtype))
    out.clear_init()
    return out


def save(executable: Executable, path: Path) -> None:
    """Write the artifact of an executable to a new or replaced folder, whole or not at all."""
    backend = executable.backend
    programs = executable.programs
    if not backend.per_shape and not programs:
        executable.specialize()
        programs = executable.programs
    if path.exists() and not (path / "manifest.json").is_file():
        raise IrcError(f"{path} exists and is no artifact; choose another name or remove it")
    path.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        model = executable.model if backend.per_shape else executable.legal_model
        save_model(evaluate_init(model), work / "model.ir")
        rows: list[dict[str, Any]] = []
        for number, (key, program) in enumerate(programs.items()):
            folder = work / "compiled" / str(number)
            folder.mkdir(parents=True)
            program.save(folder)
            rows.append({"dims": dict(key), "folder": f"compiled/{number}"})
        manifest = {
            "format": FORMAT,
            "target": backend.spec,
            "versions": backend.versions(),
            "entry": executable.entry.name,
            "inputs": {n: str(t) for n, t in executable.input_types.items()},
            "outputs": {n: str(t) for n, t in executable.output_types.items()},
            "assumptions": [str(a) for a in executable.entry.assumptions],
            "programs": rows,
            "report": {k: v for k, v in executable.report.as_dict().items() if k != "seconds"},
            "files": {f.relative_to(work).as_posix(): _digest(f) for f in sorted(work.rglob("*")) if f.is_file()},
        }
        (work / "manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
        work.chmod(0o755)
        if path.exists():
            shutil.rmtree(path)
        os.replace(work, path)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def read_manifest(path: Path) -> dict[str, Any]:
    """The checked manifest of an artifact; FormatError says what is wrong with the folder."""
    file = path / "manifest.json"
    if not file.is_file():
        raise FormatError(f"{path} is not an artifact: it has no manifest.json")
    try:
        manifest = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file}: not JSON: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else None
        raise FormatError(f"{file}: artifact format {found!r}; this irc reads format {FORMAT}")
    expected = {"target": str, "versions": dict, "entry": str, "programs": list, "files": dict}
    for key, kind in expected.items():
        if not isinstance(manifest.get(key), kind):
            raise FormatError(f"{file}: {key!r} must be a {kind.__name__}")
    root = path.resolve()
    for name, digest in manifest["files"].items():
        target = (root / name).resolve()
        if not target.is_relative_to(root) or not target.is_file():
            raise FormatError(f"{file}: {name!r} is not a file of the artifact")
        if _digest(target) != digest:
            raise FormatError(f"{target}: contents differ from the manifest; the artifact was changed or damaged")
    return manifest


def load(path: Path, backend: Backend, manifest: dict[str, Any]) -> Executable:
    """The executable of an artifact.  `backend` is the target that the manifest names."""
    from .executable import Executable

    model = load_model(path / "model.ir")
    stored: dict[tuple[Any, ...], Path] = {}
    for row in manifest["programs"]:
        folder = row["folder"] if isinstance(row, dict) else None
        if not isinstance(folder, str) or not any(n.startswith(folder + "/") for n in manifest["files"]):
            raise FormatError(f"{path}/manifest.json: program {row!r} has no files")
        stored[tuple(sorted(row["dims"].items()))] = path / folder
    return Executable(model, backend, entry=manifest["entry"], stored=stored, report=Report())


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
