"""ONNX files as bytes: every way to store a tensor, external data, and files that are not what they claim to be."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from irc.frontends.onnx import check_onnx, import_onnx
from irc.ir.data import MappedData
from irc.ir.dtypes import DType
from irc.ir.errors import FormatError, IrcError
from irc.ir.reference import evaluate

F = TensorProto.FLOAT


def holding(tensor: onnx.TensorProto, opset: int = 21) -> onnx.ModelProto:
    """A model that returns one initializer."""
    tensor.name = "w"
    out = helper.make_tensor_value_info("w", tensor.data_type, None)
    graph = helper.make_graph([], "holder", [], [out], [tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def contents(model: onnx.ModelProto | bytes | Path) -> np.ndarray:
    return import_onnx(model).main.outputs[0].data.numpy()


NUMERIC = [
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
    np.uint32, np.uint64, np.bool_, np.complex64, np.complex128, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn,
]  # fmt: skip


@pytest.mark.parametrize("dtype", NUMERIC, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (5,), (3, 7), (0, 4)], ids=str)
def test_raw_data_of_every_type(dtype, shape, tmp_path):
    array = np.random.default_rng(3).integers(0, 2, shape).astype(dtype)
    model = holding(numpy_helper.from_array(array))
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    for source in (model, model.SerializeToString(), path):
        got = contents(source)
        assert (got.dtype, got.shape) == (np.dtype(dtype), shape)
        assert got.tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", NUMERIC, ids=lambda d: np.dtype(d).name)
def test_typed_fields_of_every_type(dtype):
    array = np.random.default_rng(4).integers(0, 2, (3, 5)).astype(dtype)
    number = DType.from_numpy(array.dtype).onnx
    tensor = helper.make_tensor("w", number, array.shape, array.reshape(-1).tolist())
    if tensor.HasField("raw_data"):
        pytest.fail("this test is about typed fields")
    got = contents(holding(tensor))
    assert got.dtype == array.dtype
    assert np.array_equal(got, array)


@pytest.mark.parametrize("dtype, values", [(ml_dtypes.int4, [-8, -1, 7]), (ml_dtypes.uint4, [0, 15, 9])])
def test_packed_integers_keep_their_sign_and_order(dtype, values):
    assert contents(holding(numpy_helper.from_array(np.array(values, dtype)))).astype(int).tolist() == values


def test_strings():
    assert contents(holding(numpy_helper.from_array(np.array(["ä", "", "b\nc"], object)))).tolist() == ["ä", "", "b\nc"]


def test_bools_stored_as_any_byte_are_true_or_false():
    tensor = TensorProto(data_type=TensorProto.BOOL, dims=[3], raw_data=b"\x00\x02\xff")
    got = contents(holding(tensor))
    assert got.view(np.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize("linear", [True, False])
def test_sparse_initializers_are_written_out(linear):
    values = helper.make_tensor("w", F, [2], [1.5, -2.0])
    indices = [1, 5] if linear else [0, 1, 1, 2]
    at = helper.make_tensor("i", TensorProto.INT64, [2] if linear else [2, 2], indices)
    graph = helper.make_graph(
        [], "g", [], [helper.make_tensor_value_info("w", F, None)],
        sparse_initializer=[helper.make_sparse_tensor(values, at, [2, 3])],
    )  # fmt: skip
    got = contents(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]))
    assert got.tolist() == [[0, 1.5, 0], [0, 0, -2.0]]


@pytest.mark.parametrize("dims, indices", [([2, 3], [6]), ([2, 3], [-1]), ([1 << 40], [0])])
def test_sparse_initializers_are_checked(dims, indices):
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("w", F, [1], [1.0]), helper.make_tensor("i", TensorProto.INT64, [1], indices), [2, 3]
    )
    sparse.dims[:] = dims
    out = helper.make_tensor_value_info("w", F, None)
    graph = helper.make_graph([], "g", [], [out], sparse_initializer=[sparse])
    with pytest.raises(FormatError, match="sparse tensor 'w'"):
        import_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]))


def test_large_weights_of_a_file_are_mapped_not_copied(tmp_path):
    array = np.arange(5000, dtype=np.float32)
    path = tmp_path / "m.onnx"
    path.write_bytes(holding(numpy_helper.from_array(array)).SerializeToString())
    data = import_onnx(path).main.outputs[0].data
    assert isinstance(data, MappedData)
    assert data.path == path
    assert np.array_equal(data.numpy(), array)


def test_weights_stay_those_of_the_file_that_was_imported(tmp_path):
    """Another export takes the names afterwards, or nothing does."""
    old, new = np.arange(5000, dtype=np.float32), np.full(5000, -5, np.float32)
    inside, beside = tmp_path / "inside.onnx", external(tmp_path, {"location": "w.bin"}, old.tobytes(), (5000,))
    inside.write_bytes(holding(numpy_helper.from_array(old)).SerializeToString())
    models = [import_onnx(inside), import_onnx(beside)]
    other = tmp_path / "other"
    other.write_bytes(holding(numpy_helper.from_array(new)).SerializeToString())
    os.replace(other, inside)
    other.write_bytes(new.tobytes())
    os.replace(other, beside.with_name("w.bin"))
    for model in models:
        assert np.array_equal(model.main.outputs[0].data.numpy(), old)
    gone = import_onnx(inside)
    inside.unlink()
    assert np.array_equal(gone.main.outputs[0].data.numpy(), new)


def test_large_weights_in_constant_nodes_and_sub_graphs_are_mapped(tmp_path):
    array = np.arange(3000, dtype=np.float32)
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(array))
    inner = helper.make_graph([constant], "b", [], [helper.make_tensor_value_info("c", F, None)])
    other = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["r"])], "e", [], [helper.make_tensor_value_info("r", F, None)]
    )
    node = helper.make_node("If", ["p"], ["y"], then_branch=inner, else_branch=other)
    inputs = [helper.make_tensor_value_info("p", TensorProto.BOOL, []), helper.make_tensor_value_info("x", F, [3000])]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", F, None)])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)
    model = import_onnx(path)
    assert isinstance(model.constants["c"].data, MappedData)
    assert np.array_equal(evaluate(model, [np.array(True), np.zeros(3000, np.float32)])[0], array)


# External data


def external(tmp_path: Path, entries: dict[str, str], payload: bytes = bytes(range(16)), dims=(4,)) -> Path:
    tensor = TensorProto(name="w", data_type=F, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (folder / "w.bin").write_bytes(payload)
    (folder / "sub" / "w.bin").write_bytes(payload)
    (tmp_path / "outside.bin").write_bytes(payload)
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    (folder / "inner.bin").symlink_to("sub/w.bin")
    os.mkfifo(folder / "pipe.bin")
    path = folder / "m.onnx"
    path.write_bytes(holding(tensor).SerializeToString())
    return path


@pytest.mark.parametrize(
    "entries",
    [
        {"location": "w.bin"},
        {"location": "sub/w.bin", "offset": "0", "length": "16"},
        {"location": "./w.bin"},
        {"location": "inner.bin"},
    ],
    ids=str,
)
def test_external_data_is_mapped(entries, tmp_path):
    data = import_onnx(external(tmp_path, entries)).main.outputs[0].data
    assert isinstance(data, MappedData)
    assert data.numpy().tobytes() == bytes(range(16))


def test_external_data_at_an_offset(tmp_path):
    path = external(tmp_path, {"location": "w.bin", "offset": "4", "length": "8"}, dims=(2,))
    assert contents(path).tobytes() == bytes(range(4, 12))


@pytest.mark.parametrize(
    "entries, fault",
    [
        ({"location": "missing.bin"}, "does not exist"),
        ({"location": ""}, "relative path"),
        ({}, "relative path"),
        ({"location": "../outside.bin"}, r"without '\.\.'"),
        ({"location": "sub/../../outside.bin"}, r"without '\.\.'"),
        ({"location": "sub\\..\\..\\outside.bin"}, r"without '\.\.'"),
        ({"location": "/etc/passwd"}, "relative path"),
        ({"location": "C:\\x"}, "relative path"),
        ({"location": "link.bin"}, "link that leaves"),
        ({"location": "sub"}, "not a regular file"),
        ({"location": "pipe.bin"}, "not a regular file"),
        ({"location": "w.bin", "offset": "4"}, "needs 16 bytes at offset 4"),
        ({"location": "w.bin", "offset": "-1"}, "offset '-1'"),
        ({"location": "w.bin", "offset": "x"}, "offset 'x'"),
        ({"location": "w.bin", "offset": "9" * 19}, "needs 16 bytes"),
        ({"location": "w.bin", "length": "12"}, "external length is 12"),
        ({"location": "w.bin", "length": "²"}, "length '²'"),
    ],
    ids=str,
)
def test_external_data_that_is_wrong(entries, fault, tmp_path):
    path = external(tmp_path, entries)
    with pytest.raises(FormatError, match=fault) as caught:
        import_onnx(path)
    assert str(path) in str(caught.value)


def test_external_data_needs_a_directory(tmp_path):
    path = external(tmp_path, {"location": "w.bin"})
    with pytest.raises(FormatError, match="import the model from its file"):
        import_onnx(path.read_bytes())


GIANT = """
import resource, sys, time
from irc.frontends.onnx import import_onnx
def anonymous():
    return sum(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("RssAnon"))
import_onnx(sys.argv[2])
before, start = anonymous(), time.perf_counter()
model = import_onnx(sys.argv[1])
print(anonymous() - before, time.perf_counter() - start, model.constants["w"].data.nbytes)
"""


def test_a_gigabyte_of_external_data_costs_no_memory(tmp_path):
    if not Path("/proc/self/status").exists():
        pytest.skip("memory by kind is read from /proc, which only Linux has")
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(1 << 30)  # sparse: takes no space on the disk
    tensor = TensorProto(name="w", data_type=F, dims=[1 << 14, 1 << 14], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    (tmp_path / "big.onnx").write_bytes(holding(tensor).SerializeToString())
    small = holding(numpy_helper.from_array(np.zeros(3, np.float32)))
    (tmp_path / "small.onnx").write_bytes(small.SerializeToString())
    done = subprocess.run(
        [sys.executable, "-c", GIANT, str(tmp_path / "big.onnx"), str(tmp_path / "small.onnx")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    grown, seconds, size = done.stdout.split()
    assert int(size) == 1 << 30
    assert int(grown) < 100 * 1024
    assert float(seconds) < 5


# Files that are not ONNX models


def relu() -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", F, [2])],
        [helper.make_tensor_value_info("y", F, [2])],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


@pytest.mark.parametrize(
    "payload, fault",
    [
        (b"", "is empty"),
        (b"PK\x03\x04 this is a zip file", "not an ONNX model"),
        (b"{}", "not an ONNX model"),
        (b"\x08\x07", "no graph"),
        (relu().SerializeToString()[:-9], "truncated|not an ONNX model|damaged"),
        (b"\x3a\xff\xff\xff\xff\x0f", "truncated"),
    ],
)
def test_what_is_no_model_is_named(payload, fault, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(payload)
    with pytest.raises(FormatError, match=fault) as caught:
        import_onnx(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(FormatError, match="cannot be read"):
        import_onnx(tmp_path / "none.onnx")
    with pytest.raises(FormatError, match="not a regular file"):
        import_onnx(tmp_path)


def test_damaged_bytes_never_raise_anything_else(tmp_path):
    rng = random.Random(5)
    weights = numpy_helper.from_array(np.arange(600, dtype=np.float32), "w")
    model = relu()
    model.graph.initializer.append(weights)
    model.graph.node.append(helper.make_node("Add", ["y", "w"], ["z"]))
    whole = model.SerializeToString()
    for _ in range(300):
        payload = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(300 if rng.random() < 0.8 else len(payload))
            payload[at] = rng.randrange(256)
        del payload[rng.randrange(len(payload)) :: len(payload) if rng.random() < 0.7 else 1]
        try:
            check_onnx(bytes(payload))
        except IrcError:
            continue


def test_a_reference_into_the_file_cannot_be_forged():
    from irc.frontends.onnx import reading

    payload = b"\x00" * 16 + (0).to_bytes(8, "little")
    assert contents(holding(TensorProto(data_type=TensorProto.UINT8, dims=[24], raw_data=payload))).tobytes() == payload
    assert reading._NONCE not in holding(TensorProto(data_type=F, dims=[0])).SerializeToString()


@pytest.mark.parametrize(
    "change, fault",
    [
        (lambda t: t.ClearField("raw_data"), "needs 8 elements, the file has 0"),
        (lambda t: t.dims.append(2), "needs 64 bytes, the file has 32"),
        (lambda t: t.dims.__setitem__(0, -8), "negative dimension"),
        (lambda t: t.dims.extend([1 << 40, 1 << 40]), "needs"),
        (lambda t: setattr(t, "data_type", 0), "unusable type"),
        (lambda t: setattr(t, "data_type", 99), "unusable type"),
        (lambda t: setattr(t, "data_type", TensorProto.STRING), "strings as raw data"),
        (lambda t: t.segment.SetInParent(), "segments"),
    ],
)
def test_tensors_are_checked(change, fault):
    tensor = numpy_helper.from_array(np.zeros(8, np.float32))
    change(tensor)
    with pytest.raises(FormatError, match=fault) as caught:
        import_onnx(holding(tensor))
    assert "'w'" in str(caught.value)


def chain(*nodes, inputs=("x",), outputs=("y",), initializers=()):
    infos = [helper.make_tensor_value_info(n, F, [2]) for n in inputs]
    outs = [helper.make_tensor_value_info(n, F, [2]) for n in outputs]
    graph = helper.make_graph([helper.make_node(*n) for n in nodes], "g", infos, outs)
    graph.initializer.extend(numpy_helper.from_array(np.zeros(2, np.float32), n) for n in initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


@pytest.mark.parametrize(
    "model, fault",
    [
        (chain(("Add", ["x", "gone"], ["y"])), r"node 'y' \(Add\) reads 'gone', which nothing defines"),
        (chain(("Relu", ["x"], ["z"])), "'y' is read, but nothing defines it"),
        (chain(("Relu", ["x"], ["y"]), ("Neg", ["x"], ["y"])), "'y' is defined twice"),
        (chain(("Relu", ["x"], ["x"]), outputs=["x"]), "'x' is defined twice"),
        (chain(("Relu", ["x"], ["y"]), inputs=["x", "x"]), "'x' is defined twice"),
        (chain(("Relu", ["x"], ["y"]), initializers=["w", "w"]), "'w' is defined twice"),
        (chain(("Relu", ["x"], ["y"]), initializers=["y"]), "'y' is defined twice"),
        (chain(("Add", ["x", "b"], ["a"]), ("Neg", ["a"], ["b"]), ("Neg", ["b"], ["y"])), "cycle: node 'a'"),
        (chain(("Add", ["x", "y"], ["y"])), "cycle: node 'y'"),
    ],
)
def test_graphs_are_checked(model, fault):
    with pytest.raises(FormatError, match=fault):
        import_onnx(model)


def test_nodes_in_any_order_are_put_in_order():
    model = import_onnx(chain(("Neg", ["b"], ["y"]), ("Abs", ["a"], ["b"]), ("Relu", ["x"], ["a"])))
    assert [n.op.name for n in model.main.body.nodes] == ["Relu", "abs", "negate"]


@pytest.mark.parametrize(
    "change, fault",
    [
        (lambda m: m.ClearField("graph"), "no graph"),
        (lambda m: m.ClearField("opset_import"), "no operator set"),
        (lambda m: m.opset_import.add(domain="ai.onnx", version=7), "operator set of domain '' twice"),
        (lambda m: m.graph.input[0].type.Clear(), "'x' has the type nothing"),
        (lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 0), "'x' has an unusable type"),
        (lambda m: m.graph.input[0].type.map_type.SetInParent(), "map_type"),
        (
            lambda m: setattr(m.graph.node[0], "domain", "not.imported"),
            "domain 'not.imported', which the model does not",
        ),
        (lambda m: m.graph.node[0].attribute.extend([helper.make_attribute("a", 1)] * 2), "attribute 'a' twice"),
    ],
)
def test_models_are_checked(change, fault):
    model = relu()
    change(model)
    with pytest.raises(FormatError, match=fault):
        import_onnx(model)


def nested(depth: int) -> onnx.ModelProto:
    out = helper.make_tensor_value_info("y", F, None)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [], [out])
    for _ in range(depth):
        node = helper.make_node("If", ["p"], ["y"])
        node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g.CopyFrom(graph)
        leaf = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [], [out])
        node.attribute.add(name="else_branch", type=onnx.AttributeProto.GRAPH).g.CopyFrom(leaf)
        graph = helper.make_graph([node], "g", [], [out])
    graph.input.extend(
        [helper.make_tensor_value_info("x", F, [2]), helper.make_tensor_value_info("p", TensorProto.BOOL, [])]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def field(number: int, payload: bytes) -> bytes:
    size, length = len(payload), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + payload


def nested_bytes(depth: int) -> bytes:
    """A model of graphs within graphs, written without protobuf, which refuses such depth."""
    graph = field(2, b"innermost")
    for _ in range(depth):
        attribute = field(1, b"then_branch") + field(6, graph) + b"\xa0\x01\x05"
        graph = field(1, field(4, b"If") + field(5, attribute))
    return b"\x08\x08" + field(7, graph) + field(8, b"\x10\x0d")


def test_deep_graphs_are_refused_in_words():
    assert import_onnx(nested(20)).main.body.first.op.name == "if"
    for depth in (60, 2000):
        with pytest.raises(FormatError, match=r"damaged|nested more than 64 deep"):
            import_onnx(nested_bytes(depth))


def test_importing_twice_gives_the_same_model_whatever_the_hash_seed(tmp_path):
    model = nested(3)
    graph = model.graph
    graph.initializer.append(numpy_helper.from_array(np.arange(100, dtype=np.float32), "w"))
    graph.input[0].type.tensor_type.shape.dim[0].dim_param = "p.n"
    graph.node.append(helper.make_node("Shape", ["x"], ["s"]))
    graph.node.append(helper.make_node("ConstantOfShape", ["s"], ["zeros"]))
    graph.output.append(helper.make_tensor_value_info("zeros", F, None))
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    code = (
        "import sys; from irc.frontends.onnx import import_onnx; from irc.ir.text import print_model;"
        "print(print_model(import_onnx(sys.argv[1]), inline_weights=True))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code, str(path)], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True,
            text=True, check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }  # fmt: skip
    assert len(texts) == 1
    assert "func @main<p_n>" in texts.pop()
