"""Random typed graphs of 1 to 12 nodes, made from the operator definitions: their operands, attributes and `infer`.

No operator is named here but those that are left out, each with its reason.  A node is drawn in one of two ways: from
the definition alone (operands from what is there or new inputs, attributes of the declared kinds), or by changing a
node of the corpus (element types, sizes, attributes).  `infer` judges it, and what it refuses is drawn again.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from irc.ir import dims as dimensions
from irc.ir import dtypes
from irc.ir.build import Builder
from irc.ir.clone import clone_model
from irc.ir.dtypes import DType
from irc.ir.errors import IrcError
from irc.ir.model import Function, Model, Node
from irc.ir.operators import Operator, Trait, all_operators
from irc.ir.rewrite import Rewriter
from irc.ir.types import TensorType


def load(name: str) -> Any:
    """The file `name`.py of this folder as a module."""
    if (known := sys.modules.get(f"fuzz_{name}")) is not None:
        return known
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


change, corpus = load("change"), load("corpus")
DTYPES = [
    dtypes.DType.of(n)
    for n in (
        "f32 f32 f32 f32 f16 f16 bf16 bf16 f64 f64 i8 u8 i16 i32 i32 i64 i64 u16 u32 u64 bool bool "
        "c64 f8e4m3fn f8e5m2 i4 u4"
    ).split()
]
LEFT_OUT = {
    "custom_call": "is what a caller makes of it",
    "ImageDecoder": "needs files",
    "optimization_barrier": "does nothing that could differ",
    "RandomBits": "draws are compared in tests/ops/test_random.py",
    "RandomNormal": "draws are compared in tests/ops/test_random.py",
    "RandomUniform": "draws are compared in tests/ops/test_random.py",
    "Bernoulli": "draws are compared in tests/ops/test_random.py",
    "Multinomial": "draws are compared in tests/ops/test_random.py",
    "Dropout": "draws are compared in tests/ops/test_random.py",
    "Det": "orders of elimination differ where elements are NaN or infinite",
    "Inverse": "orders of elimination differ where elements are NaN or infinite",
    "cholesky": "what a matrix that is not positive definite gives is left open",
    "Attention": "mx.fast passes over keys without weight, whose infinite values the reference multiplies by 0",
    "complex": "library functions of complex numbers differ at infinities and signed zeros",
    "triangular_solve": "what a singular matrix gives is left open",
    "DynamicQuantizeLinear": "NaN and infinities have no quantized value",
    "reduce_precision": "keeps f32 with fewer bits, the reference of which is tested element by element",
}
FAMILIES_LEFT_OUT = {
    "classical": "attributes are tables (trees, classes, vectors) that must fit each other; random ones never do",
    "text": "made of strings and tables of n-grams",
    "training": "operands come in groups that one step of an optimizer makes",
}
LARGEST = 400
"""Elements of a value."""
REFUSALS = (IrcError, ValueError, TypeError, OverflowError, ArithmeticError)
SYMBOL = dimensions.symbol("N")


def candidates() -> list[Operator]:
    """Pure operators on tensors of numbers, without sub-graphs."""
    return [
        op
        for op in all_operators()
        if op.name not in LEFT_OUT
        and op.family not in FAMILIES_LEFT_OUT
        and Trait.PURE in op.traits
        and not (Trait.LATE in op.traits or Trait.HOST in op.traits)
        and not op.regions
        and not any(o.any_type or not _numeric(o.constraint) for o in op.operands)
        and not any(kind.base in ("symbol", "payload", "type") for kind in op.kinds.values())
    ]


def _numeric(constraint: Any) -> bool:
    return any(constraint.accepts(d) for d in DTYPES)


class Grower:
    """One graph in the making.

    Every value it makes is an output, or with `leaves` those that nothing uses and few others.  With `symbol` inputs
    have sizes N where the graph was drawn with the size `symbol`.
    """

    def __init__(
        self, draw: Random, operators: list[Operator], *, leaves: bool = False, symbol: int | None = None
    ) -> None:
        self.draw = draw
        self.operators = operators
        self.leaves = leaves
        self.symbol = symbol
        self.model = Model("fuzz")
        self.function = self.model.add_function(Function("main", dims=("N",) if symbol else ()))
        self.build = Builder(self.model, self.function.body)
        self.pool: list[Any] = []
        self.made: list[Any] = []
        self.small: set[Any] = set()
        """Integer inputs (their numbers, when grown) that are to have small values: lengths, places and the like."""
        names = {o.name for o in operators}
        self.specimens = [name for name in corpus.nodes() if name not in LEFT_OUT and (name in names or len(names) > 9)]

    def grow(self, steps: int) -> Model:
        for _ in range(steps):
            for _ in range(12):
                if self.step():
                    break
        used = {o for n in self.model.nodes() for o in n.operands}
        used |= {v for n in self.model.nodes() for g in n.all_graphs() for v in g.captures()}
        unused = [v for v in self.made if v not in used]
        kept = [v for v in self.made if not self.leaves or v in unused or self.draw.random() < 0.2]
        if self.symbol and "N" not in {name for v in self.function.inputs for name in _names(v.type)}:
            self.function.body.add_input(TensorType(dtypes.f32, (SYMBOL,)), f"x{len(self.function.inputs)}")
        self.function.body.set_outputs(kept)
        self.function.input_attributes = [{} for _ in self.function.inputs]
        self.function.output_names = [f"y{i}" for i in range(len(kept))]
        self.small = {i for i, v in enumerate(self.function.inputs) if v in self.small}
        return clone_model(self.model)  # without the uses of what was refused

    def step(self) -> bool:
        chance = self.draw.random()
        if self.leaves and chance < 0.4:
            return self.transplant(self.draw.choice(corpus.patterns()))
        if self.specimens and chance < 0.7:
            return self.transplant(self.draw.choice(corpus.nodes()[self.draw.choice(self.specimens)]))
        return self.node(self.draw.choice(self.operators))

    def input(self, dtype: DType, dims: tuple[Any, ...]) -> Any:
        if self.symbol:
            dims = tuple(SYMBOL if d == self.symbol and self.draw.random() < 0.9 else d for d in dims)
        if self.draw.random() < (0.3 if self.leaves else 0.1) and all(isinstance(d, int) for d in dims):
            return self.constant(dtype, dims)
        value = self.function.body.add_input(TensorType(dtype, dims), f"x{len(self.function.inputs)}")
        self.pool.append(value)
        return value

    def constant(self, dtype: DType, dims: tuple[int, ...]) -> Any:
        """What passes know rules about: zeros, ones and the like."""
        size = math.prod(dims)
        number = self.draw.choice([0, 1, -1 if dtype.is_signed else 3, 2])
        array = np.full(dims, number).astype(dtype.numpy)
        if size > 1 and self.draw.random() < 0.5:
            array = (np.arange(size) % self.draw.choice([2, 3, 7])).astype(dtype.numpy).reshape(dims)
        return self.build.constant(array, dtype)

    def transplant(self, source: Function) -> bool:
        """Write the nodes of a function of the corpus here, changed; False if something refuses."""
        inputs, last = len(self.function.inputs), len(list(self.function.body.nodes))
        plan = self.plan(source)
        if any(n.op.name in LEFT_OUT for n in source.body.nodes) or any(
            v.type.dtype.is_string for v in source.inputs
        ):
            return False
        try:
            mapping = {v: self.like(plan.type(v.type)) for v in source.inputs}
            change.rebuild(self.build, source.body, mapping, plan)
        except REFUSALS:
            made = None
        else:
            made = [r for n in list(self.function.body.nodes)[last:] for r in n.results]
        good = made is not None and all(_small(r.type) for r in made)
        if not good:
            for node in list(self.function.body.nodes)[last:][::-1]:
                for result in node.results:
                    result._uses.clear()  # by graphs of a node that was refused in the end
                Rewriter(self.model).erase(node)
            self.forget(inputs)
            return False
        self.pool += made
        self.made += made
        return True

    def plan(self, source: Function) -> Any:
        """A change of this function: none, or up to three at once."""
        draw, plan = self.draw, change.Change()
        plan.symbols = {name: draw.choice([1, 2, 2, 3]) for name in source.dims}
        types = [v.type for v in source.inputs]
        nodes = list(source.body.nodes)
        if types and draw.random() < 0.5:
            old = draw.choice(types).dtype
            new = draw.choice(DTYPES)
            if self.leaves and new is dtypes.f64:
                new = dtypes.f32  # fusions take constants within 1e-3 for the exact ones, which f64 tells apart
            plan.dtypes = {old: new}
        sizes = [d for t in types for d in t.dims if isinstance(d, int)]
        if sizes and draw.random() < 0.5:
            old = draw.choice(sizes)
            plan.sizes = {old: draw.choice([0, 1, 2, 3, old + 1, max(old - 1, 1)])}
            plan.in_attributes = draw.random() < 0.7
        if self.symbol:
            plan.sizes.setdefault(self.symbol, SYMBOL)
            plan.in_attributes = True
        if draw.random() < 0.5:
            chosen = draw.choice(nodes)
            names = [name for name, kind in chosen.op.kinds.items() if kind.base not in ("symbol", "payload", "type")]
            name = draw.choice(names) if names else None

            def edit(node: Node, attributes: dict[str, Any]) -> None:
                if node is chosen and name is not None:
                    attributes[name] = change.edited(draw, node.op.kinds[name], attributes[name])

            plan.edit = edit
        return plan

    def like(self, type_: TensorType) -> Any:
        """A value of this type: one that is there, or a new input."""
        fitting = [v for v in self.pool if v.type == type_]
        if fitting and self.draw.random() < (0.8 if self.leaves else 0.5):
            return self.draw.choice(fitting)
        assert type_.dims is not None
        value = self.input(type_.dtype, type_.dims)
        if type_.dtype.is_integer and self.draw.random() < 0.7:
            self.small.add(value)
        return value

    def dims(self) -> tuple[int, ...]:
        return tuple(self.draw.choice([0, 1, 1, 2, 2, 3, 3, 4, 5]) for _ in range(self.draw.choice([0, 1, 2, 2, 3, 4])))

    def node(self, op: Operator) -> bool:
        """Try to add one node; False if `infer` refused it (inputs made for it stay unused and go)."""
        inputs = len(self.function.inputs)
        operands, group = [], self.draw.choice([1, 2, 3])
        first: Any = None
        for spec in op.operands:
            count = group if spec.variadic else 1
            chosen = []
            for _ in range(count):
                if spec.optional and self.draw.random() < 0.5:
                    chosen.append(None)
                    continue
                value = self.operand(spec.constraint, first)
                first = first if first is not None else value
                chosen.append(value)
            operands.append(tuple(chosen) if spec.variadic else chosen[0])
        try:
            attributes = {name: self.attribute(kind, default, first) for name, kind, default in op.fields}
            made = self.build.apply(op.name, *operands, **attributes)
        except REFUSALS:
            made = None
        results = made if isinstance(made, tuple) else () if made is None else (made,)
        good = [r for r in results if isinstance(r.type, TensorType) and r.type.dims is not None and _small(r.type)]
        if not good or len(good) != len(results):
            if results:
                Rewriter(self.model).erase(results[0].node)
            self.forget(inputs)
            return False
        self.pool += good
        self.made += good
        return True

    def forget(self, count: int) -> None:
        """Drop inputs from number `count` on; nothing uses them."""
        for value in self.function.inputs[count:]:
            self.pool.remove(value)
            self.small.discard(value)
        del self.function.body.inputs[count:]

    def operand(self, constraint: Any, first: Any) -> Any:
        """A value of the pool, more often one like the first operand, or a new input."""
        fitting = [v for v in self.pool if constraint.accepts(v.dtype)]
        if first is not None and self.draw.random() < 0.8:
            fitting = [v for v in fitting if v.dtype is first.dtype] or fitting
        if fitting and self.draw.random() < 0.6:
            return self.draw.choice(fitting)
        allowed = [d for d in DTYPES if constraint.accepts(d)]
        dtype = first.dtype if first is not None and constraint.accepts(first.dtype) else self.draw.choice(allowed)
        if first is None or self.draw.random() < 0.3:
            return self.input(dtype, self.dims())
        dims = list(first.dims)
        if dims and self.draw.random() < 0.4:
            dims[self.draw.randrange(len(dims))] = 1
        if dims and self.draw.random() < 0.3:
            dims = dims[1:]
        return self.input(dtype, tuple(dims))

    def attribute(self, kind: Any, default: Any, first: Any) -> Any:
        """A value of the declared kind; the default half of the time."""
        if not _missing(default) and self.draw.random() < 0.5:
            return default
        if kind.optional and self.draw.random() < 0.3:
            return None
        return self.listed(kind, kind.depth, first)

    def listed(self, kind: Any, depth: int, first: Any) -> Any:
        rank = first.rank if first is not None else 2
        if depth:
            if depth == 1 and kind.base in ("int", "size") and first is not None and rank and self.draw.random() < 0.7:
                return self.draw.choice([self.permutation, self.axes, self.sizes])(first)
            return tuple(self.listed(kind, depth - 1, first) for _ in range(self.draw.choice([rank, rank, 1, 2, 0])))
        match kind.base:
            case "bool":
                return self.draw.random() < 0.5
            case "float":
                return self.draw.choice([0.0, 0.5, 1.0, 1e-5, 2.0, -1.0])
            case "str":
                return self.draw.choice(kind.choices) if kind.choices else "x"
            case "dtype":
                return self.draw.choice(DTYPES)
            case _:
                return self.draw.choice([0, 0, 1, 1, 2, 3, -1, max(rank - 1, 0)])

    def permutation(self, first: Any) -> tuple[int, ...]:
        order = list(range(first.rank))
        self.draw.shuffle(order)
        return tuple(order)

    def axes(self, first: Any) -> tuple[int, ...]:
        return tuple(i for i in range(first.rank) if self.draw.random() < 0.5)

    def sizes(self, first: Any) -> tuple[Any, ...]:
        dims = list(first.dims)
        return tuple(self.draw.choice([dims, dims[::-1], [math.prod(dims)], [1, *dims], [0] * len(dims)]))


def _missing(default: Any) -> bool:
    return default is dataclasses.MISSING


def _names(type_: Any) -> list[str]:
    return [name for d in type_.dims for name in dimensions.symbols(d)]


def _small(type_: Any) -> bool:
    if not isinstance(type_, TensorType) or type_.dims is None or type_.dtype.is_string or type_.rank > 6:
        return False
    try:
        return dimensions.evaluate(type_.size, {"N": 6}) <= LARGEST
    except (KeyError, IrcError, ArithmeticError):
        return False


def contents(draw: Random, model: Model, small: Any = (), size: int = 1) -> list[np.ndarray]:
    """Inputs with the values that go wrong: NaN, infinities, signed zeros, ties, the least and greatest integers.

    `size` stands for N.
    """
    from irc.testing.cases import values

    out = []
    for number, value in enumerate(model.main.inputs):
        dims = tuple(dimensions.evaluate(d, {"N": size}) for d in value.type.dims)
        key, special = draw.random(), draw.random() < 0.6
        if number in small:
            out.append(values(value.dtype, dims, key, special=False, low=0, high=0.15))
        else:
            out.append(values(value.dtype, dims, key, special=special))
    return out
