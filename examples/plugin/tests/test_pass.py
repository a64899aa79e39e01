"""The pass `sample-scale`: an IR file, equal bits, its place behind `fuse`."""

from pathlib import Path

import pytest

import irc
from irc.passes import parse_pipeline
from irc.testing import check_file, check_passes, model_of


def test_ir_file():
    check_file(Path(__file__).with_name("scale.ir"))


def test_results_keep_their_bits():
    model = model_of(lambda b, x: b.multiply(b.sample.SquaredRelu(x, scale=3.0), 0.5), x="f32[B,8]")
    after = check_passes(model, "sample-scale,dce", {"B": 5})
    assert [node.op.name for node in after.nodes()] == ["sample.SquaredRelu"]


def test_it_comes_after_the_fusions():
    parse_pipeline("fuse,sample-scale")
    with pytest.raises(irc.IrcError, match="'sample-scale' must come after 'fuse'"):
        parse_pipeline("sample-scale,fuse")
