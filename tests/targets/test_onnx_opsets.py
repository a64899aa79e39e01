"""Files of newer operator sets: one node for what attention, rotary embedding, RMS normalization and Swish mean."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnxruntime as ort
import pytest

import irc
from irc import targets
from irc.ir import build, dims, dtypes
from irc.ir.clone import clone_model
from irc.ir.errors import IrcError
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.ir.types import TensorType
from irc.passes.legalize import legalize
from irc.targets.onnx.target import OnnxFile

B, H, S, T, D = 2, 4, 5, 6, 8
LOWEST = float(np.finfo(np.float32).min)


def model_of(name: str, *operands: TensorType | None, **attributes: Any) -> Model:
    model = Model("m")
    given = [(f"x{i}", type_) for i, type_ in enumerate(operands) if type_ is not None]

    def body(b: Any, *values: Any) -> Any:
        rest = iter(values)
        return b.apply(name, *(None if type_ is None else next(rest) for type_ in operands), **attributes)

    build.function(model, "main", given, body)
    return model


def attention(mask: TensorType | None = None, keys: int = H, dtype: Any = dtypes.f32, **attributes: Any) -> Model:
    q = TensorType(dtype, (B, H, S, D))
    kv = TensorType(dtype, (B, keys, T, D))
    sinks = attributes.pop("sinks", None)
    given = (q, kv, kv) if mask is None and sinks is None else (q, kv, kv, mask, *((sinks,) if sinks else ()))
    return model_of("Attention", *given, **{"scale": 0.35, **attributes})


def saved(model: Model, path: Path, opset: int) -> onnx.ModelProto:
    irc.save(model, path, opset=opset)
    proto = onnx.load(path)
    onnx.checker.check_model(proto, full_check=True)
    assert [o.version for o in proto.opset_import if o.domain == ""] == [opset]
    return proto


def kinds(proto: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in proto.graph.node)


def inputs_of(model: Model, full_row: bool = False) -> list[np.ndarray]:
    """Normal numbers; masks hide some keys, and every key of one row if `full_row`."""
    rng = np.random.default_rng(0)
    out = []
    for i, value in enumerate(model.main.inputs):
        if value.dtype.is_bool:
            array = rng.random(value.dims) < 0.7
            array[..., 0] = True
            if full_row:
                array[..., 1, :] = False
        else:
            array = rng.standard_normal(value.dims).astype(value.dtype.numpy)
            if full_row and i == 3:
                array[..., 1, :] = -np.inf
        out.append(array)
    return out


def run_file(proto: onnx.ModelProto, inputs: list[np.ndarray]) -> np.ndarray:
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {i.name: a for i, a in zip(proto.graph.input, inputs, strict=True)}
    ours = session.run(None, feeds)[0]
    text = onnx.reference.ReferenceEvaluator(proto).run(None, feeds)[0]
    np.testing.assert_allclose(ours, text, rtol=1e-5, atol=1e-6, equal_nan=True)
    return ours


MASKS = {
    "none": None,
    "bool": TensorType(dtypes.bool_, (B, 1, S, T)),
    "bool-rank-2": TensorType(dtypes.bool_, (S, T)),
    "bool-one-row": TensorType(dtypes.bool_, (B, 1, 1, T)),
    "float": TensorType(dtypes.f32, (B, H, S, T)),
    "float-one-row": TensorType(dtypes.f32, (1, T)),
    "float-half": TensorType(dtypes.f16, (B, 1, S, T)),
}
POSITIONS = {
    "all": {},
    "causal": {"causal": True},
    "causal-offset": {"causal": True, "kv_offset": 1},
    "window": {"causal": True, "window": 2, "kv_offset": 1},
}


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("mask", MASKS)
def test_attention_is_one_node(mask: str, positions: str, tmp_path: Path) -> None:
    for zero in (True, False):
        model = attention(MASKS[mask], keys=2, softcap=3.0, zero_masked_rows=zero, **POSITIONS[positions])
        proto = saved(model, tmp_path / "m.onnx", 23)
        assert kinds(proto)["Attention"] == 1
        assert not kinds(proto)["Softmax"]
        for full_row in (False, True):
            inputs = inputs_of(model, full_row and mask != "none" and "one-row" not in mask)
            want = evaluate(model, inputs)[0]
            np.testing.assert_allclose(run_file(proto, inputs), want, rtol=1e-5, atol=2e-6, equal_nan=True)


def test_rows_that_see_nothing_are_nan_where_the_model_says_so(tmp_path: Path) -> None:
    """ONNX gives 0 there, so a Where follows; not where every row is known to see something."""
    unknown = attention(MASKS["bool"])
    inputs = inputs_of(unknown, full_row=True)
    assert np.isnan(evaluate(unknown, inputs)[0][:, :, 1]).all()
    assert kinds(saved(unknown, tmp_path / "m.onnx", 23))["Where"] == 1
    for known in (attention(), attention(causal=True), attention(MASKS["bool"], zero_masked_rows=True)):
        assert set(kinds(saved(known, tmp_path / "m.onnx", 23))) == {"Attention"}


@pytest.mark.parametrize("hidden, guarded", [(LOWEST, False), (-math.inf, True)])
def test_finite_masks_hide_no_whole_row(hidden: float, guarded: bool, tmp_path: Path) -> None:
    model = Model("m")
    q, flags = TensorType(dtypes.f32, (B, H, S, D)), TensorType(dtypes.bool_, (B, 1, 1, S))

    def body(b: Any, q: Any, seen: Any) -> Any:
        mask = b.select(seen, b.constant(0.0, dtypes.f32), b.constant(hidden, dtypes.f32))
        return b.Attention(q, q, q, b.add(mask, b.constant(np.full((S, S), -1, np.float32))), scale=0.5)

    build.function(model, "main", [("q", q), ("seen", flags)], body)
    found = kinds(saved(model, tmp_path / "m.onnx", 23))
    assert found["Attention"] == 1
    assert (found["ReduceMax"] == 1) is guarded


REFUSED = {
    "sinks": (attention(sinks=TensorType(dtypes.f32, (H,))), "has no sinks"),
    "scale": (attention(scale=-1.0), None),
    "scale-causal": (attention(scale=-1.0, causal=True), "the root of the scale, which is -1.0"),
    "f64": (attention(dtype=dtypes.f64), None),
    "f64-causal": (attention(dtype=dtypes.f64, causal=True), "f32, which has no 0.35"),
    "f16": (attention(TensorType(dtypes.f16, (S, T)), dtype=dtypes.f16), "adds a mask to scores of f16"),
    "wide": (attention(TensorType(dtypes.f64, (S, T))), None),
    "wide-causal": (attention(TensorType(dtypes.f64, (S, T)), causal=True), "wants the mask of f64 in f32"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_onnx_does_not_say_is_written_in_primitives(form: str, tmp_path: Path) -> None:
    """Those of the lowering, or (with a reason) of the decomposition."""
    model, reason = REFUSED[form]
    said = OnnxFile(23).claims(next(model.nodes()))
    assert said is None if reason is None else reason in str(said)
    assert not kinds(saved(model, tmp_path / "m.onnx", 23))["Attention"]


@pytest.mark.parametrize("dtype", [dtypes.f16, dtypes.bf16], ids=str)
def test_softmax_of_narrow_types_stays_in_f32(dtype: Any, tmp_path: Path) -> None:
    node = saved(attention(MASKS["bool"], dtype=dtype, zero_masked_rows=True), tmp_path / "m.onnx", 23).graph.node[-1]
    assert {a.name: a.i for a in node.attribute}["softmax_precision"] == onnx.TensorProto.FLOAT


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("batch, rotated", [(B, 4), (1, 4), (1, 3)])
def test_rotary_embedding_is_one_node(batch: int, rotated: int, interleaved: bool, tmp_path: Path) -> None:
    table = TensorType(dtypes.f32, (batch, S, rotated))
    x = TensorType(dtypes.f32, (B, H, S, D))
    model = model_of("RotaryEmbedding", x, table, table, interleaved=interleaved)
    proto = saved(model, tmp_path / "m.onnx", 23)
    assert kinds(proto) == Counter({"RotaryEmbedding": 1} | ({} if batch == B else {"Expand": 2}))
    inputs = inputs_of(model)
    np.testing.assert_allclose(run_file(proto, inputs), evaluate(model, inputs)[0], rtol=1e-6, atol=1e-6)
    assert "opset 22 has no RotaryEmbedding" in str(OnnxFile(22).claims(next(model.nodes())))


def test_odd_heads_and_tables_of_another_type_are_decomposed() -> None:
    table = TensorType(dtypes.f32, (1, S, 2))
    odd = model_of("RotaryEmbedding", TensorType(dtypes.f32, (B, H, S, 7)), table, table)
    assert "wants an even head size, got 7" in str(OnnxFile(23).claims(next(odd.nodes())))
    mixed = model_of("RotaryEmbedding", TensorType(dtypes.f16, (B, H, S, D)), table, table)
    assert "wants the tables in f16, got f32 and f32" in str(OnnxFile(23).claims(next(mixed.nodes())))


@pytest.mark.parametrize("dtype", [dtypes.f64, dtypes.f32, dtypes.f16], ids=str)
@pytest.mark.parametrize("scale, axis", [((D,), -1), ((), -1), ((S, D), 2), ((H, 1, 1), 1)])
def test_rms_normalization_is_one_node(scale: tuple[int, ...], axis: int, dtype: Any, tmp_path: Path) -> None:
    model = model_of(
        "RMSNormalization", TensorType(dtype, (B, H, S, D)), TensorType(dtype, scale), axis=axis, epsilon=0.5
    )
    proto = saved(model, tmp_path / "m.onnx", 23)
    assert kinds(proto) == Counter({"RMSNormalization": 1})
    inputs = inputs_of(model)
    got = irc.compile(model, target="onnx{opset=23}", passes="dce")(*inputs)[0]
    bound = {"f64": 1e-14, "f32": 1e-6, "f16": 2e-3}[dtype.name]  # f16 rounds the quotient and the product
    np.testing.assert_allclose(got, evaluate(model, inputs)[0], rtol=bound, atol=bound)


@pytest.mark.parametrize(
    "name, attributes",
    [
        ("LayerNormalization", {}),
        ("RMSNormalization", {}),
        ("InstanceNormalization", {}),
        ("GroupNormalization", {"num_groups": 2}),
    ],
)
def test_parameters_of_another_type_are_no_onnx_node(name: str, attributes: dict[str, Any], tmp_path: Path) -> None:
    x, p = TensorType(dtypes.f16, (2, 4, 4)), TensorType(dtypes.f32, (4,))
    given = (x, p) if name == "RMSNormalization" else (x, p, p)
    model = model_of(name, *given, **attributes)
    assert "x is f16 and a parameter f32" in str(OnnxFile(23).claims(next(model.nodes())))
    assert not kinds(saved(model, tmp_path / "m.onnx", 23))[name]


def test_swish_is_one_node_from_24_on(tmp_path: Path) -> None:
    model = model_of("Swish", TensorType(dtypes.f32, (3, 4)), alpha=1.5)
    assert kinds(saved(model, tmp_path / "m.onnx", 23)) == Counter({"Mul": 2, "Sigmoid": 1})
    proto = saved(model, tmp_path / "m.onnx", 24)
    assert kinds(proto) == Counter({"Swish": 1})
    inputs = inputs_of(model)
    np.testing.assert_allclose(run_file(proto, inputs), evaluate(model, inputs)[0], rtol=1e-6)


def test_the_default_stays_an_older_set(tmp_path: Path) -> None:
    irc.save(attention(), tmp_path / "m.onnx")
    proto = onnx.load(tmp_path / "m.onnx")
    assert (proto.opset_import[0].version, proto.ir_version) == (21, 10)
    assert not kinds(proto)["Attention"]


@pytest.mark.parametrize("opset", [20, 29])
def test_other_sets_are_refused(opset: int, tmp_path: Path) -> None:
    with pytest.raises(IrcError, match=f"opset {opset} cannot be written; expected one of 21, 22, .*, 28"):
        irc.save(attention(), tmp_path / "m.onnx", opset=opset)
    with pytest.raises(IrcError, match="option opset of target onnx must be one of 21, 22, 23, 24"):
        targets.get(f"onnx{{opset={opset}}}")
    with pytest.raises(IrcError, match=r"only a file ending in \.onnx has an operator set"):
        irc.save(attention(), tmp_path / "m.ir", opset=23)


def of_any_batch() -> Model:
    return model_of("Attention", *[TensorType(dtypes.f32, (dims.symbol("N"), H, S, D))] * 3, scale=0.5, causal=True)


RUNTIME = {
    "right": (attention(MASKS["bool"], keys=2, softcap=3.0, causal=True, zero_masked_rows=True), None),
    "lowest": (attention(MASKS["float"], causal=True), "takes the lowest f32 in a mask for -inf"),
    "half": (attention(dtype=dtypes.f16), "lets scores of f16 overflow"),
    "empty": (of_any_batch(), "refuses Attention with empty axes, and N may be 0"),
}


@pytest.mark.parametrize("form", RUNTIME)
def test_onnx_runtime_is_given_what_it_does_right(form: str) -> None:
    model, reason = RUNTIME[form]
    target = targets.get("onnx{opset=23}")
    said = target.claims(next(model.nodes()))
    assert said is None if reason is None else reason in str(said)
    legal = clone_model(model)
    legalize(legal, target)
    assert ("= Attention <" in target.compile(legal, "main", {}).source) is (reason is None)
    if form != "empty":
        inputs = inputs_of(model)
        bound = 4e-3 if form == "half" else 2e-6
        got = irc.compile(model, target=target, passes="dce")(*inputs)[0]
        np.testing.assert_allclose(got, evaluate(model, inputs)[0], rtol=bound, atol=bound)


def test_element_types_come_with_their_set() -> None:
    narrow = model_of("reshape", TensorType(dtypes.f4e2m1fn, (2, 3)), dims=(6,))
    node = next(narrow.nodes())
    assert OnnxFile(22).claims(node) == "opset 22 has no element type f4e2m1fn"
    assert OnnxFile(23).claims(node) is None
    assert targets.get("onnx{opset=23}").claims(node) == "ONNX Runtime has no kernels for f4e2m1fn"
