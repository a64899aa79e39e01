"""The textual form: printing, parsing, their agreement on random models, and what is said about bad text."""

from __future__ import annotations

import math
import random
import re
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from irc.ir import build, dtypes
from irc.ir.attributes import AttributeKind, Symbol
from irc.ir.build import Builder
from irc.ir.compare import diff, equal, same_attribute
from irc.ir.data import ArrayData, SplatData
from irc.ir.dims import Assumption, Dim, symbol
from irc.ir.errors import FormatError, IrcError
from irc.ir.model import Function, Location, Model, Value
from irc.ir.text import is_in_text, parse_model, print_function, print_model, print_node, version
from irc.ir.text.lexer import quote, unquote
from irc.ir.text.literals import attribute_text, constant_text
from irc.ir.text.reading import Reader
from irc.ir.types import OptionalType, SequenceType, TensorType

B, S, H = symbol("B"), symbol("S"), symbol("H")
F32 = dtypes.f32

DESIGN = """\
irc 1 vocabulary 1
model "demo" {
  weight #w "classifier.weight" : f32[10,64]
  func @main<B>(%x: f32[B,64], %flag: bool[]) -> (%probs: f32[B,10]) {
    %h = dot_general(%x, #w) {lhs_contracting = [1], rhs_contracting = [1]} : f32[B,10]
    %y = if(%flag) captures(%h) : f32[B,10]
      then { %a = Gelu(%h) {approximate = "tanh"} : f32[B,10]  yield %a }
      else { yield %h }
    %z = Clip(%y, _, 6.0) : f32[B,10]
    %probs = Softmax(%z) {axis = 1} : f32[B,10]
    return %probs
  }
}
"""
DESIGN_DATA = {"w": ArrayData(np.arange(640, dtype=np.float32).reshape(10, 64))}

EVERYTHING = """\
irc 1 vocabulary 1
model "a \\"model\\"" {
  metadata producer = "someone"
  metadata "ir version" = "8"
  weight #conv.weight : f32[100] = splat 0.5
  weight #"0" {quantized = "yes"} : f32[] = splat -0.0
  init {
    %w = add(#conv.weight, #"0") : f32[100]
    yield %w as #derived "first.weight" {note = "sum"}
  }
  func @main<B, S>(%x: f32[B,100], %"k:0" {role = "k"}: u32[2], %0: f32[S,100]) -> (%y: f32[B,100], %"1": f32[S,100]) {
    metadata origin = "torch"
    assume B//2*2 == B from "Add_12"
    assume S <= B from ""
    assume bcast(B, S) from "x"
    %/layer.0/Add = add(%x, #derived) : f32[B,100] loc("Add_12", "Relu_3" by "fuse")
    %1 = call(%/layer.0/Add) {callee = @"helper function"} : f32[B,100] loc(by "outline")
    %x_1, %2 = custom_call(%0) {target = "twice"} : f32[S,100], i64[2]
    return %1, %x_1
  }
  private func @"helper function"<N>(%x: f32[N,100]) -> (f32[N,100]) {
    %y = multiply(%x, 2.0) : f32[N,100]
    return %y
  }
  host func @steps(%x: sequence<f32[*]>, %n: i64[3] holds [2, _, 4]) -> (%"0": sequence<f32[*]>) {
    return %x
  }
}
"""


def model_of(inputs: list[tuple[str, TensorType]], body: Callable[..., Any], name: str = "m") -> Model:
    model = Model(name)
    build.function(model, "main", inputs, body)
    return model


def tensor(dtype: dtypes.DType, *dims: Any) -> TensorType:
    return TensorType(dtype, dims)


def in_main(lines: str, inputs: str = "%x: f32[B,4]", returned: str = "%x: f32[B,4]") -> str:
    """A model whose main function has these lines."""
    head = f'irc 1 vocabulary 1\nmodel "m" {{\n  func @main<B>({inputs}) -> (%out: {returned.partition(": ")[2]}) {{\n'
    return f"{head}    {lines}\n    return {returned.partition(':')[0]}\n  }}\n}}\n"


def contents(model: Model) -> dict[str, Any]:
    return {n: c.data for n, c in model.constants.items() if c.data is not None}


def check_round_trip(model: Model) -> str:
    printed = print_model(model)
    back = parse_model(printed, data=contents(model))
    assert not diff(model, back)
    assert equal(model, back)
    assert print_model(back) == printed
    return printed


# --------------------------------------------------------------------------------------------------------- what it says


def test_the_example_of_the_design_is_canonical():
    assert print_model(parse_model(DESIGN, data=DESIGN_DATA)) == DESIGN


def test_a_text_with_everything_is_canonical():
    model = parse_model(EVERYTHING)
    assert print_model(model) == EVERYTHING
    main, host = model.functions["main"], model.functions["steps"]
    assert model.name == 'a "model"'
    assert model.metadata == {"producer": "someone", "ir version": "8"}
    assert main.input_names == ["x", "k:0", "input2"]
    assert main.input_attributes == [{}, {"role": "k"}, {}]
    assert main.output_names == ["y", "1"]
    assert main.metadata == {"origin": "torch"}
    assert main.dims == ["B", "S"]
    assert list(main.assumptions) == [
        Assumption("==", 2 * (B // 2), B, "Add_12"),
        Assumption("<=", S, B, ""),
        Assumption("bcast", B, S, "x"),
    ]
    first, second, third = main.body.nodes
    assert first.location == Location(("Add_12", "Relu_3"), "fuse")
    assert first.result.name == "/layer.0/Add"
    assert second.location == Location((), "outline")
    assert second.result.name is None
    assert third.attributes.as_dict()["results"] == (tensor(F32, S, 100), tensor(dtypes.i64, 2))
    assert [c.name for c in model.derived] == ["derived"]
    assert model.constants["derived"].metadata == {"label": "first.weight", "note": "sum"}
    assert math.copysign(1, model.constants["0"].data.splat) == -1
    assert (host.kind, host.public, model.functions["helper function"].public) == ("host", True, False)
    assert host.inputs[0].type == SequenceType(TensorType(F32, None))
    assert host.inputs[1].ints == (2, None, 4)


def test_locations_are_left_out_for_people():
    model = parse_model(EVERYTHING)
    short = print_model(model, locations=False)
    assert "loc(" not in short
    assert equal(model, parse_model(short))


def test_one_function_and_one_node():
    model = parse_model(DESIGN, data=DESIGN_DATA)
    lines = DESIGN.splitlines()[3:-1]
    assert print_function(model.main) == "".join(f"{line[2:]}\n" for line in lines)
    condition = next(n for n in model.main.body.nodes if n.op.name == "if")
    assert print_node(condition, sub_graphs=False) == print_node(condition).splitlines()[0]
    assert print_node(condition).splitlines()[0] == "%y = if(%flag) captures(%h) : f32[B,10]"


def test_comment_lines_and_free_layout():
    spread = "// RUN: irc opt %s\n" + DESIGN.replace("(%x, #w)", "(\n  %x,\n // the weight\n #w\n )").replace("  ", " ")
    assert print_model(parse_model(spread, data=DESIGN_DATA)) == DESIGN
    assert print_model(parse_model(DESIGN.replace("captures(%h) ", ""), data=DESIGN_DATA)) == DESIGN


def test_small_weights_can_be_printed():
    model = Model("m")
    model.add_constant("b", ArrayData(np.array([1, 2], np.int64)))
    model.add_constant("w", ArrayData(np.zeros(100, np.float32)))
    assert "weight #b : i64[2]\n" in print_model(model)
    printed = print_model(model, inline_weights=True)
    assert "weight #b : i64[2] = [1, 2]\n" in printed
    assert "weight #w : f32[100]\n" in printed
    assert equal(model, parse_model(printed, data={"w": SplatData(0.0, F32, (100,))}))


def test_which_contents_the_text_holds():
    model = Model("m")
    assert is_in_text(model.add_constant("z", SplatData(1.0, F32, (9,))))
    assert is_in_text(model.inline_constant(ArrayData(np.zeros(3, np.float32))))
    assert not is_in_text(model.add_constant("w", ArrayData(np.zeros(3, np.float32))))


def test_bare_numbers_take_the_type_of_the_first_operand_that_is_no_constant():
    def body(b: Builder, x: Value, flag: Value) -> Value:
        w = b.constant(np.ones(4, np.float32), name="w")
        y = b.add(w, 1.0)
        y = b.add(b.constant(2.5), b.multiply(x, y))
        return b.select(flag, b.constant(0.5, F32), y)

    model = model_of([("x", tensor(F32, B, 4)), ("flag", tensor(dtypes.bool_))], body)
    printed = check_round_trip(model)
    assert "add(#w, f32[] 1.0)" in printed
    assert "add(2.5, %1)" in printed
    assert "select(%flag, f32[] 0.5, %2)" in printed


@pytest.mark.parametrize(
    "names", [["x", "x", "x_1", "x", "x_1"], ["x_1", "x", "x"], ["0", "1", None], ["", "a b", "%x"]]
)
def test_names_are_made_unique(names: list[str | None]):
    def body(b: Builder, x: Value) -> Value:
        for name in names:
            x = b.negate(x, name=name)
        return x

    printed = check_round_trip(model_of([("x", tensor(F32, B))], body))
    defined = re.findall(r'(%(?:"[^"]*"|\S)+) = ', printed)
    assert len({*defined, "%x"}) == len(names) + 1


def test_names_of_many_equal_labels_take_linear_time():
    def body(b: Builder, x: Value) -> Value:
        for _ in range(5000):
            x = b.negate(x, name="same")
        return x

    model = model_of([("x", tensor(F32, B))], body)
    start = time.perf_counter()
    printed = print_model(model)
    assert time.perf_counter() - start < 60  # finds a hang or quadratic work, not a speed
    assert "%same_4999 = negate(%same_4998)" in printed


def test_sibling_graphs_may_use_one_name_but_none_may_be_hidden():
    lines = """%y = if(%f) : f32[B]
        then { %a = negate(%x) : f32[B]  yield %a }
        else { %a = abs(%x) : f32[B]  yield %a }"""
    model = parse_model(in_main(lines, "%x: f32[B], %f: bool[]", "%y: f32[B]"))
    assert "%a_1 = abs(%x)" in print_model(model)
    with pytest.raises(FormatError, match=r"%x is defined already"):
        parse_model(in_main(lines.replace("%a", "%x"), "%x: f32[B], %f: bool[]", "%y: f32[B]"))


def test_a_declared_type_may_spell_an_equal_size_differently():
    lines = 'assume B == N from "Reshape"\n    %y = negate(%x) : f32[N,4]'
    model = parse_model(in_main(lines, returned="%y: f32[N,4]").replace("<B>", "<B, N>"))
    assert model.main.outputs[0].type == tensor(F32, symbol("N"), 4)
    with pytest.raises(FormatError, match=r"result 0 of negate has type f32\[B,4\], not f32\[N,4\] as declared"):
        parse_model(in_main(lines.partition("\n")[2], returned="%y: f32[N,4]"))


def test_assumptions_are_those_of_the_text():
    model = model_of([("x", tensor(F32, B)), ("y", tensor(F32, S))], lambda b, x, y: b.add(x, y))
    (assumption,) = model.main.assumptions
    printed = check_round_trip(model)
    assert "assume bcast(B, S) from" in printed
    without = parse_model(re.sub(r" *assume.*\n", "", printed))
    assert not without.main.assumptions
    assert list(parse_model(printed).main.assumptions) == [assumption]


def test_sub_graphs_of_loops_cases_and_reductions():
    def body(b: Builder, x: Value, n: Value) -> tuple[Value, ...]:
        state = (tensor(dtypes.i64), tensor(F32, B, 4))
        cond = b.region(state, lambda c, i, a: c.compare(i, n, direction="lt"), ("i", "acc"))
        step = b.region(state, lambda c, i, a: (c.add(i, 1), c.add(a, x)), ("i", "acc"))
        i, acc = b.while_((b.constant(0, dtypes.i64), x), cond=cond, body=step)
        branches = [b.region([], lambda c: c.negate(acc)), b.region([], lambda c: acc)]
        chosen = b.case(i, branches=branches)
        pair = (tensor(F32), tensor(F32))
        scalar = b.region(pair, lambda c, p, q: c.maximum(p, q), ("p", "q"))
        total = b.reduce((chosen, b.constant(0.0)), axes=(0, 1), kind="custom", body=scalar)
        return chosen, total if isinstance(total, Value) else total[0]

    model = model_of([("x", tensor(F32, B, 4)), ("n", tensor(dtypes.i64))], body)
    printed = check_round_trip(model)
    assert "body(%p: f32[], %q: f32[]) {" in printed
    assert printed.count("branches {") == 2
    assert "while(i64[] 0, %x) captures(%n, %x) : i64[], f32[B,4]" in printed


def test_deep_nesting_has_a_limit():
    def nested(depth: int) -> Model:
        def inner(b: Builder, x: Value, flag: Value, level: int) -> Value:
            if not level:
                return b.negate(x)
            then, other = Builder(b.model, build.Graph()), Builder(b.model, build.Graph())
            then.graph.set_outputs([inner(then, x, flag, level - 1)])
            other.graph.set_outputs([x])
            return b.if_(flag, then=then.graph, else_=other.graph)

        return model_of([("x", tensor(F32, B)), ("f", tensor(dtypes.bool_))], lambda b, x, f: inner(b, x, f, depth))

    check_round_trip(nested(64))
    with pytest.raises(IrcError, match="nest deeper than 64"):
        print_model(nested(65))
    deep = "%y = if(%f) : f32[B] then {" * 65
    with pytest.raises(FormatError, match="nest deeper than 64"):
        parse_model(in_main(deep, "%x: f32[B], %f: bool[]", "%x: f32[B]"))


def test_calls_in_any_order_and_in_a_circle():
    def two(a: str, b: str) -> str:
        return f"""irc 1 vocabulary 1
model "m" {{
  func @f(%x: f32[4]) -> (%y: f32[4]) {{
    %y = {a}(%x) {"{callee = @g} " if a == "call" else ""}: f32[4]
    return %y
  }}
  func @g(%x: f32[4]) -> (%y: f32[4]) {{
    %y = {b}(%x) {"{callee = @f} " if b == "call" else ""}: f32[4]
    return %y
  }}
}}
"""

    for a, b in (("call", "negate"), ("negate", "call")):
        model = parse_model(two(a, b))
        assert list(model.functions) == ["f", "g"]
        assert print_model(model) == two(a, b)
    with pytest.raises(FormatError, match="call each other in a circle"):
        parse_model(two("call", "call"))


# --------------------------------------------------------------------------------------------------------- the versions


def test_versions(monkeypatch: pytest.MonkeyPatch):
    newer = DESIGN.replace("vocabulary 1", "vocabulary 2")
    with pytest.raises(FormatError, match=r"written by a newer irc \(syntax 1, vocabulary 2\)"):
        parse_model(newer)
    with pytest.raises(FormatError, match="written by a newer irc"):
        parse_model(DESIGN.replace("irc 1", "irc 2"))
    with pytest.raises(FormatError, match="no syntax 1 or vocabulary 0"):
        parse_model(DESIGN.replace("vocabulary 1", "vocabulary 0"))
    for other in ("", "\n\n", "hello", "irc one vocabulary 1", 'irc 1 vocabulary 1 model "m" {}', "\0"):
        with pytest.raises(FormatError, match=r"x\.ir:1:1: error: expected a first line such as 'irc 1 vocabulary 1'"):
            parse_model(other, filename="x.ir")
    assert set(version.UPGRADES) == set(range(1, version.VOCABULARY))
    monkeypatch.setattr("irc.ir.text.parser.VOCABULARY", 2)
    monkeypatch.setitem(version.UPGRADES, 1, lambda t: t.replace("OldSoftmax", "Softmax"))
    old = DESIGN.replace("Softmax", "OldSoftmax")
    assert equal(parse_model(old, data=DESIGN_DATA), parse_model(newer, data=DESIGN_DATA))


# ------------------------------------------------------------------------------------------------------------- literals


def reread(data: Any) -> Any:
    reader = Reader(constant_text(data), "t")
    back = reader.constant()
    assert reader.at == len(reader.tokens) - 1
    return back


NARROW = [d for d in dtypes.ALL if d.kind in ("float", "int", "uint") and d.bits <= 16]


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_every_bit_pattern_of_narrow_types(dtype: dtypes.DType):
    count = 1 << dtype.bits
    step = 1 if count <= 256 else 7  # with 7, every exponent and both ends of each; the whole would take minutes
    patterns = np.arange(0, count, step, dtype=np.uint32).astype(f"u{dtype.itemsize}")
    array = patterns.view(dtype.numpy)
    if dtype.kind in ("int", "uint") and dtype.bits < 8:
        array = (patterns.astype(np.int16) - (count // 2 if dtype.kind == "int" else 0)).astype(dtype.numpy)
    data = ArrayData(array.copy(), dtype)
    assert reread(data).equals(data)


@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64, dtypes.c64, dtypes.c128], ids=str)
@given(raw=st.binary(min_size=64, max_size=64))
def test_random_bits_of_wide_floats(dtype: dtypes.DType, raw: bytes):
    data = ArrayData(np.frombuffer(raw, dtype.numpy), dtype)
    assert reread(data).equals(data)


@pytest.mark.parametrize(
    "value, dtype, spelled",
    [
        (0.1, dtypes.f32, "0.1"),
        (0.1, dtypes.f16, "0.1"),
        (0.1, dtypes.bf16, "0.1"),
        (6.0, dtypes.f32, "6.0"),
        (1e30, dtypes.f32, "1e+30"),
        (-0.0, dtypes.f8e4m3fn, "-0.0"),
        (math.inf, dtypes.f16, "inf"),
        (-math.inf, dtypes.f64, "-inf"),
        (math.nan, dtypes.bf16, "nan"),
        (3 - 0.5j, dtypes.c64, "(3.0, -0.5)"),
        (True, dtypes.bool_, "true"),
        (-8, dtypes.i4, "-8"),
        (2**64 - 1, dtypes.u64, str(2**64 - 1)),
        ('a "b"\n\u2028', dtypes.string, '"a \\"b\\"\\n\\u{2028}"'),
    ],
)
def test_elements(value: Any, dtype: dtypes.DType, spelled: str):
    array = np.array(value, object) if dtype is dtypes.string else np.array(value).astype(dtype.numpy)
    data = ArrayData(array, dtype)
    assert constant_text(data) == f"{dtype}[] {spelled}"
    assert reread(data).equals(data)


def test_a_nan_with_a_payload_keeps_its_bits():
    data = ArrayData(np.array([0x7FC00000, 0x7FC00001, 0xFFC00000, 0x7F800001], np.uint32).view(np.float32))
    assert constant_text(data) == "f32[4] [nan, 0x7fc00001, 0xffc00000, 0x7f800001]"
    assert reread(data).equals(data)


@pytest.mark.parametrize(
    "array, spelled",
    [
        (np.zeros((0, 3), np.float32), "f32[0,3] []"),
        (np.array([[1, 2], [3, 4]], np.int64), "i64[2,2] [[1, 2], [3, 4]]"),
        (np.ones((2, 2), np.int64), "i64[2,2] [[1, 1], [1, 1]]"),
        (np.ones((3, 2), np.int64), "i64[3,2] splat 1"),
        (np.array(["a", ""], object), 'string[2] ["a", ""]'),
    ],
)
def test_shapes_of_constants(array: np.ndarray, spelled: str):
    assert constant_text(ArrayData(array)) == spelled
    assert reread(ArrayData(array)).equals(ArrayData(array))


@pytest.mark.parametrize(
    "literal, message",
    [
        ("i8[] 128", "does not fit in an element of type i8"),
        ("u8[] -1", "does not fit in an element of type u8"),
        ("i4[2] [7, 8]", "does not fit in an element of type i4"),
        ("f16[] 70000.0", "does not fit in an element of type f16"),
        ("f4e2m1fn[] 7.0", "does not fit"),
        ("f8e4m3fn[] inf", "does not fit"),
        ("f4e2m1fn[] nan", "does not fit"),
        ("f8e8m0fnu[] -1.0", "does not fit"),
        ("f16[] 0x10000", "does not fit"),
        ("f32[] 0x1ffffffffffffffff", "more than 64 bits"),
        ("f32[] true", "expected a number (f32), found true"),
        ("i32[] 1.5", "expected an integer (i32), found 1.5"),
        ("i32[] " + "1" * 1001, "an integer of 1001 digits"),
        ("f32[] " + "1" * 1001, "a number of 1001 characters"),
        ("bool[] 1", "expected true or false, found 1"),
        ("c64[] 1.0", "expected '(' and two numbers (c64), found 1.0"),
        ("string[] abc", "expected a string, found abc"),
        ('string[] "abc', "not terminated"),
        ('string[] "\\q"', "an escape other than"),
        ('string[] "\\u{110000}"', "an escape other than"),
        ("i64[2] [1]", "expected ',' and 1 more elements (axis 0), found ]"),
        ("i64[2] [1, 2, 3]", "expected ']' after 2 elements (axis 0), found ,"),
        ("i64[2] 1", "expected '[' and 2 elements (axis 0), found 1"),
        ("i64[0] [1]", "expected ']' : the constant is empty, found 1"),
        ("i64[B] [1]", "a constant needs a type with numbers for dims, not i64[B]"),
        ("i64[*] [1]", "a constant needs a type with numbers for dims, not i64[*]"),
        ("i64[-1] [1]", "-1 is no size of an axis"),
        ("i64[2", "the dims of this type are not closed by ]"),
        ("i64[2**3] [1]", "in this size"),
        (f"i64[{'1,' * 65}1] splat 1", "rank 66"),
        ("f32[4000000000000,4000000] splat 1.0", "too large for any memory"),
        ("flot32[] 1.0", "expected a type such as f32[B,64]"),
        (f"{'sequence<' * 17}f32[]{'>' * 17} 1", "a type nests deeper than 16"),
        ("f32[" + "(" * 200 + "B" + ")" * 200 + "] 1", "in this size: column"),
        ("f32[1//0] 1", "division by zero"),
    ],
)
def test_bad_literals(literal: str, message: str):
    with pytest.raises(FormatError) as error:
        Reader(literal, "t").constant()
    assert message in str(error.value)
    assert re.match(r"t:1:\d+: error: ", str(error.value))


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=20))
def test_strings(value: str):
    spelled = quote(value)
    assert unquote(spelled) == value
    assert spelled.isprintable()


SIZES = st.recursive(
    st.sampled_from([symbol("none"), B, S, H]) | st.integers(-5, 70),
    lambda inner: (
        st.tuples(inner, inner, st.sampled_from("+-*")).map(
            lambda t: t[0] + t[1] if t[2] == "+" else t[0] - t[1] if t[2] == "-" else t[0] * t[1]
        )
        | inner.map(lambda s: s // 2)
        | inner.map(lambda s: s % 3)
    ),
    max_leaves=5,
)
TYPES = st.one_of(
    st.builds(
        TensorType,
        st.sampled_from(dtypes.ALL),
        st.none() | st.lists(st.integers(0, 9) | st.just(B), max_size=3).map(tuple),
    ),
    st.just(SequenceType(OptionalType(TensorType(F32, (B, H // 2 + 1))))),
)
STRINGS = st.text(max_size=12)
LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**70), 2**70),
    "float": st.integers(0, 2**64 - 1).map(lambda i: struct.unpack("<d", struct.pack("<Q", i))[0]) | st.floats(),
    "bool": st.booleans(),
    "str": STRINGS,
    "size": SIZES,
    "dtype": st.sampled_from(dtypes.ALL),
    "type": TYPES,
    "symbol": STRINGS.map(Symbol),
}
ARRAYS = st.sampled_from([np.array(7, np.int8), np.zeros((2, 0), np.float16), np.array([[1.5, math.nan]], np.float32)])
# A payload tells sizes from integers by their spelling, so only symbolic ones are sizes there.
PLAIN = [s.filter(lambda v: isinstance(v, Dim)) if k == "size" else s for k, s in LEAVES.items()]
LEAVES["payload"] = st.recursive(
    st.one_of(st.none(), st.binary(max_size=5), ARRAYS.map(ArrayData), *PLAIN),
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=8,
)


@given(st.data())
@settings(max_examples=400)
def test_attributes_of_every_kind(data: st.DataObject):
    base = data.draw(st.sampled_from(sorted(LEAVES)))
    kind = AttributeKind(base, depth=data.draw(st.integers(0, 2)), optional=data.draw(st.booleans()))  # type: ignore[arg-type]  # a key of the table
    strategy = LEAVES[base]
    for _ in range(kind.depth):
        strategy = st.lists(strategy, max_size=4).map(tuple)
    value = data.draw(st.none() | strategy if kind.optional else strategy)
    reader = Reader(attribute_text(value, kind), "t")
    assert same_attribute(reader.attribute(kind), value)
    assert reader.at == len(reader.tokens) - 1


# -------------------------------------------------------------------------------------------------------- random models


class RandomModel:
    """A model made by chance: a few operators, odd names, sub-graphs with captures, constants of all types."""

    NAMES = (
        None,
        None,
        "x",
        "x_1",
        "y",
        "0",
        "a.b",
        "/m/Add_1",
        "serving_default:0",
        "",
        "é",
        '"',
        "\n",
        "yield",
        "_",
        "//",
    )

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.model = Model(self.random.choice(["m", "", 'a "b"\\', "\u2028"]), metadata=self.marks())
        if self.random.random() < 0.5:
            self.weights()
        self.helper()
        if self.random.random() < 0.3:
            self.derive()
        for name in self.random.sample(["main", "f", "a b", "1", ""], self.random.randint(1, 3)):
            self.function(name)

    def marks(self) -> dict[str, str]:
        keys = self.random.sample(["role", "a key", "k.v", "label2", ""], self.random.choice([0, 0, 1, 2]))
        return {k: self.random.choice(["", "yes", '"', "\t"]) for k in keys}

    def name(self) -> str | None:
        return self.random.choice(self.NAMES)

    def location(self) -> Location:
        source = tuple(self.random.sample(["Conv_1", 'a "q"', "", "x, y"], self.random.choice([0, 0, 1, 2])))
        return Location(source, self.random.choice([None, None, "fuse", "a b"]))

    def array(self, dtype: dtypes.DType, shape: tuple[int, ...]) -> ArrayData:
        size = math.prod(shape)
        if dtype.is_string:
            return ArrayData(
                np.array([self.random.choice(self.NAMES[2:]) for _ in range(size)], object).reshape(shape), dtype
            )
        if dtype.is_bool:
            return ArrayData(
                np.array([self.random.random() < 0.5 for _ in range(size)], np.bool_).reshape(shape), dtype
            )
        if dtype.is_integer:
            low = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
            values = [self.random.randrange(low, low + (1 << dtype.bits)) for _ in range(size)]
            wide = np.array(values, np.int64 if dtype.kind == "int" else np.uint64)
            return ArrayData(wide.astype(dtype.numpy).reshape(shape), dtype)
        mask = (1 << dtype.bits) - 1 if dtype.bits < 8 else 0xFF
        raw = bytes(self.random.randrange(256) & mask for _ in range(size * dtype.itemsize))
        return ArrayData(np.frombuffer(raw, dtype.numpy).reshape(shape), dtype)

    def weights(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            dtype = self.random.choice(dtypes.ALL)
            shape = self.random.choice([(), (3,), (100,), (2, 0), (5, 30)])
            data: Any = self.array(dtype, shape)
            if data.size and self.random.random() < 0.5:
                data = SplatData(data.numpy().reshape(-1)[0], dtype, shape)
            constant = self.model.add_constant(self.name() or "weight", data)
            constant.metadata = self.marks() | ({"label": "original:0"} if self.random.random() < 0.3 else {})

    def derive(self) -> None:
        w = self.model.add_constant("w", self.array(F32, (4, 30)))
        b = Builder(self.model, self.model.init, location=self.location())
        value = self.model.init and b.negate(b.transpose(w, permutation=(1, 0)), name=self.name())
        self.model.add_derived(self.name() or "derived", value)
        self.model.derived[-1].metadata = self.marks()

    def helper(self) -> None:
        inputs = [("x", tensor(F32, symbol("N"), 4))]
        function = build.function(self.model, "helper", inputs, lambda b, x: b.multiply(x, 0.1))
        function.public = False
        function.output_names = []

    def function(self, name: str) -> None:
        function = self.model.add_function(Function(name, dims=["B", "S"], public=name != "1"))
        function.metadata = self.marks()
        pool: list[Value] = []
        labels = self.random.sample([n for n in self.NAMES if n is not None], 5)
        for label, type_ in zip(
            labels,
            (tensor(F32, B, 4), tensor(F32, S, 4), tensor(F32), tensor(dtypes.bool_), tensor(dtypes.i64, 2)),
            strict=True,
        ):
            pool.append(function.add_input(type_, label, **{k.replace(" ", "_"): v for k, v in self.marks().items()}))
        self.nodes(Builder(self.model, function.body), pool, 0, self.random.randint(0, 12))
        function.body.set_outputs(self.random.sample(pool, 2))
        function.output_names = self.random.sample([n for n in self.NAMES if n], 2)

    def pick(self, pool: list[Value], type_: TensorType) -> Value:
        found = [v for v in pool if v.type == type_]
        return self.random.choice(found)

    def nodes(self, b: Builder, pool: list[Value], depth: int, count: int) -> None:
        for _ in range(count):
            made = self.node(b.at(self.location()), pool, depth)
            pool += made if isinstance(made, tuple) else (made,)

    def node(self, b: Builder, pool: list[Value], depth: int) -> Any:
        x, flag = self.pick(pool, tensor(F32, B, 4)), self.pick(pool, tensor(dtypes.bool_))
        name = self.name()
        match self.random.choice(
            ["map", "two", "bare", "typed", "call", "custom", "onnx", "if", "while", "reduce", "bcast"]
        ):
            case "map":
                return b.apply(self.random.choice(["negate", "abs", "exponential", "tanh"]), x, name=name)
            case "two":
                return b.apply(
                    self.random.choice(["add", "multiply", "maximum"]), x, self.pick(pool, x.type), name=name
                )
            case "bare":
                return b.subtract(x, b.constant(self.array(F32, ())), name=name)
            case "typed":
                dtype = self.random.choice(dtypes.ALL)
                shape = self.random.choice([(), (1,), (2, 3), (0, 2), (8, 8)])
                data = self.array(dtype, shape)
                return b.reshape(b.constant(data), dims=(data.size,), names=[name])
            case "call":
                return b.call((x,), callee="helper", name=name)
            case "custom":
                results = tuple(
                    self.random.sample(
                        [tensor(F32), tensor(dtypes.i4, 3), tensor(dtypes.c64, B)], self.random.randint(0, 2)
                    )
                )
                return b.custom_call(
                    (x, flag), target=self.random.choice(["f", 'a"']), results=results, names=[name, None]
                )
            case "onnx":
                attributes = (("alpha", 0.1), ("axes", (1, -2)), ("mode", "a\nb"), ("t", None))
                results = (TensorType(F32, None),)
                return b.onnx(
                    (x,),
                    domain="",
                    type="Foo",
                    version=17,
                    attributes=attributes,
                    results=results,
                    graphs=(),
                    names=[name],
                )
            case "if" if depth < 3:

                def branch(c: Builder) -> Value:
                    inner = list(pool)
                    self.nodes(c, inner, depth + 1, self.random.randint(0, 3))
                    return self.pick(inner, x.type)

                return b.if_(flag, then=b.region([], branch), else_=b.region([], branch), name=name)
            case "while" if depth < 3:
                cond = b.region([x.type], lambda c, v: flag, [self.name() or "v"])

                def step(c: Builder, v: Value) -> Value:
                    inner = [*pool, v]
                    self.nodes(c, inner, depth + 1, self.random.randint(0, 3))
                    return self.pick(inner, x.type)

                return b.while_((x,), cond=cond, body=b.region([x.type], step), name=name)
            case "reduce":
                body = b.scalar_region("maximum", F32)
                return b.reduce((x, b.constant(-1.0)), axes=(0, 1), kind="custom", body=body, name=name)
            case _:
                return b.add(x, self.pick(pool, tensor(F32, S, 4)), name=name)


@pytest.mark.parametrize("seed", range(60))
def test_random_models_come_back(seed: int):
    model = RandomModel(seed).model
    check_round_trip(model)
    short = print_model(model, locations=False)
    assert equal(model, parse_model(short, data=contents(model)))


# ------------------------------------------------------------------------------------------------------------ bad texts


@pytest.mark.parametrize(
    "lines, message",
    [
        ("%y = ad(%x, %x) : f32[B,4]", "4:10: error: no operator is called 'ad'; did you mean"),
        ("%y = add(%z, %x) : f32[B,4]", "4:14: error: there is no value %z here"),
        ("%y = add(#z, %x) : f32[B,4]", "4:14: error: there is no constant #z"),
        ("%y = add(%x, %x : f32[B,4]", "expected ',' or ), found :"),
        ("%y = add(%x, %x) : f32[B,5]", "4:22: error: result 0 of add has type f32[B,4], not f32[B,5] as declared"),
        ("%y = add(%x, %x)", "add has 1 results here; 1 names and 0 types are given"),
        ("add(%x, %x)", "add has 1 results here; 0 names and 0 types are given"),
        ("%y, %z = add(%x, %x) : f32[B,4]", "add has 1 results here; 2 names and 1 types are given"),
        ("%y = add(%x) : f32[B,4]", "4:10: error: "),
        ("%y = add(%x, %x, %x) : f32[B,4]", "add takes at most 2 operands, got 3"),
        ("%y = add(%x, _) : f32[B,4]", "operand y of add is missing"),
        ("%y = add(1.0, 2.0) : f32[]", "here it needs its own: f32[] 6.0"),
        ("%y = add(%x, frog) : f32[B,4]", "expected an operand: a value (%name), a constant"),
        ("%y = add(%x, 1x) : f32[B,4]", "expected ',' or ), found x"),
        ("%x = negate(%x) : f32[B,4]", "4:5: error: %x is defined already"),
        ("%y = negate(%x) {k = 1} : f32[B,4]", "negate has no attribute 'k'; it has none"),
        ("%y = Softmax(%x) {axes = 1} : f32[B,4]", "Softmax has no attribute 'axes'; did you mean 'axis'?"),
        ("%y = Softmax(%x) {axis = 1, axis = 1} : f32[B,4]", "attribute axis is given twice"),
        ("%y = Softmax(%x) {axis = one} : f32[B,4]", "expected an integer, found one"),
        ("%y = Softmax(%x) {axis = 7} : f32[B,4]", "out of range"),
        ("%y = transpose(%x) : f32[4,B]", "transpose needs the attribute permutation"),
        ("%y = transpose(%x) {permutation = 1} : f32[4,B]", "expected '[' (list of int), found 1"),
        ('%y = convert(%x) {dtype = f23} : f16[B,4]', "expected an element type (one of f64, f32"),
        ("%y = call(%x) {callee = f} : f32[B,4]", "expected a function's name (@name), found f"),
        ("%y = call(%x) {callee = @f} : f32[B,4]", "the model has no function @f"),
        ("%y = negate(%x) : f32[B,4] loc(Conv)", "expected ')', found Conv"),
        ("%y = negate(%x) : f32[B 4]", "expected ',' or ], found 4"),
        ("%y = negate(%x) : f32[B,,4]", "in this size"),
        ("%y = negate(%x) : tensor", "expected a type such as f32[B,64], found tensor"),
        ("%y = negate(%x) : f33[B]", "expected a type such as f32[B,64] (did you mean"),
        ("%y = if(%f) : f32[B,4] then { yield %x }", "if needs the graph else"),
        ("%y = if(%f) : f32[B,4] then { yield %x } then { yield %x }", "if has one graph then; this is the second"),
        ("%y = if(%f) : f32[B,4] then { yield } else { yield %x }", "else yields 1 values, then 0"),
        ("%y = if(%f) : f32[B,4] then { return %x }", "expected a node (%name = operator(...)) or yield, found return"),
        ("%y = if(%f) : f32[B,4] then { yield %x", "expected ',' or }, found return"),
        ("%y = if(%f) captures(%f) : f32[B,4] then { yield %x } else { yield %x }", "of this if capture (%x)"),
        ("%y = if(%f) : f32[B,4] then { %a = abs(%x) : f32[B,4] yield %a } else { yield %a }", "there is no value %a"),
        ("assume B == from \"x\"", "expected 'from' and the node's name, found \"x\""),
        ("assume B < 3 from \"x\"", "expected 'bcast' (a, b), or a comparison"),
        ("assume B == 3", "expected 'from' and the node's name"),
        ("yield %x", "expected a node (%name = operator(...)) or return, found yield"),
        ("= 3", "expected a node (%name = operator(...)) or return, found ="),
        ("%\"y = abs(%x) : f32[B,4]", "is not terminated"),
        ("\0", "expected a node (%name = operator(...)) or return, found '\\x00'"),
        ("%y = abs(%x) : f32[B,4] \ud800", "expected a node"),
    ],
)  # fmt: skip
def test_bad_lines(lines: str, message: str):
    with pytest.raises(FormatError) as error:
        parse_model(in_main(lines, "%x: f32[B,4], %f: bool[]"))
    assert message in str(error.value)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('model "demo"', "model demo", "2:7: error: expected the model's name in quotes, found demo"),
        ("f32[10,64]\n", "f32[B,64]\n", "a constant needs a type with numbers for dims"),
        ("f32[10,64]\n", "f32[10,65]\n", "the weight #w is declared as f32[10,65]; its contents are f32[10,64]"),
        ("weight #w", "weight #v", "the contents of the weight #v are missing: the container has no tensor"),
        ("  func", "  weight #w : f32[1] = splat 1.0\n  func", "there is a constant #w already"),
        ("  func", "  fun", "expected metadata, requires, weight, init, func or }, found fun"),
        ("%flag: bool[])", "%flag bool[])", "expected ':', found bool"),
        ("%flag: bool[])", "%x: bool[])", "%x is defined already"),
        ("%flag: bool[])", "%flag: bool[] holds [1, _, 2])", "3 known integers for a value of type bool[]"),
        ("%x: f32[B,64],", "%x: f32[B,64] holds [1],", "a value of type f32[B,64] has no known integers"),
        ("<B>", "<1>", "expected the name of a symbolic dim, found 1"),
        ("(%probs: f32[B,10])", "(%probs: f32[B,11])", "output 0 is declared as f32[B,11], the value returned has"),
        ("(%probs: f32[B,10])", "()", "@main declares 0 outputs, this returns 1"),
        ("(%probs: f32[B,10])", "(f32[B,10], %b: f32[B])", "an output with a name after one without"),
        ("return %probs", "return %probs %z", "expected ',' or }"),
        ("return %probs", "return 6.0", "expected a value (%name), a constant (#name) or a constant with its type"),
        ("    return %probs\n", "", "expected a node (%name = operator(...)) or return, found }"),
        ("}\n}\n", "}\n}\n}\n", "expected the end of the text after the model's }, found }"),
        ("}\n}\n", "}\n", "expected func, host func, private func or }, found the end of the text"),
        ("}\n}\n", "}\n  func @main() -> () { return }\n}\n", "there is a function @main already"),
    ],
)  # fmt: skip
def test_bad_models(old: str, new: str, message: str):
    assert old in DESIGN
    with pytest.raises(FormatError) as error:
        parse_model(DESIGN.replace(old, new), data=DESIGN_DATA)
    assert message in str(error.value)


def test_an_error_shows_the_line_and_a_caret():
    with pytest.raises(FormatError) as error:
        parse_model(DESIGN.replace("Gelu", "Gleu"), filename="dir/a.ir", data=DESIGN_DATA)
    assert str(error.value) == (
        "dir/a.ir:7:19: error: no operator is called 'Gleu'; did you mean 'Gelu'?\n"
        '        then { %a = Gleu(%h) {approximate = "tanh"} : f32[B,10]  yield %a }\n'
        "                    ^"
    )


def test_a_long_line_is_shown_in_part():
    with pytest.raises(FormatError) as error:
        parse_model(in_main(f"%y = add({'%x, ' * 20000}%z) : f32[B,4]"))
    _, shown, caret = str(error.value).split("\n")
    assert len(shown) < 200
    assert shown[caret.index("^") :].startswith("%z")


def test_missing_contents_are_named():
    with pytest.raises(FormatError, match=r"the contents of the weight #w are missing: only the text was given"):
        parse_model(DESIGN)


def mutations(seed: int, count: int) -> Iterator[str]:
    """Texts near good ones: characters and pieces deleted, doubled, swapped or replaced."""
    chance = random.Random(seed)
    sources = [DESIGN, EVERYTHING, print_model(RandomModel(seed).model)]
    pieces = [
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "%x",
        "#w",
        '"',
        "\\",
        "\n",
        "//",
        "-",
        "0x",
        "1e999",
        "none",
        "f32[",
        "B",
        "\0",
        "é",
        "if",
        "@f",
    ]
    for _ in range(count):
        source = chance.choice(sources)
        for _ in range(chance.choice([1, 1, 2, 5])):
            at, to = chance.randrange(len(source)), chance.randrange(len(source))
            width = chance.choice([1, 1, 2, 10, 100])
            match chance.randrange(4):
                case 0:
                    source = source[:at] + source[at + width :]
                case 1:
                    source = source[:at] + chance.choice(pieces) + source[at:]
                case 2:
                    source = source[:at] + source[to : to + width] + source[at:]
                case 3:
                    source = source[:at] + source[to : to + width] + source[at + width :]
            source = source or " "
        yield source


@pytest.mark.parametrize("seed", range(8))
def test_mutated_texts_give_a_model_or_a_format_error(seed: int):
    data = {**DESIGN_DATA, **contents(RandomModel(seed).model)}
    accepted = 0
    for source in mutations(seed, 250):
        try:
            model = parse_model(source, data=data)
        except FormatError:
            continue
        accepted += 1
        printed = print_model(model)
        assert print_model(parse_model(printed, data=contents(model))) == printed
    assert 0 < accepted < 125


HOSTILE = {
    "unterminated strings": '\\"' * 100_000,
    "quotes": '"' * 200_001,
    "parentheses in a size": "%y = negate(%x) : f32[" + "(" * 200_000,
    "brackets": "%y = onnx(%x) {attributes = " + "[" * 200_000,
    "braces": "%y = onnx(%x) {attributes = " + "{a = " * 100_000,
    "graphs": "%y = if(%x) then { " * 50_000,
    "types": "%y = negate(%x) : " + "sequence<" * 100_000,
    "unclosed types": "%y = negate(%x) : f32[B,4]\n" + "%z = negate(%x) : f32[B\n" * 50_000,
    "an operand that never ends": "%y = negate((1 : f32[B,4]\n" * 20_000,
    "minus signs": "%y = negate(%x) : f32[" + "-" * 60_000 + "1]",
    "digits": "%y = negate(%x) : f32[" + "9" * 300_000 + "]",
    "a long name": "%y = " + "a" * 300_000 + "(%x) : f32[]",
    "an exponent": "%y = add(%x, 1e" + "9" * 300_000 + ") : f32[B,4]",
    "many sizes": "%y = negate(%x) : f32[" + ",".join(f"B*{i}" for i in range(20_000)) + "]",
    "a large splat": "%y = reshape(i64[1000000000000] splat 1) {dims = [10, 10]} : i64[10,10]",
    "blanks": " " * 500_000 + "\n" * 500_000 + "\t\x0b\u2003" * 100_000 + "!",
    "comments": "// x\n" * 100_000 + "!",
    "colons": ":" * 500_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_texts_take_bounded_time(kind: str):
    start = time.perf_counter()
    with pytest.raises(FormatError):
        parse_model(in_main(HOSTILE[kind]))
    assert time.perf_counter() - start < 60  # finds a hang or quadratic work, not a speed


def test_time_is_linear_in_the_number_of_nodes():
    def body(b: Builder, x: Value) -> Value:
        for i in range(10_000):
            x = b.at(Location((f"Add_{i}",))).add(x, float(i))
        return x

    model = model_of([("x", tensor(F32, B, 4))], body)
    start = time.perf_counter()
    printed = print_model(model)
    back = parse_model(printed)
    assert equal(model, back)
    assert time.perf_counter() - start < 60  # finds a hang or quadratic work, not a speed
