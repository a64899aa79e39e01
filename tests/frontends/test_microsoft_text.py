"""com.microsoft Tokenizer against ONNX Runtime, and the text features that stand behind it in published pipelines."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import irc

WORDS = np.array(["a b, ab", "c", "", "B-zz  a"], object)


def model_of(nodes: list[onnx.NodeProto], shape: tuple[int | str, ...], output: str) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.STRING, shape)]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=output)])
    opsets = [helper.make_opsetid(d, v) for d, v in (("", 17), ("com.microsoft", 1))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def tokenizer(**attributes) -> onnx.NodeProto:
    given = {"mark": 0, "mincharnum": 1, "pad_value": "#"} | attributes
    return helper.make_node("Tokenizer", ["x"], ["t"], domain="com.microsoft", name="tokens", **given)


@pytest.mark.parametrize(
    "attributes",
    [
        {"separators": ["[ ,]"], "mark": 1},
        {"separators": [" ", ",|-"], "mincharnum": 2},
        {"separators": [""], "mark": 1},
        {"tokenexp": "[a-b]+"},
        {"tokenexp": "[a-zA-Z]+", "mincharnum": 2, "mark": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("x", [WORDS, WORDS.reshape(2, 2), np.array(["", ","], object)], ids=["flat", "matrix", "none"])
def test_tokens(attributes, x, run_ort):
    model = model_of([tokenizer(**attributes)], ("N", *x.shape[1:]), "t")
    (want,) = run_ort(model, [x])
    for target in ("reference", "xla", "mlx{compile=off}"):
        (got,) = irc.compile(irc.import_onnx(model), target=target)(x)
        assert np.asarray(got).shape == want.shape
        assert np.asarray(got).tolist() == want.tolist()


def test_words_are_counted(run_ort):
    counts = helper.make_node(
        "TfIdfVectorizer", ["t"], ["y"], max_gram_length=2, min_gram_length=1, max_skip_count=0, mode="TFIDF",
        ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3], pool_strings=["a", "b", "c", "a", "b"], weights=[1.0, 2, 3, 4],
    )  # fmt: skip
    model = model_of([tokenizer(separators=["[ ,]"]), counts], ("N",), "y")
    (want,) = run_ort(model, [WORDS])
    for target in ("reference", "xla", "mlx{compile=off}"):
        (got,) = irc.compile(irc.import_onnx(model), target=target)(WORDS)
        np.testing.assert_array_equal(got, want)


def test_a_pattern_that_is_none_is_named():
    with pytest.raises(irc.IrcError, match=r"the pattern '\(' is no regular expression"):
        irc.import_onnx(model_of([tokenizer(separators=["("])], ("N",), "t"))
