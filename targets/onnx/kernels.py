"""Element types that ONNX defines for operators but ONNX Runtime's CPU kernels lack, so that it is not given them.

The table was found by exporting every operator of the lowering table in every type (onnxruntime 1.32, opset 21); the
type is that of the last operand.  `reduce` and `compare` differ by their kind or direction.
"""

from __future__ import annotations

from ...ir.graph import Node


def _by_operator(*rows: tuple[str, str]) -> dict[str, frozenset[str]]:
    """Rows of (element types, operators) by operator."""
    return {name: frozenset(types.split()) for types, names in rows for name in names.split()}


NOT_IN_RUNTIME = _by_operator(
    (
        "f64",
        "tan asin acos atan sinh cosh asinh acosh atanh erf HardSwish Mish Softplus Softsign Mean Elu Selu "
        "HardSigmoid ThresholdedRelu GlobalAveragePool GlobalMaxPool GlobalLpPool "
        "InstanceNormalization LayerNormalization",
    ),
    ("u32 u64", "ReduceLogSum"),
    ("i64 u32", "Relu"),
    ("bf16 f64", "LeakyRelu Gelu Hardmax MeanVarianceNormalization LRN"),
    (
        "bf16",
        "power Pow round_nearest_afz sign rsqrt compare:lt compare:eq Swish Softmax LogSoftmax "
        "ReduceLogSum BatchNormalization GroupNormalization MatMul compare:le compare:gt compare:ge "
        "compare:ne",
    ),
    ("f64 i8 i16 i32 i64 u8 u16 u32 u64", "PRelu"),
    ("bf16", "remainder exponential_minus_one dot_general Range Tile broadcast_in_dim put_along_axis ScatterND"),
    ("i8 i16 u8 u16 u32 u64", "Einsum"),
    ("f64", "Shrink convolution Conv ConvTranspose"),
    ("i4 u4", "reshape"),
    ("bf16 f64", "Resize"),
    ("bf16 i16 u16 u64", "select"),
    ("bf16 i16 u16", "clamp Clip"),
    ("f64 i8 i16 i32 u8 u16 u32 u64 bool", "OneHot"),
    (
        "bf16 u32 u64",
        "reduce:sum reduce:prod reduce:max reduce:min ReduceSum ReduceMean ReduceMax ReduceMin "
        "ReduceProd ReduceL1 ReduceL2 ReduceLogSumExp ReduceSumSquare CumSum",
    ),
    ("bf16 i16 u16 u32 u64", "ArgMax ArgMin"),
    ("bf16 i8 i16 u8 u16 u32 u64", "Trilu"),
    ("u16 u32 u64", "TopK"),
    ("bf16 i32 i64 u32 u64", "Gemm"),
    ("bf16 i16 i32 i64 u16 u32 u64 bool", "SpaceToDepth DepthToSpace"),
)
"""A valid model, but ONNX Runtime cannot run it."""


DEVIATIONS = {
    "mod-f32": "a zero remainder is +0.0",
    "sign-f32": "Sign of -0.0 is +0.0",
    **{f"reduce-{kind}-nan-f32": "passes over NaN unless it stands last" for kind in ("max", "min")},
    **{
        f"reduce:{dtype}-{kind}-edges": "passes over NaN unless it stands last"
        for kind in ("max", "min")
        for dtype in ("f16", "f32", "f64")
    },
    **{f"reduce:{dtype}-prod{all_}": "does not wrap" for dtype in ("i32", "i64") for all_ in ("", "-all")},
    **dict.fromkeys(("convert-f32-to-f8e5m2", "convert:u16-f8e5m2"), "what overflows becomes NaN"),
    "logistic:f64": "results below 1e-40 are 0",
    "max-pool-nan-f32": "MaxPool passes over NaN, and -inf loses against the least finite value",
    "hardmax-ties-f32": "Hardmax takes the first element where another is NaN",
    "resize-nearest-whole-floor-f32": "coordinates in f32 miss a whole number",
    "max-pool-padding-only-i8": "MaxPool refuses padding as wide as the window",
}
"""Edge cases whose results ONNX Runtime 1.32 gives otherwise; docs/semantics.md says which are right."""


def lacks(table: dict[str, frozenset[str]], node: Node) -> str | None:
    """The element type that the node's operator lacks by `table`, or None."""
    kind = node.keywords.get("kind") or node.keywords.get("direction")
    missing = table.get(node.op.name) or table.get(f"{node.op.name}:{kind}") or frozenset()
    last = next((v for v in reversed(node.operands) if v is not None), None)
    return last.dtype.name if missing and last is not None and last.dtype.name in missing else None
