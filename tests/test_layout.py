"""The architecture as tests: folders, import direction, the operator grid, sizes, lazy imports, one name per module.

docs/ and README.md describe the layout to people; this file is what holds it.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# The grid: one file (or folder) of this name per family in every layer that treats operators one by one.
FAMILIES = tuple(
    "elementwise shape indexing reduction window linalg convolution control random sort fft quantization normalization"
    " attention recurrent resize sequence text detection training classical".split()
)

# Layer -> the layers it may import; "" is the root __init__.py, the public interface.
LAYERS = {
    "ir": {"ir"},
    "frontends": {"ir", "frontends"},
    "passes": {"ir", "passes"},
    "runtime": {"ir", "passes", "runtime"},
    "targets": {"ir", "passes", "runtime", "targets"},
    "testing": {"", "ir", "frontends", "passes", "runtime", "targets", "testing"},
    "cli": {"", "ir", "frontends", "passes", "runtime", "targets", "testing", "cli"},
    "": {"", "ir", "frontends", "passes", "runtime", "targets", "testing", "cli"},
}

NO_PACKAGES = ("tests", "bench", "docs", "examples")  # pytest and setuptools must not take these for packages
BUILD_PRODUCTS = ("build", "dist", "__pycache__")

LONGEST_FILE = 450  # lines; the aim is 400
LONG_FILES: dict[str, str] = {}  # path from the root -> why it may be longer

GRID_FOLDERS = (
    "ir/ops",
    "frontends/onnx",
    "frontends/onnx/microsoft",
    "targets/xla",
    "targets/mlx",
    "targets/onnx",
    "targets/reference",
    "tests/ops",
)
# Files of these folders that are no family and whose names would otherwise be taken for a misspelt one.  A name that is
# far from every family's needs no entry.
INFRASTRUCTURE: dict[str, set[str]] = {
    "ir/ops": {"__init__"},
    "frontends/onnx": {
        "__init__",
        "importer",
        "context",
        "registry",
        "tensors",
        "external",
        "proto",
        "functions",
        "report",
    },
    "frontends/onnx/microsoft": {"__init__"},
    "targets/xla": {"__init__", "target", "lowering", "context", "emit", "pjrt", "executable"},
    "targets/mlx": {"__init__", "target", "lowering", "context", "emit", "executable"},
    "targets/onnx": {"__init__", "target", "lowering", "context", "emit", "export", "executable"},
    "targets/reference": {"__init__", "target", "executable"},
    "tests/ops": {"conftest"},
}
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "misc", "common"}
# What people call a family when they have not looked.
ALIASES = {
    "activation": "elementwise",
    "arithmetic": "elementwise",
    "conv": "convolution",
    "gather": "indexing",
    "gru": "recurrent",
    "image": "resize",
    "lstm": "recurrent",
    "math": "elementwise",
    "matmul": "linalg",
    "ml": "classical",
    "norm": "normalization",
    "pool": "window",
    "pooling": "window",
    "quant": "quantization",
    "rnn": "recurrent",
    "scatter": "indexing",
    "signal": "fft",
    "string": "text",
    "strings": "text",
}

# What takes long to import, and no --help should wait for.
HEAVY = {"jax", "jaxlib", "mlx", "onnx", "onnxruntime", "scipy"}


# ---------------------------------------------------------------------------------------------------------- the folders


def source_folders() -> Iterator[Path]:
    """Every folder of the checkout that may hold package code, the root first."""
    yield ROOT
    for folder, subfolders, _ in os.walk(ROOT):
        excluded = NO_PACKAGES if Path(folder) == ROOT else ()
        subfolders[:] = sorted(
            name
            for name in subfolders
            if not name.startswith(".") and not name.endswith(".egg-info") and name not in (*BUILD_PRODUCTS, *excluded)
        )
        yield from (Path(folder) / name for name in subfolders)


def source_files() -> list[Path]:
    return [path for folder in source_folders() for path in sorted(folder.glob("*.py"))]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    """ir/ops/__init__.py -> irc.ir.ops"""
    parts = ["irc", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def pyproject() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_package_list_equals_the_folders():
    listed = pyproject()["tool"]["setuptools"]["packages"]
    found = [module_name(folder / "__init__.py") for folder in source_folders() if (folder / "__init__.py").exists()]
    assert listed == sorted(found), (
        "tool.setuptools.packages in pyproject.toml, sorted, names every folder with __init__.py"
    )


def test_every_folder_with_code_is_a_package():
    bare = [relative(folder) for folder in source_folders() if any(folder.glob("*.py"))]
    bare = [folder for folder in bare if not (ROOT / folder / "__init__.py").exists()]
    assert not bare, "these folders hold Python files and no __init__.py"


def test_tests_bench_and_examples_are_no_packages():
    wrong = [relative(path) for name in NO_PACKAGES for path in (ROOT / name).rglob("__init__.py")]
    wrong = [path for path in wrong if not path.startswith("examples/plugin/src/")]  # a distribution of its own
    assert not wrong, "pytest would import irc a second time through these"


def test_nothing_in_the_root_but_the_public_interface():
    assert [path.name for path in sorted(ROOT.glob("*.py"))] == ["__init__.py"], "a conftest.py belongs into tests/"


# ------------------------------------------------------------------------------------------------------- the directions


def imported_modules(path: Path, source: str) -> Iterator[tuple[int, str]]:
    """(line, absolute name) of each module of irc that a file imports, deferred and constant import_module included."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]

    def absolute(level: int, name: str) -> str:
        base = package[: len(package) - level + 1] if level else []
        return ".".join([*base, *([name] if name else [])])

    for node in ast.walk(ast.parse(source, str(path))):
        match node:
            case ast.Import(names=names):
                found = [alias.name for alias in names]
            case ast.ImportFrom(module=None, names=names, level=level):
                found = [absolute(level, alias.name) for alias in names]  # from .. import ir
            case ast.ImportFrom(module=str(module), names=names, level=level):
                base = absolute(level, module)
                found = [f"irc.{alias.name}" for alias in names] if base == "irc" else [base]
            case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module"), args=[first, *_]):
                name = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
                level = len(name) - len(name.lstrip("."))
                found = [absolute(level, name.lstrip("."))]
            case _:
                continue
        yield from ((node.lineno, name) for name in found if name.split(".")[0] == "irc")


def layer_of(module: str) -> str:
    """irc.ir.ops -> ir; the public interface, and any name taken from it, -> the empty name."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else ""


def direction_faults(path: Path, source: str) -> list[str]:
    layer = layer_of(module_name(path))
    return [
        f"{relative(path)}:{line}: {layer or 'the root'} must not import {name}"
        for line, name in imported_modules(path, source)
        if layer_of(name) not in LAYERS[layer]
    ]


def test_every_package_belongs_to_a_layer():
    found = {relative(path.parent).split("/")[0] for path in source_files() if path.parent != ROOT}
    assert found == set(LAYERS) - {""}, "the folders of the root are the layers"


def test_imports_point_one_way():
    assert not [fault for path in source_files() for fault in direction_faults(path, path.read_text())]


def test_imports_inside_the_package_are_relative():
    wrong = []
    for path in source_files():
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            wrong += [f"{relative(path)}:{node.lineno}: {name}" for name in names if name.split(".")[0] == "irc"]
    assert not wrong, "write these as relative imports"


@pytest.mark.parametrize(
    ("path", "line", "refused"),
    [
        ("ir/text.py", "from .model import Model", None),
        ("ir/ops/sort.py", "from ...passes import manager", "irc.passes"),
        ("ir/ops/__init__.py", "from ..model import Model", None),
        ("ir/ops/__init__.py", "from ...passes.manager import Pass", "irc.passes.manager"),
        ("ir/text.py", "def f():\n    from .. import passes", "irc.passes"),
        ("ir/text.py", "from .. import load", "irc.load"),
        ("passes/cse.py", "from ..ir import rewrite", None),
        ("passes/cse.py", "import irc.targets.xla", "irc.targets.xla"),
        ("passes/cse.py", "import importlib\nimportlib.import_module('irc.runtime')", "irc.runtime"),
        (
            "passes/cse.py",
            "from importlib import import_module\nimport_module('..runtime', __package__)",
            "irc.runtime",
        ),
        ("frontends/onnx/sort.py", "from ...passes import fold", "irc.passes"),
        ("runtime/executable.py", "from ..targets.base import Target", "irc.targets.base"),
        ("targets/base.py", "from ..runtime import executable", None),
        ("targets/onnx/sort.py", "import onnx", None),
        ("targets/base.py", "from ..frontends import onnx", "irc.frontends"),
        ("testing/__init__.py", "from ..cli import main", "irc.cli"),
        ("cli/run.py", "from .. import load", None),
        ("__init__.py", "from .targets import base", None),
    ],
)
def test_the_direction_test_sees(path: str, line: str, refused: str | None):
    faults = direction_faults(ROOT / path, line)
    assert (refused is None and not faults) or [fault.rpartition(" ")[2] for fault in faults] == [refused]


# ------------------------------------------------------------------------------------------------------------- the grid


def meant_family(name: str) -> str | None:
    """The family that a file name that is not exactly a family's seems to mean: reductions, conv, shape_ops."""
    for word in name.split("_"):
        if word in ALIASES:
            return ALIASES[word]
        for family in FAMILIES:
            if word.startswith(family[:5]):  # five letters tell all families apart
                return family
    return None


@pytest.mark.parametrize("folder", GRID_FOLDERS)
def test_file_names_follow_the_grid(folder: str):
    assert (ROOT / folder).is_dir()
    names = [path.stem for path in (ROOT / folder).iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    names += [path.name for path in (ROOT / folder).iterdir() if folder == "tests/ops" and path.is_dir()]
    misleading = {}
    for name in set(names) - INFRASTRUCTURE[folder]:
        bare = name.removeprefix("test_")
        if bare not in FAMILIES and (family := meant_family(bare)):
            misleading[name] = family
    assert not misleading, (
        "each of these is near a family's name; give it the family's name or one far from all of them"
    )


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("reductions", "reduction"),
        ("reduce", "reduction"),
        ("shape_ops", "shape"),
        ("conv", "convolution"),
        ("sorting", "sort"),
        ("quantize", "quantization"),
        ("native_attention", "attention"),
        ("context", None),
        ("pjrt", None),
        ("tensors", None),
        ("constants", None),
        ("convert", None),
    ],
)
def test_the_grid_test_sees(name: str, family: str | None):
    assert meant_family(name) == family


def test_no_file_is_named_for_nothing():
    named = [relative(path) for path in source_files() if set(path.stem.split("_")) & NAMES_THAT_SAY_NOTHING]
    named += [relative(folder) for folder in source_folders() if folder.name in NAMES_THAT_SAY_NOTHING]
    assert not named, "name these for what lives in them"


def test_mypy_relaxes_the_families_and_printed_recipes_and_no_other_file():
    relaxed = [
        module
        for override in pyproject()["tool"]["mypy"]["overrides"]
        if override.get("allow_untyped_defs")
        for module in override["module"]
    ]
    handlers = [*(f"irc.frontends.onnx.{family}.*" for family in FAMILIES), "irc.frontends.onnx.microsoft.*"]
    rules = [f"irc.targets.*.{family}.*" for family in FAMILIES]
    assert relaxed == ["irc.ir.ops.*", *handlers, *rules, "irc.targets.mlx.recipes.*"]


def test_files_stay_readable():
    lengths = {relative(path): len(path.read_text().splitlines()) for path in source_files()}
    too_long = {path: lines for path, lines in lengths.items() if lines > LONGEST_FILE and path not in LONG_FILES}
    assert not too_long, f"split these: a file has at most {LONGEST_FILE} lines"
    assert not [path for path in LONG_FILES if lengths.get(path, 0) <= LONGEST_FILE], "these need no exception any more"


# ------------------------------------------------------------------------------------------------- one name per module

# Imports the modules named on standard input, prints those files of the folder argv[1] that have several names.
IMPORT_ALL = """
import importlib, json, os, sys
root = os.path.realpath(sys.argv[1])
for name in json.load(sys.stdin):
    importlib.import_module(name)
names = {}
for name, module in list(sys.modules.items()):
    file = getattr(module, "__file__", None)
    if not file or not name.startswith("irc") and os.sep + "site-packages" + os.sep in file:
        continue  # what is installed into a .venv inside the checkout is not ours
    if (file := os.path.realpath(file)).startswith(root + os.sep):
        names.setdefault(os.path.relpath(file, root), []).append(name)
assert os.path.realpath(sys.modules["irc"].__file__) == os.path.join(root, "__init__.py"), sys.modules["irc"].__file__
print(json.dumps({file: found for file, found in names.items() if len(found) > 1}))
"""


def files_with_several_names(checkout: Path, folder: Path, environment: dict[str, str]) -> dict[str, list[str]]:
    """Import everything of `checkout` in a new process that starts in `folder`."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, str(checkout)],
        input=json.dumps([module_name(path) for path in source_files()]),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def renamed_checkout(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A copy of the package in a folder whose name is no identifier, and an environment in which it is irc."""
    base = tmp_path_factory.mktemp("layout")
    checkout = base / "any-name 2.0"
    for path in [*source_files(), ROOT / "pyproject.toml", *(ROOT / "tests" / "plugins").glob("*.py")]:
        target = checkout / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    (base / "site").mkdir()
    (base / "site" / "irc").symlink_to(checkout, target_is_directory=True)
    return checkout, {**os.environ, "PYTHONPATH": str(base / "site"), "PYTHONDONTWRITEBYTECODE": "1"}


def test_no_file_is_loaded_under_two_names(tmp_path: Path):
    assert files_with_several_names(ROOT, tmp_path, dict(os.environ)) == {}


def test_no_file_is_loaded_under_two_names_in_this_process():
    names: dict[Path, list[str]] = {}
    inside = set(source_files())
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and (path := Path(file).resolve()) in inside:
            names.setdefault(path, []).append(name)
    assert not [found for found in names.values() if len(found) > 1]


def test_a_checkout_may_have_any_folder_name(renamed_checkout: tuple[Path, dict[str, str]]):
    checkout, environment = renamed_checkout
    assert files_with_several_names(checkout, checkout.parent, environment) == {}


def test_pytest_imports_no_second_irc_from_a_checkout_of_any_name(renamed_checkout: tuple[Path, dict[str, str]]):
    checkout, environment = renamed_checkout
    (checkout / "tests" / "test_names.py").write_text(
        "import sys, irc\n"
        "def test_names():\n"
        "    files = [getattr(module, '__file__', None) for module in list(sys.modules.values())]\n"
        "    ends = ('any-name 2.0/__init__.py', 'irc/__init__.py')\n"
        "    here = [file for file in files if file and file.endswith(ends)]\n"
        "    assert here == [irc.__file__]\n"
    )
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


# --------------------------------------------------------------------------------------------------------- lazy imports


def imports_of(command: list[str], folder: Path) -> tuple[set[str], str]:
    """The top-level names of all modules that a new process imports, as the interpreter reports, and its output."""
    environment = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}, done.stdout


def test_import_irc_loads_nothing_heavy(tmp_path: Path):
    imported, _ = imports_of([sys.executable, "-c", "import irc"], tmp_path)
    assert "irc" in imported
    assert not imported & HEAVY


def test_the_import_test_sees(tmp_path: Path):
    imported, _ = imports_of([sys.executable, "-c", "import scipy"], tmp_path)
    assert imported & HEAVY == {"scipy"}


@pytest.mark.parametrize(
    "command",
    [
        pytest.param([sys.executable, "-m", "irc.cli.main"], id="module"),
        pytest.param([str(Path(sysconfig.get_path("scripts")) / "irc")], id="script"),
    ],
)
def test_help_loads_nothing_heavy(command: list[str], tmp_path: Path):
    imported, printed = imports_of([*command, "--help"], tmp_path)
    assert "Usage" in printed
    assert "irc" in imported
    assert not imported & HEAVY
