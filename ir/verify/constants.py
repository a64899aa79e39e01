"""Rules on the model's constants, and on the `init` graph that derives some of them."""

from __future__ import annotations

from collections.abc import Iterator

from ..effects import has_effects
from ..model import Constant, Model
from .table import Context, describe, rule


@rule("V025", "model")
def constant_table(ctx: Context, model: Model) -> Iterator[str]:
    """Named constants stand in the table under their own names, unnamed ones hold few elements, and the contents have
    the constant's type."""
    for name, constant in model.constants.items():
        if not name or constant.name != name:
            yield f"the constant under the name {name!r} is called {constant.name!r}"
    for constant in model._inline.values():
        if constant.name is not None or constant.data is None or not constant.data.is_inline:
            yield f"{describe(constant)} of type {constant.type} is kept as an inline constant but is none"
    for constant in (*model.constants.values(), *model._inline.values()):
        if constant.data is not None and constant.data.type != constant.type:
            yield f"{describe(constant)} has type {constant.type}, its contents are {constant.data.type}"


@rule("V026", "model")
def derived_constants(ctx: Context, model: Model) -> Iterator[str]:
    """The outputs of `init` define the derived constants one by one, with equal types; exactly those have no
    contents of their own."""
    outputs = model.init._outputs
    if len(outputs) != len(model.derived):
        yield f"init has {len(outputs)} outputs for {len(model.derived)} derived constants"
    if len(set(model.derived)) != len(model.derived):
        yield "a constant is derived twice"
    for constant, value in zip(model.derived, outputs, strict=False):
        if not ctx.owns(constant):
            yield f"the derived constant {describe(constant)} is not among the model's constants"
        if constant.data is not None:
            yield f"{describe(constant)} is derived but has contents of its own"
        if value is not None and value.type != constant.type:
            yield f"{describe(constant)} has type {constant.type}, init gives {value.type}"
    for constant in model.constants.values():
        if constant.data is None and constant not in model.derived:
            yield f"{describe(constant)} has no contents and init does not derive it"


@rule("V027", "model")
def init_graph(ctx: Context, model: Model) -> Iterator[str]:
    """`init` takes no inputs, has no effects, and uses only constants that have contents (a derived one is used as the
    value that defines it)."""
    if model.init.inputs:
        yield f"init has {len(model.init.inputs)} inputs; it takes none"
    for node in model.init.nodes:
        if has_effects(node, model):
            yield f"{node.label} in init has effects"
    for node, graph in ctx.nodes.items():
        if ctx.graphs[graph] is not None:
            continue
        for value in node.operands:
            if isinstance(value, Constant) and value.data is None:
                yield f"{node.label} in init uses the derived constant {describe(value)}; use the value that defines it"
    for value in model.init._outputs:
        if isinstance(value, Constant):
            yield f"init returns the constant {describe(value)}; an output must be a node's result"
