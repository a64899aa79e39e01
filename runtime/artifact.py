"""Artifacts: a folder with a compiled model that runs without compiling again.

    manifest.json     target, options, versions, entry types, programs by dims, segments, hashes of everything else
    model.ir          the model with its weights, `init` evaluated (canonical, or legal for a shape-polymorphic target)
    compiled/<id>/    the emitted code of one program or segment and what the target needs to load it

An entry that runs in stages has no programs but segments, found again by a digest of what they do: stages are worked
out anew from the model, and whatever was compiled before is not compiled again.

Loading an artifact runs code, so every file is checked against the manifest first, and a program's once more when it is
loaded.  A program's folder is called by a digest of its dims and files, so another program never stands in its place.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..ir.clone import clone_model
from ..ir.container import load as load_model
from ..ir.container import save as save_model
from ..ir.data import ArrayData
from ..ir.errors import FormatError, IrcError
from ..ir.graph import graphs_inside
from ..ir.model import Model
from ..ir.reference import Evaluator
from ..ir.rewrite import Rewriter
from ..ir.verify import check as check_model
from .backend import Backend
from .buckets import SHAPES
from .report import Report

if TYPE_CHECKING:
    from .executable import Executable

FORMAT = 3
"""Version of the folder layout and manifest."""

MANIFEST, MODEL, ROOM = "manifest.json", "model.ir", "compiled"

OF_ONE_PROCESS = ("seconds", "segments", "host_steps", "host_operators")
"""What a report says of one executable's runs, not of the model."""

_ROOMS = re.compile(r"compiled/[0-9a-f]{16}/[^/]+")


@dataclass(frozen=True)
class StoredProgram:
    """A program in an artifact's folder, and the sha256 of its files by name."""

    folder: Path
    files: Mapping[str, str]

    def is_intact(self) -> bool:
        """Whether the files are still those of the manifest: the folder may have been replaced since it was read."""
        try:
            return all(_digest(self.folder / name) == digest for name, digest in self.files.items())
        except OSError:
            return False


def kept_constants(model: Model) -> set[str]:
    """Names of the constants that an artifact holds: those that functions use themselves, not only `init`."""
    graphs = [g for f in model.functions.values() for g in graphs_inside(f.body)]
    used = {v for g in graphs for v in g.outputs} | {v for g in graphs for n in g.nodes for v in n.operands}
    return {name for name, constant in model.constants.items() if constant in used}


def evaluate_init(model: Model) -> Model:
    """The model with its derived constants computed, `init` empty, and no constant that nothing uses any more."""
    kept = kept_constants(model)
    if not model.derived and len(kept) == len(model.constants):
        return model
    evaluator = Evaluator(model)
    out = clone_model(model)
    rewriter = Rewriter(out, "artifact")
    rewriter.erase_constants([c for c in out.derived if not c.has_uses])
    for constant in out.derived:
        constant.resolve(ArrayData(evaluator.constant(model.constants[constant.name or ""]), constant.dtype))
    out.clear_init()
    rewriter.erase_constants([c for c in out.constants.values() if not c.has_uses])
    return out


def save(executable: Executable, path: Path) -> None:
    """Write the artifact of an executable to a new or replaced folder, whole or not at all."""
    try:
        _save(executable, Path(os.path.realpath(path)))
    except OSError as error:
        raise IrcError(f"{path}: the artifact cannot be written: {error}") from error


def _save(executable: Executable, path: Path) -> None:
    backend = executable.backend
    if not backend.per_shape and not executable.is_staged:
        executable.specialize()
    if path.exists() and not (path / MANIFEST).is_file():
        raise IrcError(f"{path} exists and is no artifact; choose another name or remove it")
    path.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        model = executable.model if backend.per_shape or executable.is_staged else executable.legal_model
        save_model(evaluate_init(model), work / MODEL)
        (work / ROOM).mkdir()
        rows = [] if executable.is_staged else list(_save_programs(executable, work))
        segments = list(_save_segments(executable, work)) if executable.is_staged else []
        report = executable.report.as_dict()
        manifest = {
            "format": FORMAT,
            "target": backend.spec,
            "versions": backend.versions(),
            "entry": executable.entry.name,
            "inputs": {n: str(t) for n, t in executable.input_types.items()},
            "outputs": {n: str(t) for n, t in executable.output_types.items()},
            "shapes": executable.shapes,
            "programs": rows,
            "segments": segments,
            "report": {k: v for k, v in report.items() if k not in OF_ONE_PROCESS},
            "files": {name: _digest(work / name) for name in _files(work)},
        }
        (work / MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
        work.chmod(0o755)
        for place in [*work.rglob("*"), work]:
            _sync(place)
        _replace(work, path)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def _save_programs(executable: Executable, work: Path) -> Iterator[dict[str, Any]]:
    """Write all programs, also those of the executable's own artifact that nobody called; rows of the manifest."""
    programs = executable.programs
    room = work / ROOM
    for number, key in enumerate({**dict.fromkeys(executable.stored), **programs}):
        folder = room / str(number)
        stored = executable.stored.get(key)
        if key not in programs and stored is not None and stored.is_intact():
            shutil.copytree(stored.folder, folder)
        else:
            folder.mkdir()
            (programs.get(key) or executable.program_for(dict(key))).save(folder)
        name = _program_name(dict(key), {f: _digest(folder / f) for f in _files(folder)})
        folder.rename(room / name)
        yield {"dims": dict(key), "folder": f"{ROOM}/{name}"}


def _save_segments(executable: Executable, work: Path) -> Iterator[dict[str, Any]]:
    """Write all segments, also those of the executable's own artifact that nobody ran; rows of the manifest."""
    compiler = executable.compiler
    for digest in sorted({*compiler.known, *compiler.stored}):
        folder = work / ROOM / "new"
        stored = compiler.stored.get(digest)
        if digest in compiler.known:
            folder.mkdir()
            compiler.save(digest, folder)
        elif stored is not None and stored.is_intact():
            shutil.copytree(stored.folder, folder)
        else:
            continue
        name = _program_name({"segment": digest}, {f: _digest(folder / f) for f in _files(folder)})
        folder.rename(work / ROOM / name)
        yield {"segment": digest, "folder": f"{ROOM}/{name}"}


def _replace(work: Path, path: Path) -> None:
    """Move a finished folder into its place; the old one is moved aside first, so that one of them is always there."""
    if not path.exists():
        os.replace(work, path)
    else:
        aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
        try:
            os.replace(path, aside)
            os.replace(work, path)
        except BaseException:
            if path.exists():
                aside.rmdir()
            else:
                os.replace(aside, path)
            raise
        shutil.rmtree(aside, ignore_errors=True)
    _sync(path.parent)


def _sync(path: Path) -> None:
    """Have a file's contents, or a folder's names, on the disk before going on."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _program_name(dims: Mapping[str, int | str], files: Mapping[str, str]) -> str:
    text = json.dumps([sorted(dims.items()), sorted(files.items())])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _files(folder: Path) -> list[str]:
    """Everything below a folder but folders, as names relative to it.

    What Python caches beside emitted code that somebody ran by itself is left out: nothing here ever reads it.
    """
    found = (f.relative_to(folder) for f in folder.rglob("*") if f.is_symlink() or not f.is_dir())
    return sorted(f.as_posix() for f in found if "__pycache__" not in f.parts)


def read_manifest(path: Path) -> dict[str, Any]:
    """The checked manifest of an artifact; FormatError says what is wrong with the folder."""
    file = path / MANIFEST
    if not file.is_file():
        raise FormatError(f"{path} is not an artifact: it has no {MANIFEST}")
    try:
        manifest = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file}: not JSON: {error}") from None
    except OSError as error:
        raise FormatError(f"{file}: cannot be read: {error.strerror or error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else None
        raise FormatError(f"{file}: artifact format {found!r}; this irc reads format {FORMAT}")
    expected = {
        "target": str, "versions": dict, "entry": str, "programs": list, "files": dict, "inputs": dict,
        "outputs": dict, "report": dict, "segments": list, "shapes": str,
    }  # fmt: skip
    for key, kind in expected.items():
        if not isinstance(manifest.get(key), kind):
            raise FormatError(f"{file}: {key!r} must be a {kind.__name__}")
    listed, found = set(manifest["files"]), set(_files(path)) - {MANIFEST}
    if listed != found:
        name = min(listed ^ found)
        what = "is missing" if name in listed else "is not in the manifest"
        raise FormatError(f"{path}: the file {name!r} {what}; the artifact was changed or damaged")
    for name, digest in manifest["files"].items():
        target = path / name
        if name != MODEL and not _ROOMS.fullmatch(name):
            raise FormatError(f"{file}: {name!r} is no file of an artifact")
        if target.is_symlink() or target.parent.is_symlink() or not target.is_file():
            raise FormatError(f"{target}: expected a plain file")
        if _digest(target) != digest:
            raise FormatError(f"{target}: contents differ from the manifest; the artifact was changed or damaged")
    if MODEL not in listed:
        raise FormatError(f"{file}: it lists no {MODEL}")
    return manifest


def load(path: Path, backend: Backend, manifest: dict[str, Any]) -> Executable:
    """The executable of an artifact.  `backend` is the target that the manifest names."""
    from .executable import Executable

    file = path / MANIFEST
    model = load_model(path / MODEL)
    check_model(model)
    entry = model.entry(manifest["entry"])
    names = set(entry.dims) if backend.per_shape else set()
    stored = dict(_stored(path, row, names, manifest["files"]) for row in manifest["programs"])
    segments = dict(_stored_segment(path, row, manifest["files"]) for row in manifest["segments"])
    if manifest["shapes"] not in SHAPES:
        raise FormatError(f"{file}: 'shapes' must be one of {', '.join(SHAPES)}, got {manifest['shapes']!r}")
    report = Report.from_dict(manifest["report"])
    executable = Executable(
        model, backend, entry=entry.name, stored=stored, segments=segments, report=report, shapes=manifest["shapes"]
    )
    for key, types in (("inputs", executable.input_types), ("outputs", executable.output_types)):
        if manifest[key] != {n: str(t) for n, t in types.items()}:
            raise FormatError(f"{file}: its {key} are not those of @{entry.name} in {MODEL}")
    return executable


def _stored(
    path: Path, row: Any, names: set[str], files: Mapping[str, str]
) -> tuple[tuple[tuple[str, int], ...], StoredProgram]:
    """A row of the manifest's programs, checked."""
    file = path / MANIFEST
    dims = row.get("dims") if isinstance(row, dict) else None
    folder = row.get("folder") if isinstance(row, dict) else None
    if not isinstance(dims, dict) or not isinstance(folder, str):
        raise FormatError(f"{file}: program {row!r} must have dims and a folder")
    if set(dims) != names or not all(type(v) is int and v >= 0 for v in dims.values()):
        expected = f"a size for each of {', '.join(sorted(names))}" if names else "none"
        raise FormatError(f"{file}: program {folder} has the dims {dims}, expected {expected}")
    return tuple(sorted(dims.items())), _room(path, folder, dims, files)


def _stored_segment(path: Path, row: Any, files: Mapping[str, str]) -> tuple[str, StoredProgram]:
    """A row of the manifest's segments, checked."""
    digest = row.get("segment") if isinstance(row, dict) else None
    folder = row.get("folder") if isinstance(row, dict) else None
    if not isinstance(digest, str) or not isinstance(folder, str):
        raise FormatError(f"{path / MANIFEST}: segment {row!r} must have a digest and a folder")
    return digest, _room(path, folder, {"segment": digest}, files)


def _room(path: Path, folder: str, what: Mapping[str, int | str], files: Mapping[str, str]) -> StoredProgram:
    """The folder of a program, if it is the one that `what` and the files in it make."""
    own = {name.rpartition("/")[2]: digest for name, digest in files.items() if name.startswith(folder + "/")}
    if not own or folder != f"{ROOM}/{_program_name(what, own)}":
        raise FormatError(f"{path / MANIFEST}: the folder {folder} is not that of a program with the dims {dict(what)}")
    return StoredProgram(path / folder, own)


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
