"""Random graphs keep the bits of their results under every pass, stay valid, and come out the same each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irc.ir import dims, dtypes
from irc.ir.build import function
from irc.ir.data import ArrayData
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.ir.text import print_model
from irc.ir.types import TensorType
from irc.ir.verify import check
from irc.passes import DEFAULT, run_passes
from irc.passes.specialize import specialize

B = dims.symbol("B")
TYPES = {
    "f": TensorType(dtypes.f32, (B, 6)),
    "i": TensorType(dtypes.i32, (B, 6)),
    "p": TensorType(dtypes.bool_, (B, 6)),
}


class Grower:
    """Adds random nodes; every value is one of three types, [B, 6] each."""

    def __init__(self, rng: np.random.Generator, build: Any, pool: dict[str, list[Any]], depth: int = 0) -> None:
        self.rng, self.b, self.depth = rng, build, depth
        self.pool = {k: list(v) for k, v in pool.items()}

    def pick(self, kind: str) -> Any:
        return self.pool[kind][self.rng.integers(len(self.pool[kind]))]

    def number(self, kind: str) -> Any:
        """A constant: one number, a row, or all elements; -0.0, 0.0 and 1.0 are likely."""
        shape = [(), (6,), (1, 6)][self.rng.integers(3)]
        choices = [0.0, -0.0, 1.0, 2.0, -1.5] if kind == "f" else [0, 1, 2, -1, 7]
        array = np.array(self.rng.choice(choices, shape if self.rng.random() < 0.5 else ()))
        return self.b.constant(np.broadcast_to(array, shape).copy(), TYPES[kind].dtype)

    def grow(self, steps: int) -> Grower:
        for _ in range(steps):
            kind = ["f", "f", "f", "i", "i", "p"][self.rng.integers(6)]
            choices = [*self.rules(kind), *(self.control() if self.depth < 2 else [])]
            made = choices[self.rng.integers(len(choices))](kind)
            self.pool[kind].append(made)
        return self

    def rules(self, kind: str) -> list[Any]:
        b, f, i, p = self.b, self.pick("f"), self.pick("i"), self.pick("p")
        x, y = self.pick(kind), self.pick(kind)
        moved = [
            lambda k: b.reshape(b.reshape(x, dims=(6 * B,)), dims=(B, 6)),
            lambda k: b.transpose(b.transpose(x, permutation=(1, 0)), permutation=(1, 0)),
            lambda k: b.reverse(b.reverse(x, axes=(1,)), axes=(0, 1)),
            lambda k: b.slice(
                b.slice(b.concatenate((x, y), axis=1), starts=(0, 1), limits=(B, 12), strides=(1, 1)),
                starts=(0, 2),
                limits=(B, 8),
                strides=(1, 1),
            ),
            lambda k: b.broadcast_in_dim(
                b.slice(x, starts=(0, 2), limits=(B, 3), strides=(1, 1)), dims=(B, 6), broadcast_dimensions=(0, 1)
            ),
            lambda k: b.select(p, x, y),
            lambda k: b.concatenate(
                (
                    b.slice(x, starts=(0, 0), limits=(B, 2), strides=(1, 1)),
                    b.slice(y, starts=(0, 2), limits=(B, 6), strides=(1, 1)),
                ),
                axis=1,
            ),
        ]
        own = {
            "f": [
                lambda k: b.add(x, y),
                lambda k: b.multiply(self.number(k), x),
                lambda k: b.subtract(x, self.number(k)),
                lambda k: b.add(x, self.number(k)),
                lambda k: b.divide(x, self.number(k)),
                lambda k: b.negate(x),
                lambda k: b.tanh(x),
                lambda k: b.power(x, 2.0),
                lambda k: b.abs(b.negate(x)),
                lambda k: b.sqrt(b.abs(x)),
                lambda k: b.convert(b.convert(x, dtype=dtypes.f64), dtype=dtypes.f32),
                lambda k: b.convert(i, dtype=dtypes.f32),
                lambda k: b.add(x, b.exponential(b.full(self.rng.choice([0.5, 1.0]), dtypes.f32, (B, 6)))),
                lambda k: b.multiply(x, b.Sum((self.number(k), self.number(k)))),
                lambda k: b.Sum((x,)),
                lambda k: b.multiply(x, b.exponential(self.number(k))),
                lambda k: b.Softmax(x),
            ],
            "i": [
                lambda k: b.add(x, y),
                lambda k: b.multiply(x, self.number(k)),
                lambda k: b.and_(x, self.number(k)),
                lambda k: b.or_(self.number(k), x),
                lambda k: b.divide(x, self.number(k)),
                lambda k: b.not_(x),
                lambda k: b.convert(b.convert(x, dtype=dtypes.i64), dtype=dtypes.i32),
                lambda k: b.convert(p, dtype=dtypes.i32),
                lambda k: b.add(
                    x, b.convert(b.take(b.dimensions(dims=(B, 6)), b.constant(0, dtypes.i64)), dtype=dtypes.i32)
                ),
                lambda k: b.convert(b.convert(x, dtype=dtypes.f64), dtype=dtypes.i32),
                lambda k: b.Max((x, y)),
            ],
            "p": [
                lambda k: b.compare(f, self.number("f"), direction="lt"),
                lambda k: b.compare(i, x_i(b, i), direction="ge"),
                lambda k: b.not_(x),
                lambda k: b.and_(x, y),
                lambda k: b.convert(i, dtype=dtypes.bool_),
            ],
        }[kind]
        return moved + own * 2

    def inside(self, build: Any, extra: dict[str, list[Any]] | None = None) -> Grower:
        pool = {k: v + (extra or {}).get(k, []) for k, v in self.pool.items()}
        return Grower(self.rng, build, pool, self.depth + 1)

    def control(self) -> list[Any]:
        def choose(kind: str) -> Any:
            known = self.rng.random() < 0.4
            predicate = self.b.constant(bool(self.rng.random() < 0.5)) if known else self.b.reduce(
                (self.pick("p"),), axes=(0, 1), kind="or")  # fmt: skip
            graphs = [self.b.region([], lambda i: self.inside(i).grow(4).pool[kind][-1]) for _ in range(2)]
            return self.b.if_(predicate, then=graphs[0], else_=graphs[1])

        def loop(kind: str) -> Any:
            count, inits = self.b.constant(0, dtypes.i32), [self.pick(kind), self.pick("f")]
            state = [count.type, *(v.type for v in inits)]

            def step(i: Any, n: Any, x: Any, y: Any) -> Any:
                grown = self.inside(i, {"f": [y], kind: [x]} if kind != "f" else {"f": [x, y]}).grow(4)
                return i.add(n, 1), grown.pool[kind][-1], y if self.rng.random() < 0.5 else grown.pool["f"][-1]

            cond = self.b.region(state, lambda i, n, *s: i.compare(n, 2, direction="lt"))
            return self.b.while_((count, *inits), cond=cond, body=self.b.region(state, step))[1]

        return [choose, loop]


def x_i(b: Any, i: Any) -> Any:
    return b.reverse(i, axes=(0,))


def random_model(seed: int, steps: int = 40) -> Model:
    rng = np.random.default_rng(seed)
    model = Model("random")

    def body(b: Any, f: Any, g: Any, i: Any, p: Any) -> Any:
        w = b.constant(ArrayData(rng.standard_normal((1, 6, 20)).astype("f4")), name="w")
        folded = b.reshape(b.slice(b.negate(w), starts=(0, 0, 3), limits=(1, 6, 4), strides=(1, 1, 1)), dims=(6,))
        pool = {"f": [f, g, b.multiply(f, folded), b.add(g, b.tanh(folded))], "i": [i], "p": [p]}
        grown = Grower(rng, b, pool).grow(steps)
        return [grown.pool[k][-1 - n] for k, count in (("f", 3), ("i", 1), ("p", 1)) for n in range(count)]

    function(model, "main", [("f", TYPES["f"]), ("g", TYPES["f"]), ("i", TYPES["i"]), ("p", TYPES["p"])], body)
    check(model)
    return model


def inputs(seed: int, size: int = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    f, g = rng.standard_normal((2, size, 6)).astype("f4")
    f[0, :3] = 0.0, -0.0, np.inf
    return [f, g, rng.integers(-9, 9, (size, 6)).astype("i4"), rng.random((size, 6)) < 0.5]


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bits; NaN is NaN, whatever its payload (which operand's survives is nobody's promise)."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    nan = np.isnan(a) if a.dtype.kind == "f" else np.zeros(a.shape, bool)
    other = np.isnan(b) if b.dtype.kind == "f" else np.zeros(b.shape, bool)
    return np.array_equal(nan, other) and a[~nan].tobytes() == b[~other].tobytes()


PIPELINES = [
    "canonicalize", "fold", "fold{hoist=false}", "cse", "cse{across-graphs=false}", "dce", 'specialize{dims="B=3"}',
    "lower-loops", "lower-loops{unroll=0}", "cond-to-if{min-cost=10}", "sink-transposes",
    "fixpoint(max=3){canonicalize,fold,cse,dce}", DEFAULT, 'specialize{dims="B=3"},' + DEFAULT,
    "outline{min-nodes=2}",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_passes_keep_the_bits(seed: int):
    model = random_model(seed)
    arguments = inputs(seed)
    expected = evaluate(model, arguments)
    for pipeline in PIPELINES:
        out = run_passes(model, pipeline, verify_each=True)
        results = evaluate(out, arguments)
        assert all(map(same, expected, results)), f"seed {seed}, {pipeline}"


@pytest.mark.parametrize("seed", range(3))
def test_passes_are_deterministic(seed: int):
    first, second = (print_model(run_passes(random_model(seed), DEFAULT)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("seed", range(3))
def test_the_default_pipeline_settles(seed: int):
    once = run_passes(random_model(seed), DEFAULT)
    assert print_model(run_passes(once, DEFAULT)) == print_model(once)


@pytest.mark.parametrize("size", [0, 1, 4])
def test_specializing_keeps_the_bits_at_other_sizes(size: int):
    model = random_model(5)
    rng_inputs = inputs(5, max(size, 1))
    arguments = [a[:size] for a in rng_inputs]
    out = specialize(model, None, [TensorType(v.dtype, (size, 6)) for v in model.main.inputs])
    check(out)
    assert all(map(same, evaluate(model, arguments), evaluate(out, arguments)))


def test_growing_uses_every_kind_of_node():
    names = {n.op.name for seed in range(12) for n in random_model(seed).nodes()}
    assert {"if", "while", "reshape", "dimensions", "broadcast_in_dim", "Softmax", "power"} <= names
