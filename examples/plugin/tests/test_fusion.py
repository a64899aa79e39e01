"""The fusion `squared-relu`: it fires, keeps results, and says why where it nearly fires."""

import pytest

import irc
from irc.passes.fusions import explain
from irc.testing import model_of, random_inputs, try_fusions


@pytest.mark.parametrize(
    "body",
    [
        lambda b, x: b.multiply(b.Relu(x), b.Relu(x)),
        lambda b, x: b.Pow(b.Relu(x), 2.0),
        lambda b, x: b.multiply(0.25, b.power(b.Relu(x), 2.0)),
    ],
    ids=["product", "Pow", "scaled"],
)
def test_fires(body):
    model = model_of(body, x="f32[B,8]")
    outcome = try_fusions(model, "squared-relu")
    assert outcome.operators == ["sample.SquaredRelu"]
    assert outcome.largest_difference(random_inputs(model, {"B": 3})) < 1e-6


def test_near_miss():
    outcome = try_fusions(model_of(lambda b, x: b.multiply(b.Relu(x), b.Relu(x)), x="f16[B,8]"), "squared-relu")
    assert not outcome.fired
    assert outcome.reasons == ["rounds once where the parts round several times (%x: f16[B,8])"]


def test_a_product_of_two_values_is_none():
    model = model_of(lambda b, x, y: b.multiply(b.Relu(x), b.Relu(y)), x="f32[8]", y="f32[8]")
    assert not try_fusions(model, "squared-relu").fired


def test_the_default_pipeline_runs_it():
    model = model_of(lambda b, x: b.multiply(b.Relu(x), b.Relu(x)), x="f32[B,8]")
    assert [node.op.name for node in irc.run_passes(model).nodes()] == ["sample.SquaredRelu"]
    assert [f.fusion for f in explain(model).fired] == ["squared-relu"]
