"""com.microsoft: what cannot be imported is reported with a reason, and wrong nodes are named with what is wrong."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from irc.frontends.onnx import import_onnx
from irc.ir.errors import FormatError, UnsupportedError

F, U8, I64 = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT64
MS = {"domain": "com.microsoft"}
NBITS = {"K": 64, "N": 8, "bits": 4, "block_size": 32}
PACKED = [np.zeros((8, 2, 16), np.uint8), np.ones((8, 2), np.float32)]
MOE = [(F, [4, 8]), (F, [4, 2]), np.zeros((2, 8, 8), np.float32), None, np.zeros((2, 8, 8), np.float32)]


@pytest.mark.parametrize("op, reason", [
    ("EPContext", "one execution provider compiled"),
    ("BeamSearch", "the search runs decoder graphs"),
    ("GreedySearch", "the search runs decoder graphs"),
    ("Sampling", "the search runs decoder graphs"),
    ("WhisperBeamSearch", "the search runs decoder graphs"),
])  # fmt: skip
def test_operators_that_are_refused_for_a_reason(op, reason, one_node):
    graph = helper.make_graph([], "decoder", [], [])
    with pytest.raises(UnsupportedError, match=reason):
        import_onnx(one_node(op, [(I64, [1, 4])], 21, **MS, decoder=graph, eos_token_id=2))


@pytest.mark.parametrize("op, operands, attributes, reason", [
    ("MatMulNBits", [(F, [2, 64]), *PACKED], NBITS | {"weight_prepacked": 1}, "weight_prepacked 1"),
    ("MatMulNBits", [(F, [2, 64]), *PACKED], NBITS | {"bits": 3}, "weights of 3 bits"),
    ("FusedGemm", [(F, [2, 4]), (F, [4, 3])], {"activation": "Erf"}, "the activation 'Erf'"),
    ("MoE", MOE, {"use_sparse_mixer": 1, "k": 2}, "use_sparse_mixer"),
    ("MoE", MOE, {"activation_type": "geglu"}, "the activation 'geglu'"),
    ("QLinearSigmoid", [(U8, [4]), np.ones(4, np.float32), None, np.ones(1, np.float32)], {}, "must have one element"),
    ("BiasDropout", [(F, [2]), (F, [2]), None, None, (TensorProto.BOOL, [])], {}, "training mode"),
    ("Gelu", [(F, [2])], {"approximate": "tanh"}, "the attribute 'approximate'"),
])  # fmt: skip
def test_forms_that_are_refused_for_a_reason(op, operands, attributes, reason, one_node):
    with pytest.raises(UnsupportedError, match=reason):
        import_onnx(one_node(op, operands, 21, **MS, **attributes))


@pytest.mark.parametrize("op, operands, attributes, fault", [
    ("BiasGelu", [(F, [2, 4])], {}, "takes at least 2 inputs, got 1"),
    ("BiasAdd", [(F, [2, 4]), None, (F, [2, 4])], {}, "the input 1 is missing"),
    ("Gelu", [(F, [2]), (F, [2])], {}, "takes at most 1 inputs, got 2"),
    ("Gelu", [(I64, [2])], {}, "expected a floating-point type"),
    ("BiasGelu", [(F, [2, 4]), (F, [3])], {}, "must be a vector of the last axis"),
    ("MatMulNBits", [(F, [2, 64]), *PACKED], {"K": 64, "N": 8}, "the attribute 'block_size' is missing"),
    ("MatMulNBits", [(F, [2, 64]), *PACKED], NBITS | {"block_size": 24}, "a power of 2"),
    ("MatMulNBits", [(F, [2, 48]), *PACKED], NBITS, "the last dim of x and the size of a row"),
    ("QLinearAdd", [(F, [2]), *[np.ones((), np.float32)] * 6], {}, "quantized inputs are int8 or uint8"),
    ("QLinearConcat", [np.ones((), np.float32), np.zeros((), np.uint8), (U8, [2])], {"axis": 0}, "got 1 inputs behind"),
    ("DynamicQuantizeLSTM", [(F, [2, 1, 3])] * 8, {"hidden_size": 4}, "takes at least 12 inputs, got 8"),
    ("FusedConv", [(F, [1, 2, 5, 5]), (F, [3, 2, 3, 3])], {"activation": "Relu", "activation_params": [1.0]},
     "Relu takes 0 parameters"),
    ("Inverse", [(F, [3, 4])], {}, "must be equal, got 3 and 4"),
    ("Rfft", [(F, [3, 4])], {"normalized": 1}, "normalized 0"),
    ("FusedConv", [(F, [1, 2, 5, 5]), (F, [3, 2, 3, 3])], {"strides": 2}, "'strides' must be a list, got 2"),
    ("QuickGelu", [(F, [2])], {"alpha": "big"}, "the attribute 'alpha' must be a number, got 'big'"),
    ("Unique", [(F, [3, 4])], {}, "needs a vector"),
    ("MoE", [*MOE[:2], np.zeros((2, 8), np.float32), None, MOE[4]], {}, "must be \\[experts, outputs, inputs\\]"),
    ("GatherBlockQuantized", [np.zeros((4, 8), np.uint8), (I64, [2]), np.ones((4, 1), np.float32)],
     {"block_size": 16, "gather_axis": 1}, "gathered along axis 0"),
    ("MatMulBnb4", [(F, [2, 32]), np.zeros(64, np.uint8), np.ones(8, np.float32)],
     {"K": 32, "N": 4, "block_size": 16, "quant_type": 2}, "quant_type must be 0"),
])  # fmt: skip
def test_wrong_nodes_are_named(op, operands, attributes, fault, one_node):
    with pytest.raises(FormatError, match=rf"node 'node' \(com\.microsoft\.{op}\): .*{fault}"):
        import_onnx(one_node(op, operands, 21, **MS, **attributes))
