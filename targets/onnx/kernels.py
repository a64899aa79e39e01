"""Element types that operators lack in ONNX's schemas and in ONNX Runtime's CPU kernels, so that they are not claimed.

Both tables were found by exporting every operator of the lowering table in every type (onnxruntime 1.32, opset 21); the
type is that of the last operand.  `reduce` and `compare` differ by their kind or direction.
"""

from __future__ import annotations

from ...ir.graph import Node


def _by_operator(*rows: tuple[str, str]) -> dict[str, frozenset[str]]:
    """Rows of (element types, operators) by operator."""
    return {name: frozenset(types.split()) for types, names in rows for name in names.split()}


NOT_IN_ONNX = _by_operator(
    ("u64", "negate Relu"),
    ("i8 i16 i32 i64 u8 u16 u32 u64", "Sum"),
    (
        "bf16",
        "Elu Selu HardSigmoid ThresholdedRelu Shrink LpNormalization "
        "GlobalAveragePool GlobalMaxPool GlobalLpPool InstanceNormalization",
    ),
    ("f16 bf16 f64", "Celu DynamicQuantizeLinear"),
    ("bool", "compare:lt ArgMax ArgMin compare:le compare:gt compare:ge"),
    ("f64", "LayerNormalization"),
    (
        "i8 i16 u8 u16",
        "reduce:sum reduce:prod ReduceSum ReduceMean ReduceProd ReduceL1 ReduceL2 "
        "ReduceLogSumExp ReduceSumSquare CumSum MatMul Gemm",
    ),
    ("i16 u16", "reduce:max reduce:min ReduceMax ReduceMin"),
    ("i8 i16 u8 u16 u32 u64", "ReduceLogSum"),
    ("bf16 bool", "TopK"),
    ("bf16", "Einsum OneHot"),
    ("bool", "Range"),
)
"""A model with these is not valid."""

NOT_IN_RUNTIME = _by_operator(
    (
        "f64",
        "tan asin acos atan sinh cosh asinh acosh atanh erf HardSwish Mish Softplus Softsign Mean Elu Selu "
        "HardSigmoid ThresholdedRelu GlobalAveragePool GlobalMaxPool GlobalLpPool "
        "InstanceNormalization",
    ),
    ("i64 u32", "Relu"),
    ("bf16 f64", "LeakyRelu Gelu Hardmax MeanVarianceNormalization LRN"),
    (
        "bf16",
        "power Pow round_nearest_afz sign rsqrt compare:lt compare:eq Swish Softmax LogSoftmax "
        "ReduceLogSum BatchNormalization GroupNormalization MatMul compare:le compare:gt compare:ge "
        "compare:ne",
    ),
    ("f64 i8 i16 i32 i64 u8 u16 u32 u64", "PRelu"),
    ("bf16", "remainder exponential_minus_one dot_general Range Tile broadcast_in_dim"),
    ("i8 i16 u8 u16 u32 u64", "Einsum"),
    ("f64", "Shrink"),
    ("bf16 f64", "Resize"),
    ("bf16 i16 u16 u64", "select"),
    ("bf16 i16 u16", "clamp"),
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


def lacks(table: dict[str, frozenset[str]], node: Node) -> str | None:
    """The element type that the node's operator lacks by `table`, or None."""
    kind = node.keywords.get("kind") or node.keywords.get("direction")
    missing = table.get(node.op.name) or table.get(f"{node.op.name}:{kind}") or frozenset()
    last = next((v for v in reversed(node.operands) if v is not None), None)
    return last.dtype.name if missing and last is not None and last.dtype.name in missing else None
