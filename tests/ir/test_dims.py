"""Symbolic sizes: random expressions against integer arithmetic, then the cases that real models bring."""

import ast
import copy
import inspect
import operator
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from irc.ir import dims
from irc.ir.dims import (
    Assumption,
    DimError,
    Size,
    bounds,
    broadcast,
    ceildiv,
    equal,
    evaluate,
    floordiv,
    less,
    less_equal,
    maximum,
    minimum,
    mod,
    parse,
    product,
    render,
    solve,
    solve_all,
    substitute,
    symbol,
    symbols,
)

A, B, C, H, N, S, W = (symbol(name) for name in "ABCHNSW")
NAMES = "ABC"


class NoValue(Exception):
    """The expression has no value for these symbols."""


def broadcast_ints(*values: int) -> int:
    others = {v for v in values if v != 1}
    if len(others) > 1:
        raise NoValue
    return others.pop() if others else 1


SYMBOLIC: dict[str, Callable[..., Size]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": floordiv, "%": mod, "ceil": ceildiv,
    "max": maximum, "min": minimum, "bcast": broadcast,
}  # fmt: skip
CONCRETE: dict[str, Callable[..., int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "ceil": lambda a, b: -(-a // b), "max": max, "min": min, "bcast": broadcast_ints,
}  # fmt: skip

Tree = Any  # a name, an int, or (operator, tree, tree, ...)

leaves = st.sampled_from(NAMES) | st.integers(-4, 9)


def branches(trees: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    binary = st.tuples(st.sampled_from(["+", "-", "*", "//", "%", "ceil"]), trees, trees)
    constant = st.tuples(st.sampled_from(["*", "//", "%", "ceil"]), trees, st.integers(-4, 6))
    variadic = st.tuples(st.sampled_from(["max", "min"]), trees, trees, trees)
    return binary | constant | constant | variadic | st.tuples(st.sampled_from(["bcast", "max", "min"]), trees, trees)


trees = st.recursive(leaves, branches, max_leaves=9)
bindings = st.fixed_dictionaries({name: st.integers(0, 12) | st.sampled_from([0, 1, 2]) for name in NAMES})
thorough = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


def symbolic(tree: Tree) -> Size:
    """The Size of the tree; trees that are certain to have no value are not interesting."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return symbol(tree)
    try:
        return SYMBOLIC[tree[0]](*(symbolic(t) for t in tree[1:]))
    except DimError:
        assume(False)
        raise


def concrete(tree: Tree, values: dict[str, int]) -> int:
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return values[tree]
    try:
        return CONCRETE[tree[0]](*(concrete(t, values) for t in tree[1:]))
    except ZeroDivisionError:
        raise NoValue from None


def value_or_skip(tree: Tree, values: dict[str, int]) -> int:
    try:
        return concrete(tree, values)
    except NoValue:
        assume(False)
        raise


# Properties


@thorough
@given(trees, bindings)
def test_normal_form_has_the_value_of_the_expression(tree: Tree, values: dict[str, int]) -> None:
    expected = value_or_skip(tree, values)
    size = symbolic(tree)
    assert evaluate(size, values) == expected
    assert substitute(size, dict(values)) == expected
    low, high = bounds(size)
    assert low is None or low <= expected
    assert high is None or expected <= high


@thorough
@given(trees, bindings)
def test_an_error_is_only_raised_for_what_has_no_value(tree: Tree, values: dict[str, int]) -> None:
    def build(t: Tree) -> Size:
        return t if isinstance(t, int) else symbol(t) if isinstance(t, str) else SYMBOLIC[t[0]](*map(build, t[1:]))

    try:
        build(tree)
    except DimError:
        with pytest.raises(NoValue):
            concrete(tree, values)


@thorough
@given(trees)
def test_parse_inverts_str(tree: Tree) -> None:
    size = symbolic(tree)
    again = parse(str(size))
    assert again == size
    assert type(again) is type(size)
    assert str(again) == str(size)
    assert hash(again) == hash(size)


@thorough
@given(trees)
def test_a_dim_is_never_constant_and_substituting_nothing_changes_nothing(tree: Tree) -> None:
    size = symbolic(tree)
    assert isinstance(size, int) == (symbols(size) == ())
    assert substitute(size, {}) is size
    identity = {name: symbol(name) for name in symbols(size)}
    assert substitute(size, identity) == size


@thorough
@given(trees, bindings)
def test_rendered_python_and_text_have_the_same_value(tree: Tree, values: dict[str, int]) -> None:
    expected = value_or_skip(tree, values)
    size = symbolic(tree)
    shape = [values[name] for name in NAMES]
    source = render(size, lambda name: f"shape[{NAMES.index(name)}]")
    assert eval(source, {"shape": shape}) == expected, source
    assert eval(str(size), {**values, "bcast": broadcast_ints}) == expected, str(size)


@thorough
@given(trees, trees, bindings)
def test_comparisons_never_contradict_the_values(left: Tree, right: Tree, values: dict[str, int]) -> None:
    x, y = value_or_skip(left, values), value_or_skip(right, values)
    a, b = symbolic(left), symbolic(right)
    assert equal(a, b) in (None, x == y)
    assert less_equal(a, b) in (None, x <= y)
    assert less(a, b) in (None, x < y)
    assert equal(a, a) is True
    for relation in ("==", "<="):
        assert Assumption(relation, a, b, "n").holds() in (None, CHECK[relation](x, y))
    assert Assumption("bcast", a, b, "n").holds() in (None, x == y or 1 in (x, y))


CHECK: dict[str, Callable[[int, int], bool]] = {"==": operator.eq, "<=": operator.le}


@thorough
@given(trees, bindings, st.sampled_from(NAMES), trees)
def test_substitution_agrees_with_evaluation(tree: Tree, values: dict[str, int], name: str, inner: Tree) -> None:
    inner_value = value_or_skip(inner, values)
    assume(inner_value >= 0)
    expected = value_or_skip(tree, {**values, name: inner_value})
    size = substitute(symbolic(tree), {name: symbolic(inner)})
    assert evaluate(size, values) == expected


@thorough
@given(st.integers(-3, 3), st.integers(-6, 6), st.sampled_from(NAMES), bindings)
def test_solve_finds_the_value_that_was_put_in(k: int, offset: int, known: str, values: dict[str, int]) -> None:
    pattern = k * N + offset + 2 * symbol(known)
    value = k * values["A"] + offset + 2 * values[known]
    found: dict[str, Size] = {known: values[known]}
    assert solve(pattern, value, found) is True
    if k:
        assert found["N"] == values["A"]


@given(st.lists(st.sampled_from([A, B, C, A + B, 2 * C, H // 2, 4]), max_size=5))
def test_ring_laws_hold_structurally(sizes: list[Size]) -> None:
    assert product(sizes) == product(reversed(sizes))
    total: Size = 0
    for size in sizes:
        total = total + size
    assert total * (A + 1) - total == total * A
    if sizes:
        assert maximum(*sizes) == maximum(*reversed(sizes))
        assert minimum(*sizes) == minimum(*reversed(sizes))
        assert broadcast(*sizes) == broadcast(*reversed(sizes))


# Text


@pytest.mark.parametrize(
    "text",
    [
        "B", "2*B*S + H//2 - 1", "max(B, 4)", "bcast(A, B)", "(H + 1)//2", "H % 4", "H//2*2", "B*(H//2)", "-(H//2)",
        "-B + 1", "B*B - 2", "H//B", "(H + 1)//(2*B)", "-3*(H % 5) - 1", "min(A, B, 7)", "max(A//2, B % 3)",
        "1//B", "(-3)//B", "H//2*(W//2)", "-((-A)//B)", "(A//2) % 3", "(A % 4)//2", "3*B*(H//2)", "0", "-7", "max",
        "(2*A + B)//3", "A - H//2*2",
    ],
)  # fmt: skip
def test_canonical_text(text: str) -> None:
    assert str(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (" ( 1+B ) *2 ", "2*B + 2"),
        ("B+A", "A + B"),
        ("4 + max(3, B, 2) + -A*0", "max(B, 3) + 4"),
        ("- - B", "B"),
        ("B - -B", "2*B"),
        ("-H//2", "-((H + 1)//2)"),
        ("-(-H//2)", "(H + 1)//2"),
        ("7//2 - 7 % 4", "0"),
        ("2*H//2", "H"),
        ("bcast(B, bcast(1, A))", "bcast(A, B)"),
    ],
)
def test_text_is_normalized(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: expected a number, a symbol, - or (, found the end"),
        ("B +", "column 4: expected a number"),
        ("B B", "column 3: expected an operator or the end, found B"),
        ("(B", "column 3: expected ), found the end"),
        ("B / 2", "column 3: unexpected '/'"),
        ("B ** 2", "column 4: expected a number"),
        ("2.5*B", "column 2: unexpected '.'"),
        ("B\n", "column 2: unexpected '\\\\n'"),
        ("\u0661", "column 1: unexpected"),
        ("sqrt(B)", "column 1: unknown function sqrt; expected max, min or bcast"),
        ("max()", "column 5: expected a number"),
        ("max(B,)", "column 7: expected a number"),
        ("1 + B//(A - A)", "column 6: division"),
        ("4 % 0", "column 3: division by zero"),
        ("H + bcast(3, 4)", "column 5: sizes 3 and 4 do not broadcast"),
        ("9" * 400, "column 1: number of 400 digits"),
        ("*".join(["9" * 300] * 3), "column 301: coefficient"),
        ("*".join(["9" * 300, "B", "9" * 300]), "column 303: coefficient"),
        ("*".join("B" * 65), "column 128: size expression multiplies more than 64 factors"),
    ],
)  # fmt: skip
def test_parse_errors_name_the_column(text: str, message: str) -> None:
    with pytest.raises(DimError, match="^" + message.replace("(", "\\(").replace(")", "\\)").replace("*", "\\*")):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "B" + ")" * 5000,
        "max(" * 5000 + "B",
        "-" * 60000 + "B)",
        "*".join(f"(A{i} + B{i})" for i in range(60)),
        "*".join(["(A + B + C + D + E + F)"] * 60),
        " + ".join(f"S{i}" for i in range(5000)),
        "max(" + ", ".join(f"S{i}" for i in range(5000)) + ")",
        "B" * 70000,
    ],
)
def test_hostile_text_fails_soon(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(DimError):
        parse(text)
    assert time.perf_counter() - start < 60  # finds a hang or quadratic work, not a speed


def test_the_deepest_size_can_still_be_parsed() -> None:
    size: Size = B
    with pytest.raises(DimError, match="nests more than 48"):  # noqa: PT012
        while True:
            deeper = (C * size + A) // 3
            assert parse(str(deeper)) == deeper
            size = deeper


def test_parsing_evaluates_nothing() -> None:
    with pytest.raises(DimError):
        parse("__import__('os')")
    assert parse("__import__") == symbol("__import__")


# Python protocol


def test_a_dim_refuses_to_be_a_number() -> None:
    for use in (bool, int, operator.index, lambda d: d < 3, lambda d: d >= d, lambda d: 3 > d, lambda d: range(d)):
        with pytest.raises(TypeError, match=r"the symbolic size B \+ 1 .*evaluate"):
            use(B + 1)
    for wrong in (lambda: B + 1.5, lambda: "x" * B, lambda: B // None, lambda: 2.0 - B, lambda: B % "a"):  # type: ignore[operator]
        with pytest.raises(TypeError):
            wrong()


def test_constants_are_ints() -> None:
    for constant, value in ((B - B, 0), (B * 0, 0), (B + 2 - B, 2), (B % 1, 0), ((6 * B + 3) % 3, 0), (0 // B, 0)):
        assert type(constant) is int
        assert constant == value
    assert B != 0
    assert type((B + True) - B) is int
    assert {B + 1: "x"}[1 + B] == "x"


def test_copies_and_pickles_survive_another_process() -> None:
    size = max_of_two = maximum(B + 1, H // 2)
    assert copy.deepcopy(size) == copy.copy(size) == max_of_two
    code = "import pickle,sys; sys.stdout.buffer.write(pickle.dumps(pickle.loads(sys.stdin.buffer.read())))"
    hash(size)
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(size), capture_output=True, check=True)
    assert pickle.loads(done.stdout) == size
    assert hash(pickle.loads(done.stdout)) == hash(size)


@pytest.mark.parametrize("name", ["", "2B", "a b", "a.b", "é", "B\n"])
def test_symbol_names_are_checked(name: str) -> None:
    with pytest.raises(DimError, match="invalid symbol name"):
        symbol(name)


# Simplification


def test_convolution_output_size() -> None:
    out = (H + 2 * 1 - 3) // 2 + 1
    assert str(out) == "(H + 1)//2"
    assert out == ceildiv(H, 2) == -(-H // 2)
    assert (out - 1) // 2 + 1 == ceildiv(H, 4)
    stem: Size = H
    for _ in range(5):
        stem = (stem + 2 * 1 - 3) // 2 + 1
    assert str(stem) == "(H + 31)//32"
    assert evaluate(stem, {"H": 224}) == 7
    assert H + 2 * 1 - 3 + 1 == H


def test_reshape_inference() -> None:
    total = B * 3 * H * W
    assert total // (3 * H * W) == B
    assert floordiv(product([B, S, 768]), product([B, S, 12])) == 64
    assert (A + B) * C * H // (A * H + B * H) == C
    assert total % (3 * H * W) == 0
    assert ((S + 1) * B) // (S + 1) == B
    assert (B * H) // (2 * B) == H // 2
    assert (B * H) % (2 * B) == B * (H % 2)
    assert (B * C + 1) // B == C + 1 // B


@pytest.mark.parametrize(
    ("size", "text"),
    [
        ((4 * B + A) // 2, "2*B + A//2"),
        ((4 * B + 5) // 2, "2*B + 2"),
        ((H // 2) // 3, "H//6"),
        ((H // 2 + 1) // 3, "(H + 2)//6"),
        (H // A // B, "H//(A*B)"),
        ((H // A) // 2, "H//(2*A)"),
        ((2 * H + 1) // 4, "H//2"),
        ((6 * H) // 4, "H + H//2"),
        (H // -2, "-((H + 1)//2)"),
        (H // -A, "(-H)//A"),
        (A // (A + 1), "0"),
        (A % (A + 1), "A"),
        ((2 * H + 1) % 4, "2*(H % 2) + 1"),
        ((H % 6) % 3, "H % 3"),
        ((H % A) % A, "H % A"),
        ((H + A) % A, "H % A"),
        ((5 * H) % 4, "H % 4"),
        (-H % 4, "(3*H) % 4"),
        (H % -4, "-((3*H) % 4)"),
        ((H % 4) // 4, "0"),
        (maximum(B, 0), "B"),
        (maximum(B, B), "B"),
        (maximum(B, B + 1, maximum(3, A)), "max(A, B + 1, 3)"),
        (maximum(-B, 2), "2"),
        (minimum(B, 0), "0"),
        (minimum(A, minimum(B, A + C)), "min(A, B)"),
        (maximum(H % 4, 3), "3"),
        (maximum(H, H // 2 * 2), "H"),
        (minimum(H + 3, H // 4 * 4 + H % 4), "H % 4 + H//4*4"),
    ],
)
def test_simplification(size: Size, text: str) -> None:
    assert str(size) == text


def test_division_by_zero() -> None:
    for function in (floordiv, mod, ceildiv):
        for size in (B, 3):
            with pytest.raises(DimError, match="zero"):
                function(size, 0)
        with pytest.raises(DimError, match="zero"):
            evaluate(function(H + 1, B), {"B": 0, "H": 4})
    with pytest.raises(DimError, match="zero"):
        substitute(H // B, {"B": 0})


def test_broadcast() -> None:
    assert broadcast() == broadcast(1, 1) == 1
    assert broadcast(B, 1, B) == B
    assert broadcast(B, 4, 1) == 4
    assert broadcast(B, 0) == 0
    assert broadcast(B, A + 2) == A + 2
    assert broadcast(B, broadcast(A, C)) == broadcast(broadcast(C, B), A)
    assert str(broadcast(2 + A, 2 * C + 3, B)) == "bcast(2*C + 3, A + 2)"
    assert bounds(broadcast(A, B)) == (0, None)
    assert broadcast(B, minimum(B, 512)) == broadcast(minimum(B, 2), B) == B  # 1 only where B is
    assert str(broadcast(B, minimum(B, 1))) == "bcast(B, min(B, 1))"
    assert str(broadcast(B, minimum(B, A))) == "bcast(B, min(A, B))"
    for sizes in ((3, 4), (0, 2), (3, A + 4), (A + 2, A + 3)):
        with pytest.raises(DimError, match="do not broadcast"):
            broadcast(*sizes)


def test_empty_extrema_are_errors() -> None:
    for function, name in ((maximum, "max"), (minimum, "min")):
        with pytest.raises(DimError, match=f"{name} of no sizes"):
            function()


# Questions


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (5, (5, 5)),
        (B, (0, None)),
        (B + 3, (3, None)),
        (-2 * B + 3, (None, 3)),
        (A - B, (None, None)),
        (A * B + 1, (1, None)),
        (H % 4, (0, 3)),
        (H % -4, (-3, 0)),
        (H % 4 * 2 - H % 3, (-2, 6)),
        ((H % 9) // 2, (0, 4)),
        (H - H // 2 * 2, (0, 1)),
        (H - H // 2, (0, None)),
        (1 // B, (0, 1)),
        (minimum(B, 4), (0, 4)),
        (maximum(B, 4), (4, None)),
        (maximum(A, B) - B, (0, None)),
        (minimum(A, B) - B, (None, 0)),
        (H % A, (0, None)),
        (10 % (A + 1), (0, 10)),
        (3 // (2 - A), (-3, 3)),
    ],
)
def test_bounds(size: Size, expected: tuple[int | None, int | None]) -> None:
    assert bounds(size) == expected


def test_bounds_of_huge_numbers_are_exact() -> None:
    assert bounds(10**150 * (B + 10**150)) == (10**300, None)
    assert bounds((10**300 * (H % 2)) % (A + 10**300 * 2)) == (0, 10**300)


def test_equal_sees_more_than_the_normal_form() -> None:
    assert equal(H // 4 * 4 + H % 4, H) is True
    assert equal((A - B) // 2, -((B - A + 1) // 2)) is True
    assert equal(H // 2 + (H + 1) // 2, H) is True
    assert equal(2 * A, 2 * B + 1) is False
    assert equal(A + 1, 0) is False
    assert equal(A, A + 1) is False
    assert equal(A, B) is None
    assert equal(3, 3) is True
    assert equal(3, 4) is False
    assert less_equal(H // 2 * 2, H) is True
    assert less_equal(ceildiv(H, 2) * 2, H + 1) is True
    assert less_equal(B, maximum(A, B)) is True
    assert less_equal(minimum(A, B), A + B) is True
    assert less_equal(A + 1, A) is False
    assert less_equal(A, B) is None
    assert less(H % 4, 4) is True
    assert less(A, A) is False


def test_normal_form_does_not_depend_on_earlier_questions() -> None:
    sizes = [maximum(H // 2 * 2, H - W // 3), H // 2 * 2 - minimum(A, H // 3, W)]
    texts = [str(size) for size in sizes]
    for size in sizes:
        bounds(size)
        equal(size, W)
    assert [str(parse(text)) for text in texts] == texts


def test_symbols_are_sorted_and_unique() -> None:
    assert symbols(maximum(W, B * (H // C)) - B) == ("B", "C", "H", "W")
    assert symbols(3) == ()


def test_substitution_is_simultaneous() -> None:
    assert substitute(A + 2 * B, {"A": B, "B": A}) == 2 * A + B
    assert substitute(B * (H // 2), {"H": 2 * N, "B": 3}) == 3 * N
    with pytest.raises(DimError, match="3 and 4 do not broadcast"):
        substitute(broadcast(A, B), {"A": 3, "B": 4})


def test_evaluate_errors_name_the_cause() -> None:
    with pytest.raises(DimError, match="no value for the symbol H; given: A, B"):
        evaluate(B + H // 2, {"B": 2, "A": 1})
    with pytest.raises(DimError, match="symbol B has the value -1"):
        evaluate(B, {"B": -1})
    with pytest.raises(DimError, match=r"sizes 3 and 4 do not broadcast.*\(in bcast\(A, B\)\)"):
        evaluate(2 * broadcast(A, B), {"A": 3, "B": 4})
    assert evaluate(broadcast(A, B), {"A": 0, "B": 1}) == 0


@pytest.mark.parametrize(
    ("pattern", "value", "before", "answer", "after"),
    [
        (B, 6, {}, True, {"B": 6}),
        (B, N + 1, {}, True, {"B": N + 1}),
        (B, 6, {"B": 6}, True, {"B": 6}),
        (B, 7, {"B": 6}, False, {"B": 6}),
        (B, N, {"B": S}, None, {"B": S}),
        (B, -1, {}, False, {}),
        (2 * B, 6, {}, True, {"B": 3}),
        (2 * B, 7, {}, False, {}),
        (2 * N + 1, 7, {}, True, {"N": 3}),
        (2 * N + 1, 2 * S + 5, {}, True, {"N": S + 2}),
        (2 * N + 1, 2 * S + 4, {}, False, {}),
        (2 * N, S, {}, None, {}),
        (-2 * N + 8, 2, {}, True, {"N": 3}),
        (-2 * N + 8, 10, {}, False, {}),
        (N + 3, 2, {}, False, {}),
        (N + H // 2, 9, {"H": 8}, True, {"N": 5, "H": 8}),
        (N + B, N + S, {"B": N}, True, {"N": S, "B": N}),
        (B * N, 12, {"B": 3}, None, {"B": 3}),
        (N + N // 2, 12, {}, None, {}),
        (A + B, 12, {}, None, {}),
        (A + B + 3, 2, {}, False, {}),
        (H % 4, 5, {}, False, {}),
        (4, 4, {}, True, {}),
        (4, 5, {}, False, {}),
        (4, N, {}, None, {}),
    ],
)
def test_solve(
    pattern: Size, value: Size, before: dict[str, Size], answer: bool | None, after: dict[str, Size]
) -> None:
    found = dict(before)
    assert solve(pattern, value, found) is answer
    assert found == after


def test_solve_all_waits_for_symbols_that_come_later() -> None:
    found: dict[str, Size] = {}
    assert solve_all([(A + B, 3), (2 * A, 2), (B, 2)], found) == (None, ())
    assert found == {"A": 1, "B": 2}
    assert solve_all([(A + B, 7), (A, 1), (B, 2)], {}) == (0, ())
    assert solve_all([(B, 2), (B, 3)], {}) == (1, ())
    assert solve_all([(A, 1), (B * C, 6)], {}) == (None, (1,)), "B and C do not follow"


def test_render() -> None:
    spell = {"A": "x.shape[0]", "B": "y.shape[0]", "H": "h", "C": "c"}.__getitem__
    assert render(2 * A + 1, spell) == "2*x.shape[0] + 1"
    assert render(7, spell) == "7"
    assert render((H + 1) // 2 * C, spell) == "c*((h + 1)//2)"
    assert render(maximum(H, 4) - H % 3, spell) == "-(h % 3) + max(h, 4)"
    assert render(broadcast(A, B), spell) == "(y.shape[0] if x.shape[0] == 1 else x.shape[0])"
    assert render(broadcast(A, C, H), spell) == "((h if c == 1 else c) if x.shape[0] == 1 else x.shape[0])"


def test_assumptions() -> None:
    exact = Assumption("==", H // 2 * 2, H, "concat_3")
    assert str(exact) == "H//2*2 == H"
    assert exact.holds() is None
    assert exact.symbols() == ("H",)
    assert exact.substitute({"H": 8}).holds() is True
    assert exact.substitute({"H": 7}).holds() is False
    assert exact.substitute({"H": 2 * N}) == Assumption("==", 2 * N, 2 * N, "concat_3")
    assert str(Assumption("<=", A, B + 1, "n")) == "A <= B + 1"
    assert Assumption("<=", A, A + 1, "n").holds() is True
    both = Assumption("bcast", A, B, "add_1")
    assert str(both) == "bcast(A, B)"
    assert both.symbols() == ("A", "B")
    assert both.holds() is None
    assert both.substitute({"A": 1}).holds() is True
    assert both.substitute({"A": 5, "B": N + 6}).holds() is False
    assert both.substitute({"A": 5}).holds() is None
    assert both.substitute({"A": 5, "B": 5}).holds() is True
    assert len({exact, both, exact}) == 2


def test_a_hundred_thousand_sizes_take_linear_time() -> None:
    start = time.perf_counter()
    made = set[Size]()
    for i in range(20_000):
        made.update((B * S * i, B + i, (H + i) // 2, symbol("B"), product([B, i + 1, S])))
    assert len(made) > 50_000
    assert time.perf_counter() - start < 60  # finds a hang or quadratic work, not a speed


def test_the_package_depends_on_the_standard_library_only() -> None:
    files = list(Path(inspect.getfile(dims)).parent.glob("*.py"))
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    modules |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    assert {str(name).split(".")[0] for name in modules} <= sys.stdlib_module_names
    assert len(files) > 1
    assert not any(isinstance(node, ast.ImportFrom) and node.level > 1 for node in nodes)
    assert issubclass(dims.DimError, ValueError)


@pytest.mark.parametrize(
    "module", ["comparison", "division", "extrema", "parsing", "polynomial", "solving", "spelling"]
)
def test_any_module_of_the_package_may_be_imported_first(module: str) -> None:
    code = f"from irc.ir.dims import {module}; from irc.ir.dims import parse; assert str(parse('H//2 + max(A, B)'))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
