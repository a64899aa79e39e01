"""Emitted code of ten small models on both targets: the text is kept, and each is also run against the reference."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import irc
from irc.ir.reference import evaluate
from irc.ir.types import TensorType, substitute
from irc.runtime.feeds import random_array
from irc.testing.agreement import compare
from irc.testing.golden import check_golden

FOLDER = Path(__file__).parent
NAMES = (
    "conv_bn_relu",
    "depthwise_block",
    "attention",
    "lstm",
    "mlp",
    "while_captures",
    "if_branches",
    "qdq_convolution",
    "resize_concat",
    "embedding",
)


def feeds(model, dims, seed=0):
    """Seeded inputs for every input of the entry."""
    generator = np.random.default_rng(seed)
    arrays = []
    for value in model.main.inputs:
        type_ = substitute(value.type, dict(dims))
        assert isinstance(type_, TensorType)
        arrays.append(random_array(generator, type_, type_.dims))
    return arrays


def compiled(golden_models, name, target):
    build, dims = golden_models[name]
    model = build()
    ahead = dims if target == "xla" and dims else None
    return model, dims, irc.compile(model, target="mlx{compile=on}" if target == "mlx" else target, dims=ahead)


def test_the_list_is_complete(golden_models):
    assert tuple(golden_models) == NAMES
    written = {p.stem for p in FOLDER.glob("*.mlir")} & {p.stem for p in FOLDER.glob("mlx/*.py")}
    assert written == set(NAMES)


@pytest.mark.parametrize("target", ["xla", "mlx"])
@pytest.mark.parametrize("name", NAMES)
def test_emitted_code_is_the_golden_one_and_runs(golden_models, name, target, update_golden):
    model, dims, executable = compiled(golden_models, name, target)
    path = FOLDER / f"{name}.mlir" if target == "xla" else FOLDER / "mlx" / f"{name}.py"
    check_golden(path, executable.source, update=update_golden)
    arrays = feeds(model, dims)
    want = evaluate(model, arrays)
    for output, got, expected in zip(model.main.output_names, executable(*arrays), want, strict=True):
        agreement = compare(output, got, expected, rtol=2e-5, atol=1e-6)
        assert agreement.agrees, agreement


@pytest.mark.parametrize("name", NAMES)
def test_emission_is_deterministic(golden_models, name):
    for target in ("xla", "mlx"):
        assert compiled(golden_models, name, target)[2].source == compiled(golden_models, name, target)[2].source


def test_mlx_goldens_are_clean_and_import_only_mlx_and_math():
    files = sorted((FOLDER / "mlx").glob("*.py"))
    assert len(files) == len(NAMES)
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert {a.name for a in node.names} <= {"mlx.core", "math"}, file.name
            assert not isinstance(node, ast.ImportFrom), file.name
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--isolated",
            "--line-length=120",
            "--select=E,F,W,I,B,UP",
            *map(str, files),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_mlx_code_has_few_lines_and_the_models_names(golden_models, name):
    """At most 1.3 lines a node of the legal model in `main`; names of the model are used where lines have one."""
    model, _, executable = compiled(golden_models, name, "mlx")
    nodes = sum(1 for _ in executable.legal_model.nodes())
    tree = ast.parse(executable.source)
    main = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "main")
    lines = len([line for line in executable.source.splitlines()[main.lineno - 1 : main.end_lineno] if line.strip()])
    assert lines <= 1.3 * nodes + 3, f"{lines} lines for {nodes} nodes (signature, dims and return apart)"
    assigned = {t.id for n in ast.walk(main) if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    known = {v.name for n in executable.legal_model.nodes() for v in n.results if v.name} | set(model.main.dims)
    unnamed = any(v.name is None for n in executable.legal_model.nodes() for v in n.results)
    assert unnamed or assigned <= known, f"names that the model does not have: {sorted(assigned - known)}"
