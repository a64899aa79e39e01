"""Fixtures for the ONNX front door: models of one node, and the judgement of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

Spec = np.ndarray | tuple[int, Sequence[Any] | None] | None
"""An operand: an array is a constant, (element type, dims) an input, None absent."""


def build_one_node(
    op: str,
    operands: Sequence[Spec],
    opset: int,
    *,
    outputs: int | Sequence[str] = 1,
    out_type: int | Sequence[int] = TensorProto.FLOAT,
    domain: str = "",
    **attributes: Any,
) -> onnx.ModelProto:
    names, inputs, initializers = [], [], []
    for i, operand in enumerate(operands):
        names.append("" if operand is None else f"x{i}")
        if isinstance(operand, np.ndarray):
            initializers.append(numpy_helper.from_array(operand, f"x{i}"))
        elif operand is not None:
            inputs.append(helper.make_tensor_value_info(f"x{i}", operand[0], operand[1]))
    results = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)
    shown = [r for r in results if r]
    types = [out_type] * len(shown) if isinstance(out_type, int) else out_type
    node = helper.make_node(op, names, results, name="node", domain=domain, **attributes)
    infos = [helper.make_tensor_value_info(r, t, None) for r, t in zip(shown, types, strict=True)]
    graph = helper.make_graph([node], "one_node", inputs, infos, initializers)
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8 if opset < 20 else 10)


@pytest.fixture
def one_node() -> Callable[..., onnx.ModelProto]:
    """`one_node(op, operands, opset, outputs=1, **attributes)`; see Spec for operands; outputs called "" are absent."""
    return build_one_node


@pytest.fixture
def run_ort() -> Callable[[onnx.ModelProto, Sequence[np.ndarray]], list[np.ndarray]]:
    """Results of ONNX Runtime on the CPU, without its graph optimizations."""

    def run(model: onnx.ModelProto, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        feeds = {i.name: x for i, x in zip(session.get_inputs(), inputs, strict=True)}
        return session.run(None, feeds)

    return run


TARGETS = ("reference", "xla", "mlx{compile=off}")


@pytest.fixture
def agrees(run_ort: Callable[..., list[np.ndarray]]) -> Callable[..., None]:
    """`agrees(model, inputs)`: every target gives what ONNX Runtime does, or `want`.

    `rtol` counts against the largest magnitude of a result; integers may be `steps` apart.
    """

    def check(
        model: onnx.ModelProto, inputs: Sequence[np.ndarray], want: Sequence[np.ndarray] | None = None, *,
        rtol: float = 1e-5, steps: int = 0, targets: Sequence[str] = TARGETS,
    ) -> None:  # fmt: skip
        import irc

        expected = run_ort(model, inputs) if want is None else want
        for target in targets:
            results = irc.compile(model, target=target)(*inputs)
            assert len(results) == len(expected)
            for got, wanted in zip(map(np.asarray, results), expected, strict=True):
                assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype), target
                if wanted.dtype.kind in "iub":
                    apart = np.abs(got.astype(np.int64) - wanted.astype(np.int64))
                    assert apart.max(initial=0) <= steps, f"{target}: {np.count_nonzero(apart > steps)} differ"
                    continue
                a, b = got.astype(np.float64), wanted.astype(np.float64)
                bound = rtol * max(float(np.abs(b[np.isfinite(b)]).max(initial=0)), 1e-3)
                np.testing.assert_allclose(a, b, rtol=0, atol=bound, err_msg=target)

    return check
