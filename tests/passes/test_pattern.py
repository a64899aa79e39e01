"""The pattern language: what matches, what is captured, refusals with reasons, errors where a fusion is defined."""

from __future__ import annotations

from typing import Any

import pytest

from irc.ir import dims, dtypes
from irc.ir.errors import IrcError
from irc.ir.graph import Node
from irc.ir.rewrite import Rewriter
from irc.passes.pattern import all_fusions, apply_fusions, define, fusion
from irc.testing.patterns import model_of, random_inputs, try_fusions

B = dims.symbol("B")


def scaled_sum(scalar: Any = "scale") -> type:
    """tanh(x * scale + y) -> tanh(x - y): wrong, so that a test sees whether it fired."""

    class Toy:
        """tanh(x * scale + y)   ->   tanh(x - y)"""

        def pattern(self, p: Any, x: Any, y: Any) -> Any:
            return p.tanh(p.add(p.multiply(x, p.scalar(scalar)), y))

        def rewrite(self, m: Any) -> Any:
            return m.build.tanh(m.build.subtract(m.x, m.y))

    return Toy


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("swap", [False, True])
def test_commutative_operands_match_in_both_orders(flip: bool, swap: bool) -> None:
    def body(b: Any, x: Any, y: Any) -> Any:
        product = b.multiply(b.constant(3.0), x) if flip else b.multiply(x, 3.0)
        return b.tanh(b.add(y, product) if swap else b.add(product, y))

    assert try_fusions(model_of(body, x="f32[B,4]", y="f32[4]"), scaled_sum()).operators == ["subtract", "tanh"]


def test_an_operator_that_does_not_commute_matches_in_its_order_only() -> None:
    class Toy:
        """x - tanh(y)   ->   x"""

        def pattern(self, p: Any, x: Any, y: Any) -> Any:
            return p.subtract(x, p.tanh(y))

        def rewrite(self, m: Any) -> Any:
            return m.x

    model = model_of(lambda b, x: b.subtract(b.tanh(x), x), x="f32[4]")
    assert try_fusions(model, Toy).fired == {}


@pytest.mark.parametrize(("constant", "fires"), [(3.0, True), (3.002, True), (3.004, False), (-3.0, False)])
def test_scalars_match_to_a_thousandth(constant: float, fires: bool) -> None:
    model = model_of(lambda b, x: b.tanh(b.add(b.multiply(x, constant), x)), x="f32[4]")
    assert bool(try_fusions(model, scaled_sum(3.0)).fired) is fires


def test_the_same_operand_twice_must_be_one_value() -> None:
    class Toy:
        """x * tanh(x)   ->   x"""

        def pattern(self, p: Any, x: Any) -> Any:
            return p.multiply(x, p.tanh(x))

        def rewrite(self, m: Any) -> Any:
            return m.x

    assert try_fusions(model_of(lambda b, x, y: b.multiply(x, b.tanh(y)), x="f32[4]", y="f32[4]"), Toy).fired == {}
    assert try_fusions(model_of(lambda b, x: b.multiply(b.tanh(x), x), x="f32[4]"), Toy).fired == {"Toy": 1}


def optional_scale() -> tuple[type, list[float]]:
    seen: list[float] = []

    class Toy:
        """tanh(x [* scale])   ->   x"""

        def pattern(self, p: Any, x: Any) -> Any:
            return p.tanh(p.optional.multiply(p.erf(x), p.scalar("scale"), default=1.0))

        def rewrite(self, m: Any) -> Any:
            seen.append(m.scale)
            return m.x

    return Toy, seen


@pytest.mark.parametrize(("scale", "captured"), [(None, 1.0), (0.25, 0.25)])
def test_optional_nodes_have_a_default(scale: float | None, captured: float) -> None:
    toy, seen = optional_scale()

    def body(b: Any, x: Any) -> Any:
        return b.tanh(b.erf(x) if scale is None else b.multiply(b.erf(x), scale))

    assert try_fusions(model_of(body, x="f32[4]"), toy).fired == {"Toy": 1}
    assert seen == [captured]


def test_attributes_are_compared_from_the_front_and_captured() -> None:
    class Toy:
        """Softmax(ReduceMean(x))   ->   x"""

        def pattern(self, p: Any, x: Any) -> Any:
            return p.Softmax(p.ReduceMean(x, axes=p.attribute("axes")), axis=-1)

        def check(self, m: Any) -> None:
            m.need(m.axes == (1,), f"axes are {m.axes}")

        def rewrite(self, m: Any) -> Any:
            return m.build.ReduceMean(m.x, axes=m.axes)

    def body(axis: int, axes: tuple[int, ...]) -> Any:
        return lambda b, x: b.Softmax(b.ReduceMean(x, axes=axes), axis=axis)

    assert try_fusions(model_of(body(1, (-1,)), x="f32[3,4]"), Toy).fired == {"Toy": 1}
    assert try_fusions(model_of(body(0, (1,)), x="f32[3,4]"), Toy).fired == {}
    assert try_fusions(model_of(body(1, (0,)), x="f32[3,4]"), Toy).fired == {}


def test_several_results_are_replaced_together() -> None:
    class SineAndCosine:
        """tanh(x), erf(x)   ->   sine(x), cosine(x)"""

        def pattern(self, p: Any, x: Any) -> Any:
            return p.tanh(x), p.erf(x)

        def rewrite(self, m: Any) -> Any:
            return m.build.sine(m.x), m.build.cosine(m.x)

    both = try_fusions(model_of(lambda b, x: (b.erf(x), b.tanh(x)), x="f32[4]"), SineAndCosine)
    assert sorted(both.operators) == ["cosine", "sine"]
    one = try_fusions(model_of(lambda b, x: b.tanh(x), x="f32[4]"), SineAndCosine)
    assert one.operators == ["tanh"]


class Drops:
    """tanh(erf(x))   ->   x"""

    def pattern(self, p: Any, x: Any) -> Any:
        return p.tanh(p.erf(x))

    def rewrite(self, m: Any) -> Any:
        return m.x


def test_other_users_keep_their_value() -> None:
    def body(b: Any, x: Any) -> Any:
        inner = b.erf(x)
        return b.tanh(inner), inner

    outcome = try_fusions(model_of(body, x="f32[4]"), Drops)
    assert outcome.operators == ["erf"]
    assert outcome.after.main.outputs[0] is outcome.after.main.inputs[0]


def test_a_match_does_not_move_work_into_a_loop() -> None:
    def body(b: Any, x: Any) -> Any:
        outside = b.erf(x)
        state = dtypes.DType.of("bool")

        def cond(c: Any, running: Any, value: Any) -> Any:
            return running

        def step(c: Any, running: Any, value: Any) -> Any:
            return c.constant(False), c.add(c.tanh(outside), value)

        types = [type(x.type)(state, ()), x.type]
        return b.while_((b.constant(True), x), cond=b.region(types, cond), body=b.region(types, step))[1]

    model = model_of(body, x="f32[4]")  # as it is: canonical form has no such work inside
    assert apply_fusions(model, Rewriter(model, "fuse"), [define(Drops, "drops")]).fired == []


def test_a_match_reaches_out_of_a_branch() -> None:
    def body(b: Any, x: Any, p: Any) -> Any:
        outside = b.erf(x)
        return b.if_(p, then=b.region([], lambda c: c.tanh(outside)), else_=b.region([], lambda c: outside))

    outcome = try_fusions(model_of(body, x="f32[4]", p="bool[]"), Drops)
    assert outcome.fired == {"Drops": 1}


def test_dims_unify_and_say_what_differs() -> None:
    class Toy:
        """tanh(add(x, y))   ->   x"""

        def pattern(self, p: Any, x: Any, y: Any) -> Any:
            return p.tanh(p.add(x, p.erf(y)))

        def check(self, m: Any) -> None:
            m.dims(m.x, "b 4")
            m.dims(m.y, "b _")

        def rewrite(self, m: Any) -> Any:
            return m.x

    def body(b: Any, x: Any, y: Any) -> Any:
        return b.tanh(b.add(x, b.erf(y)))

    assert try_fusions(model_of(body, x="f32[B,4]", y="f32[B,4]"), Toy).fired == {"Toy": 1}
    missed = try_fusions(model_of(body, x="f32[B,4]", y="f32[1,4]"), Toy)
    assert missed.fired == {}
    assert missed.reasons == ["expected b = B, got 1 (%y: f32[1,4])"]


def test_a_result_of_another_type_is_refused_and_leaves_nothing_behind() -> None:
    class Toy:
        """tanh(erf(exponential(x)))   ->   something narrower"""

        def pattern(self, p: Any, x: Any) -> Any:
            return p.tanh(p.erf(p.exponential(x)))

        def rewrite(self, m: Any) -> Any:
            return m.build.ReduceMean(m.x, axes=(0,))

    outcome = try_fusions(model_of(lambda b, x: b.tanh(b.erf(b.exponential(x))), x="f32[4]"), Toy)
    assert outcome.operators == ["exponential", "erf", "tanh"]
    assert outcome.reasons == ["the result would be f32[1] instead of f32[4]"]


def test_a_rewrite_that_needs_an_unproved_relation_is_refused() -> None:
    class Assumes:
        """tanh(erf(exponential(x)))   ->   a dot product that assumes B == C"""

        def pattern(self, p: Any, x: Any, y: Any) -> Any:
            return p.tanh(p.multiply(p.ReduceSum(x, axes=(0,)), p.ReduceSum(y, axes=(0,))))

        def rewrite(self, m: Any) -> Any:
            total = m.build.dot_general(m.x, m.y, lhs_contracting=(0,), rhs_contracting=(0,))
            return m.build.reshape(total, dims=(1,))

    def body(b: Any, x: Any, y: Any) -> Any:
        return b.tanh(b.multiply(b.ReduceSum(x, axes=(0,)), b.ReduceSum(y, axes=(0,))))

    outcome = try_fusions(model_of(body, x="f32[B]", y="f32[C]"), Assumes)
    assert outcome.fired == {}
    assert "B == C" in outcome.reasons[0]
    assert try_fusions(model_of(body, x="f32[B]", y="f32[B]"), Assumes).fired == {"Assumes": 1}


@pytest.mark.parametrize(
    "spell",
    [
        lambda b, x, y: b.multiply(b.multiply(x, b.tanh(y)), 0.5),
        lambda b, x, y: b.multiply(b.multiply(b.tanh(y), 0.5), x),
        lambda b, x, y: b.divide(b.multiply(x, b.tanh(y)), 2.0),
        lambda b, x, y: b.multiply(b.divide(x, -2.0), b.negate(b.tanh(y))),
        lambda b, x, y: b.multiply(b.multiply(b.multiply(x, 0.25), 2.0), b.tanh(y)),
    ],
)
def test_products_match_in_any_order_and_association(spell: Any) -> None:
    class Half:
        """0.5 * x * tanh(y)   ->   x"""

        def pattern(self, p: Any, x: Any, y: Any) -> Any:
            return p.product(x, p.tanh(y), scalar=0.5)

        def rewrite(self, m: Any) -> Any:
            return m.x

    assert try_fusions(model_of(spell, x="f32[4]", y="f32[4]"), Half).fired == {"Half": 1}


def test_a_near_miss_names_the_deepest_node_and_the_reason() -> None:
    def body(b: Any, x: Any) -> Any:
        centred = b.subtract(x, b.ReduceMean(x, axes=(1,)))
        variance = b.ReduceMean(b.multiply(centred, centred), axes=(0,))
        return b.multiply(centred, b.rsqrt(b.add(variance, 1e-5)))

    outcome = try_fusions(model_of(body, x="f32[4,8]"), "layer-norm")
    (miss,) = outcome.report.misses
    assert miss.fusion == "layer-norm"
    assert miss.matched >= 6
    assert "mean along (1,), variance along (0,)" in miss.why


def test_sources_are_merged_and_the_rewrite_is_named() -> None:
    model = model_of(lambda b, x: b.tanh(b.erf(x)), x="f32[4]")

    class Toy(Drops):
        """tanh(erf(x))   ->   sine(x)"""

        def rewrite(self, m: Any) -> Any:
            return m.build.sine(m.x)

    from irc.ir.graph import Location

    for node, name in zip(model.main.body.nodes, ("inner", "outer"), strict=True):
        node.location = Location((name,))
    (node,) = try_fusions(model, Toy).after.main.body.nodes
    assert isinstance(node, Node)
    assert node.location == Location(("outer", "inner"), "fuse/Toy")


def test_names_and_results_stay() -> None:
    model = model_of(lambda b, x: b.multiply(b.multiply(x, 0.5), b.add(b.erf(b.multiply(x, 0.70710678)), 1.0)),
                     x="f32[B,8]")  # fmt: skip
    outcome = try_fusions(model, "gelu")
    assert outcome.operators == ["Gelu"]
    assert outcome.largest_difference(random_inputs(model, {"B": 5})) < 1e-6


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (lambda self, p, x: p.thanh(x), "no operator is called 'thanh'"),
        (lambda self, p, x: p.Softmax(x, axes=1), "Softmax has no attribute 'axes'"),
        (lambda self, p, x: p.add(x), "add needs at least 2 operands"),
        (lambda self, p, x: x, "could start at any value"),
        (lambda self, p, x: p.any_of(), "at least one alternative"),
        (lambda self, p, x: p.add(x, "one"), "a term or a number, got 'one'"),
        (lambda self, p, x: 3, "a pattern returns terms, got 3"),
    ],
)
def test_a_pattern_that_cannot_match_is_an_error_where_it_is_defined(pattern: Any, message: str) -> None:
    toy = type("Toy", (), {"__doc__": "x -> y", "pattern": pattern, "rewrite": lambda self, m: m.x})
    with pytest.raises(IrcError, match=message):
        define(toy, "toy")


def test_an_operand_that_stands_nowhere_is_an_error() -> None:
    toy = type("Toy", (), {"__doc__": "x -> y", "rewrite": lambda self, m: m.x})
    toy.pattern = lambda self, p, x, y: p.tanh(x)  # type: ignore[attr-defined]  # made here
    with pytest.raises(IrcError, match="the operand 'y' of the pattern stands nowhere in it"):
        define(toy, "toy")


def test_a_fusion_needs_a_docstring_a_rewrite_and_a_free_name() -> None:
    with pytest.raises(IrcError, match="needs a docstring that shows before -> after"):
        define(type("Toy", (), {"pattern": lambda self, p, x: p.tanh(x)}), "toy")
    with pytest.raises(IrcError, match="needs a method rewrite"):
        define(type("Toy", (), {"__doc__": "x -> y", "pattern": lambda self, p, x: p.tanh(x)}), "toy")
    with pytest.raises(IrcError, match="two fusions are called 'gelu'"):
        fusion("gelu")(Drops)


def test_fusions_run_behind_those_they_name() -> None:
    names = [f.name for f in all_fusions()]
    assert names.index("softmax") < names.index("attention")
    assert names.index("rotary") < names.index("attention")
    assert names.index("softplus") < names.index("mish")


def test_time_is_linear_in_a_long_chain_of_near_products() -> None:
    """A tower of multiplications is where a careless matcher takes exponential time."""

    def body(b: Any, x: Any) -> Any:
        for _ in range(200):
            x = b.multiply(x, x)
        return x

    outcome = try_fusions(model_of(body, x="f32[4]"), "gelu", "gelu-tanh", "swish", "rms-norm", "layer-norm", "rotary")
    assert outcome.fired == {}
