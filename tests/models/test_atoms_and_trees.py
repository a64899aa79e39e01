"""Published models that are no layers over a grid: a network on a graph of atoms, and boosted trees on rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import irc

INDICES = ("edge_index", "target_indices")


def session(path: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def molecule(judge: onnxruntime.InferenceSession, atoms: int, edges: int, residues: int) -> dict[str, np.ndarray]:
    """Atoms of five kinds, any of them joined; a third of the wanted atoms is masked."""
    rng = np.random.default_rng(atoms)
    size = {"num_atoms": atoms, "num_edges": edges, "num_residues": residues}
    feeds: dict[str, np.ndarray] = {}
    for given in judge.get_inputs():
        shape = [size.get(d, d) for d in given.shape]
        if given.type == "tensor(int64)":
            feeds[given.name] = rng.integers(0, atoms if given.name in INDICES else 5, shape)
        elif given.type == "tensor(bool)":
            feeds[given.name] = rng.random(shape) < 0.7
        else:
            feeds[given.name] = rng.uniform(0.1, 0.9, shape).astype(np.float32)
    return feeds


@pytest.mark.parametrize("target", ["xla", "mlx{compile=off}"])
def test_chemical_shifts_of_two_molecules(target: str, model_path: Callable[[str], Path]):
    """Nineteen inputs over three sizes; messages of edges are gathered from atoms and scattered back.

    ONNX Runtime and irc give NaN where an atom is masked, as the model wants.
    """
    path = model_path("shifts")
    judge = session(path)
    executable = irc.compile(path, target=target)
    for atoms, edges, residues in ((40, 200, 6), (25, 90, 3)):
        feeds = molecule(judge, atoms, edges, residues)
        masked = ~feeds["target_mask"]
        for got, want in zip(executable(*feeds.values()), judge.run(None, feeds), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(np.isnan(got), masked)
            assert np.nanstd(want) > 0
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.nanmax(np.abs(want)))


def test_boosted_trees_stay_one_node(model_path: Callable[[str], Path], tmp_path: Path):
    path = model_path("boosted")
    x = np.random.default_rng(7).standard_normal((5, 229))
    x[0, ::3] = np.nan
    (want,) = session(path).run(None, {"X": x})
    assert want.std() > 0

    smaller = tmp_path / "smaller.onnx"
    irc.save(irc.run_passes(irc.import_onnx(path)), smaller)
    assert [n.op_type for n in onnx.load(smaller).graph.node] == ["TreeEnsemble"]
    assert smaller.stat().st_size < 1.1 * path.stat().st_size
    np.testing.assert_array_equal(session(smaller).run(None, {"X": x})[0], want)
    # Sums of some hundred leaves in float64, in another order.
    np.testing.assert_allclose(irc.compile(path, target="xla")(x)[0], want, rtol=1e-12, atol=1e-12)
