"""Sizes rounded up: few programs for many shapes, and results that nobody can tell from those of exact sizes."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc
from irc.testing.patterns import model_of

TARGETS = ["xla", "mlx{compile=off}"]
COUNTS = 50
CHANNELS = 16
SHAPE = (1, CHANNELS, 6, 6)


def model(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(
        nodes,
        "buckets",
        [helper.make_tensor_value_info(*i) for i in inputs],
        [onnx.ValueInfoProto(name=n) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in initializers],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def trunk_and_tail():
    """50 convolutions that change nothing, then the places above zero: scores, sums, order, the best, products."""
    center = np.zeros((CHANNELS, CHANNELS, 3, 3), np.float32)
    center[:, :, 1, 1] = np.eye(CHANNELS)
    weights = [("w", center)]
    nodes, last = [], "x"
    for i in range(50):
        nodes.append(helper.make_node("Conv", [last, "w"], [f"c{i}"], pads=[1, 1, 1, 1]))
        last = f"c{i}"
    nodes += [
        helper.make_node("Greater", [last, "zero"], ["mask"]),
        helper.make_node("NonZero", ["mask"], ["places"]),  # i64[4,n]
        helper.make_node("Transpose", ["places"], ["rows"], perm=[1, 0]),
        helper.make_node("GatherND", [last, "rows"], ["scores"]),  # f32[n]
        helper.make_node("ReduceSum", ["scores"], ["total"], keepdims=0),
        helper.make_node("ReduceMean", ["scores"], ["mean"], keepdims=0),
        helper.make_node("ReduceMax", ["scores"], ["top"], keepdims=0),
        helper.make_node("Softmax", ["scores"], ["soft"], axis=0),
        helper.make_node("CumSum", ["scores", "axis"], ["sums"], reverse=1),
        helper.make_node("Concat", ["scores", "scores"], ["twice"], axis=0),
        helper.make_node("Unsqueeze", ["scores", "axis"], ["row"]),
        helper.make_node("MatMul", ["row", "scores"], ["square"]),
        helper.make_node("Shape", ["scores"], ["n"]),
        helper.make_node("TopK", ["scores", "n"], ["best", "order"], axis=0),
        helper.make_node("Mod", ["places", "rest"], ["wrapped"]),
    ]
    outputs = ["rows", "scores", "total", "mean", "top", "soft", "sums", "twice", "square", "n", "best", "order"]
    weights += [
        ("zero", np.float32(0)), ("axis", np.array([0])), ("rest", np.array([[1], [3], [3], [3]])),
    ]  # fmt: skip
    return model(nodes, [("x", TensorProto.FLOAT, SHAPE)], [*outputs, "wrapped"], weights)


def with_count(count, seed=0):
    """f32[SHAPE] with that many elements above zero, all different whole numbers."""
    rng = np.random.default_rng(seed + count)
    size = int(np.prod(SHAPE))
    x = -rng.permutation(size).astype(np.float32)
    x[rng.permutation(size)[:count]] = 1 + rng.permutation(size)[:count]
    return x.reshape(SHAPE)


@pytest.mark.parametrize("target", TARGETS)
def test_fifty_counts_compile_the_trunk_once_and_the_tail_eight_times(target):
    source = trunk_and_tail()
    run, exact = irc.compile(source, target=target, shapes="bucket"), irc.compile(source, target="reference")
    for count in range(1, COUNTS + 1):
        x = with_count(count)
        results = run(x)
        for name, got, want in zip(results.names, results, exact(x), strict=True):
            assert got.shape == want.shape
            if name in ("mean", "soft"):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-37)  # exp of -50; XLA has no subnormals
            else:  # whole numbers below 2^24 add up exactly in any order
                np.testing.assert_array_equal(got, want, err_msg=f"{name} of {count}")
    if run.report.segments:  # MLX reads the count by itself: one module for all sizes
        assert run.report.segments <= 1 + 8
        assert run.report.exact == {}
        assert len(run.report.bucketed) == 1
    else:
        assert run.compile_count == 1


def normalizing():
    """Rows of x less their mean over the batch, and each row's share: sums over and along the size B."""
    nodes = [
        helper.make_node("ReduceMean", ["x", "first"], ["mean"]),
        helper.make_node("Sub", ["x", "mean"], ["y"]),
        helper.make_node("Softmax", ["y"], ["z"], axis=0),
    ]
    return model(nodes, [("x", TensorProto.FLOAT, ["B", 3])], ["y", "z"], [("first", np.array([0]))])


@pytest.mark.parametrize("target", [*TARGETS, "reference"])
def test_many_batch_sizes_need_few_programs(target):
    run, exact = irc.compile(normalizing(), target=target, shapes="bucket"), irc.compile(normalizing(), target=target)
    assert run.report.bucketed == ["B"]
    for size in range(20):
        x = np.random.default_rng(size).standard_normal((size, 3)).astype(np.float32)
        for got, want in zip(run(x), exact(x), strict=True):
            assert type(got) is np.ndarray
            assert got.flags.owndata
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)  # sums of at most 19 terms
    assert run.compile_count == (1 if not run.backend.per_shape else 7)  # for 0, 1, 2, 4, 8, 16, 32


def test_the_targets_own_arrays_come_back_in_their_true_shape():
    import jax.numpy as jnp

    run = irc.compile(normalizing(), target="xla", shapes="bucket")
    y, z = run(jnp.ones((5, 3)))
    assert y.shape == z.shape == (5, 3)
    assert not isinstance(y, np.ndarray)
    np.testing.assert_allclose(np.asarray(z), np.full((5, 3), 0.2), rtol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_an_artifact_goes_on_rounding_up(target, tmp_path):
    run = irc.compile(normalizing(), target=target, shapes="bucket", dims={"B": [7]})
    run.save(tmp_path / "a")
    loaded = irc.load_executable(tmp_path / "a")
    x = np.arange(18, dtype=np.float32).reshape(6, 3)
    for got, want in zip(loaded(x), run(x), strict=True):
        np.testing.assert_array_equal(got, want)
    assert (loaded.compile_count, loaded.load_count) == (0, 1)
    assert list(loaded.input_types) == ["x"]
    assert loaded.report.bucketed == ["B"]


def test_a_size_that_may_not_be_rounded_up_gets_the_greatest_capacity_there_is():
    """x[6] + table[6][:B]: the rounded size 8 would break `B <= 6`."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Slice", ["table", "zero", "shape"], ["row"]),
        helper.make_node("Add", ["x", "row"], ["y"]),
    ]
    table = np.arange(6, dtype=np.float32) * 10
    source = model(
        nodes, [("x", TensorProto.FLOAT, ["B"])], ["y"], [("table", table), ("zero", np.array([0]))]
    )  # fmt: skip
    run = irc.compile(source, target="xla", shapes="bucket")
    for size in (3, 4):
        assert run(np.ones(size, np.float32))[0].tolist() == (table[:size] + 1).tolist()
    assert run.report.limited == {}
    for size in (5, 6):
        assert run(np.ones(size, np.float32))[0].tolist() == (table[:size] + 1).tolist()
    assert [dict(key)["B"] for key in run.programs] == [4, 6]
    assert run.report.limited == {"B": "6 is not rounded up to 8, which would break bcast(B, min(B, 6))"}


def test_a_dim_without_a_rule_stays_exact_and_the_report_says_why():
    source = model_of(lambda b, x: b.cholesky(x), x="f32[B,B]")
    run = irc.compile(source, target="xla", shapes="bucket")
    assert run.report.bucketed == []
    assert "the matrix" in run.report.exact["B"]
    np.testing.assert_array_equal(run(4 * np.eye(3, dtype=np.float32))[0], 2 * np.eye(3))
    with pytest.raises(irc.InputError, match="shapes must be one of exact, bucket"):
        irc.compile(source, target="xla", shapes="round")


def test_a_count_without_a_rule_stays_exact_in_the_segments_that_need_it():
    """The second segment transforms what was found, which only exact counts can."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Cast", ["places"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["numbers", "last"], ["signal"]),
        helper.make_node("DFT", ["signal", "", "axis"], ["y"]),
    ]
    weights = [("last", np.array([2])), ("axis", np.array(1))]
    source = model(nodes, [("x", TensorProto.FLOAT, [8])], ["y"], weights)
    run = irc.compile(source, target="xla", shapes="bucket")
    for count in (3, 4, 3, 1, 8):
        y = run((np.arange(8) < count).astype(np.float32))[0]
        assert y.shape == (1, count, 2)
        np.testing.assert_allclose(y[0, 0], [sum(range(count)), 0], rtol=1e-6, atol=1e-6)
    (why,) = run.report.exact.values()
    assert "the length of the transform is known only at run time" in why
    assert run.report.segments == 1 + 4


@pytest.mark.parametrize("name", ["bucket", "exact"])
def test_staged_entries_round_up_their_own_dims_too(name):
    """Batches of different sizes, in which different numbers are above zero."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Transpose", ["places"], ["rows"], perm=[1, 0]),
        helper.make_node("GatherND", ["square", "rows"], ["found"]),
        helper.make_node("ReduceSum", ["square"], ["total"], keepdims=0),
    ]
    source = model(nodes, [("x", TensorProto.FLOAT, ["B", 2])], ["found", "total"])
    run = irc.compile(source, target="xla", shapes=name)
    shapes = [(batch, count) for batch in (5, 6, 7, 8) for count in (3, 4, 5, 8)]
    for batch, count in shapes:
        x = np.where(np.arange(2 * batch) < count, np.arange(2 * batch) + 1.0, 0).astype(np.float32).reshape(batch, 2)
        found, total = run(x)
        assert found.tolist() == [float(i * i) for i in range(1, count + 1)]
        assert total == (x * x).sum()
    assert run.report.segments == (3 if name == "bucket" else 4 + 16)


def test_two_open_sizes_may_be_joined():
    """[B,S,2] as [B*S,2] and back, as exporters write a layer: what counts moves together and apart again."""
    nodes = [
        helper.make_node("Reshape", ["x", "rows"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["product"]),
        helper.make_node("CumSum", ["product", "zero"], ["sums"]),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Reshape", ["sums", "shape"], ["y"]),
    ]
    weights = [("rows", np.array([-1, 2])), ("w", np.array([[1, 2], [3, 4]], np.float32)), ("zero", np.array(0))]
    source = model(nodes, [("x", TensorProto.FLOAT, ["B", "S", 2])], ["y"], weights)
    run = irc.compile(source, target="xla", shapes="bucket")
    assert run.report.bucketed == ["B", "S"]
    for batch in range(4):
        for length in range(6):
            x = np.random.default_rng(length).integers(-9, 9, (batch, length, 2)).astype(np.float32)
            want = np.cumsum((x @ weights[1][1]).reshape(-1, 2), 0).reshape(x.shape)
            np.testing.assert_array_equal(run(x)[0], want)
    assert run.compile_count == 4 * 5  # for 0, 1, 2, 4 and for 0, 1, 2, 4, 8
