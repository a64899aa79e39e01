"""ONNX lowering of control flow: If natively, while as Loop without a trip count; in files what waits for run time."""

from __future__ import annotations

import onnx
from onnx import helper, numpy_helper

from ...ir import dtypes
from ...ir.dtypes import DType
from ...ir.types import TensorType
from .late import files_only, is_reference, node_of, respelled, types_in
from .lowering import Ref, lower
from .weights import tensor_proto


@lower("if")
def if_(ctx, predicate, *, then, else_):
    return ctx.ops("If", predicate, then_branch=ctx.graph(then, "then"), else_branch=ctx.graph(else_, "else"))


@lower("while")
def while_(ctx, inits, *, cond, body):
    """Loop's body computes the next state and whether to go on; the first test runs before it."""
    first = ctx.exporter.inline(cond, inits)[0]
    loop = ctx.exporter.loop_body(body, cond)
    return ctx.ops("Loop", None, first, *inits, body=loop)


@lower("freeze", when=lambda ctx, x: files_only(ctx))
def freeze(ctx, x):
    return x


@lower("bind_dim", when=lambda ctx, x, *, dim: files_only(ctx))
def bind_dim(ctx, x, *, dim):
    ctx.exporter.bind_size(dim, x)
    return ()


@lower("trap", when=lambda ctx, *, message, results: files_only(ctx))
def trap(ctx, *, message, results):
    """ONNX has no node that fails, so an element that is not there is taken, by a node with the message as its name.

    The place is drawn, but always 1, so that nobody finds it out before the run.
    """
    drawn = ctx.op("RandomUniform", type=TensorType(dtypes.f32, (1,)), shape=[1], low=1.0, high=1.5)
    place = ctx.cast(drawn, dtypes.i64)
    made = []
    for type_ in results:
        one = TensorType(type_.dtype, (1,))
        taken = ctx.op("Gather", ctx.constant([0], type_.dtype), place, type=one)
        ctx.exporter.nodes[-1].name = message
        made.append(taken if type_.dims is None else ctx.broadcast(ctx.reshape(taken, ()), type_.dims))
    return tuple(made)


def _in_this_opset(ctx, xs, *, domain, type, version, attributes, results, graphs):
    why = files_only(ctx)
    if why is not None or domain:
        return why
    node = node_of(domain, type, attributes, len(results))
    types = [TensorType(dtypes.f32, None) if x is None else x.type for x in xs]
    if respelled(node, types, results, version, ctx.dialect.opset) is None:
        return f"{type} of opset {version} has no equal in opset {ctx.dialect.opset}"
    return None


@lower("onnx", when=_in_this_opset)
def onnx_(ctx, xs, *, domain, type, version, attributes, results, graphs):
    node = node_of(domain, type, attributes, len(results))
    for name, value in attributes:
        if is_reference(value, "$operand"):
            data = ctx.node.operands[value[1]].data
            node.attribute.append(helper.make_attribute(name, tensor_proto("", data.numpy(), data.dtype)))
        elif is_reference(value, "$graph"):
            node.attribute.append(helper.make_attribute(name, ctx.graph(graphs[value[1]], name)))
    graph: onnx.GraphProto | None = onnx.GraphProto(node=[node])
    if domain:
        ctx.exporter.root.versions[domain] = version
    else:
        graph = respelled(node, [x.type for x in xs], results, version, ctx.dialect.opset)
    assert graph is not None, "the claim has tried it"
    refs = {f"x{i}": x for i, x in enumerate(xs)} | {"": None}
    constants = {t.name: t for t in graph.initializer}
    constants |= {n.output[0]: n.attribute[0].t for n in graph.node if n.op_type == "Constant"}
    for name, tensor in constants.items():
        refs[name] = ctx.constant(numpy_helper.to_array(tensor), DType.from_onnx(tensor.data_type))
    between = types_in(graph, results)
    for made in graph.node:
        if made.output[0] in constants:
            continue
        given = [refs[n] for n in made.input]
        types = [between[n] if n else None for n in made.output]
        out = iter(ctx.ops(made.op_type, *given, types=types, domain=made.domain))
        ctx.exporter.nodes[-1].attribute.extend(made.attribute)
        refs.update((n, next(out)) for n, t in zip(made.output, types, strict=True) if t is not None)
    return tuple(refs.get(f"y{i}", Ref("", t)) for i, t in enumerate(results))
