"""Matrix products and factorizations."""

from ...ir import dims as sizes
from ...ir import dtypes
from ...ir.dims import Size
from ...ir.graph import Node, Value
from ...ir.ops import equations
from ...ir.ops.linalg import free_axes
from . import types
from .context import Context
from .expression import Expr
from .lowering import lower


def product(ctx, a, b, dtype, dims=None):
    """a @ b in `dtype`: floats by MLX (f16 and bf16 in f32), integers exactly."""
    if not dtype.is_integer:
        if a.dtype.is_bool:
            a, b = (ctx.convert(v, dtypes.f32) for v in (a, b))
            counts = ctx.infix("@", a, b, dims=ctx.result_types[0].shape if dims is None else dims)
            return ctx.infix("!=", counts, 0)
        wide = types.accumulator(a.dtype)
        a, b = (ctx.convert(ctx.wide(v), wide) for v in (a, b))
        out = ctx.infix("@", a, b, wide, ctx.result_types[0].shape if dims is None else dims)
        if wide is dtype and dtype.is_float and a.rank > 1 and b.rank == 2 and _is_some(b.dims[0]):
            ctx.emitter.products[out] = (a, b)
        return ctx.narrow(ctx.convert(out, types.wide(dtype)), dtype)
    held = types.carrier(dtype)
    small = a.dtype.bits <= 8 and b.dtype.bits <= 8 and dtype.bits <= 32
    arguments = [ctx.wide(a), ctx.wide(b), types.spelling(held)]
    if small:
        block = 1024 if a.dtype.kind == "int" and b.dtype.kind == "int" else 256
        return ctx.narrow(ctx.recipe("_matmul_small", *arguments, block, dtype=held, dims=dims), dtype)
    return ctx.narrow(ctx.recipe("_matmul_integer", *arguments, dtype=held, dims=dims), dtype)


def _is_some(size: Size) -> bool:
    """mx.addmm refuses stacks of matrices without columns."""
    return isinstance(size, int) and size > 0


def bias_of(node: Node, product: Value) -> Value | None:
    """What a node adds to a product, if that is one number a column."""
    if node.op.name != "add" or len({*node.operands}) != 2:
        return None
    bias = node.operands[1] if node.operands[0] is product else node.operands[0]
    fits = bias is not None and bias.rank == 1 and sizes.equal(bias.dims[0], product.dims[-1]) is True
    return bias if fits else None


def biased(ctx: Context, x: Expr, y: Expr) -> Expr | None:
    """`mx.addmm(bias, a, b)` for an addition of a bias to a product that nothing else uses: one kernel, not two."""
    assert ctx.node is not None
    for value, product, bias in zip(ctx.node.operands, (x, y), (y, x), strict=True):
        inside = ctx.emitter.products.get(product.core) if product.core.variable is None else None
        if inside is not None and value is not None and bias_of(ctx.node, value) is not None:
            return ctx.call("mx.addmm", bias, *inside, dtype=product.dtype, dims=product.dims)
    return None


@lower("dot_general")
def dot_general(
    ctx, lhs, rhs, *, lhs_contracting, rhs_contracting, lhs_batching, rhs_batching, precision, result
):  # fmt: skip
    dims, dtype = ctx.result_types[0].shape, ctx.result_types[0].dtype
    count = len(lhs_batching)
    leading = tuple(lhs_batching) == tuple(rhs_batching) == tuple(range(count))
    if (
        leading
        and len(lhs_contracting) == 1
        and rhs.rank == count + 2
        and lhs.rank >= count + 1
        and (count == 0 or lhs.rank == count + 2)
    ):
        left = lhs if lhs_contracting[0] == lhs.rank - 1 else _swapped(ctx, lhs, lhs_contracting[0], count)
        right = rhs if rhs_contracting[0] == count else _swapped(ctx, rhs, count, count)
        return product(ctx, left, right, dtype, dims)
    left, right = free_axes(lhs.rank, lhs_batching, lhs_contracting), free_axes(rhs.rank, rhs_batching, rhs_contracting)
    inner = sizes.product(lhs.dims[a] for a in lhs_contracting)
    batch = [lhs.dims[a] for a in lhs_batching]
    m, n = sizes.product(lhs.dims[a] for a in left), sizes.product(rhs.dims[a] for a in right)
    x = ctx.reshape(ctx.transpose(lhs, (*lhs_batching, *left, *lhs_contracting)), (*batch, m, inner))
    y = ctx.reshape(ctx.transpose(rhs, (*rhs_batching, *rhs_contracting, *right)), (*batch, inner, n))
    return ctx.reshape(product(ctx, x, y, dtype, (*batch, m, n)), dims)


def _swapped(ctx, x, axis, count):
    """x with the contracted axis of a stack of matrices last (lhs) or first (rhs)."""
    if x.rank == count + 2:
        if x.rank == 2:
            return ctx.typed(ctx.attribute(x, "T"), x.dtype, x.dims[::-1])
        return ctx.method(x, "swapaxes", -1, -2, dims=(*x.dims[:-2], x.dims[-1], x.dims[-2]))
    return ctx.transpose(x, [a for a in range(x.rank) if a != axis] + [axis])


@lower("MatMul")
def matmul(ctx, a, b):
    dtype = ctx.result_types[0].dtype
    if dtype.is_integer and (a.rank < 2 or b.rank < 2):
        ctx.refuse("products of integer vectors")
    return product(ctx, a, b, dtype, ctx.result_types[0].shape)


@lower("Gemm")
def gemm(ctx, a, b, c, *, alpha, beta, transpose_a, transpose_b):
    dims, dtype = ctx.result_types[0].shape, ctx.result_types[0].dtype
    if not dtype.is_float or dtype.bits < 32:
        ctx.refuse(f"mx.addmm of {dtype}")
    if alpha == 0 or (c is not None and beta == 0):
        ctx.refuse("mx.addmm leaves out what it multiplies by 0, whose NaN and infinities would count")
    a, b = (_swapped(ctx, v, 0, 0) if t else v for v, t in ((a, transpose_a), (b, transpose_b)))
    keywords = {k: v for k, v in (("alpha", alpha), ("beta", beta)) if v != 1}
    if c is None:
        out = ctx.infix("@", a, b, dtype, dims)
        return out if alpha == 1 else ctx.infix("*", out, ctx.scalar(alpha, dtype))
    return ctx.call("mx.addmm", c, a, b, dtype=dtype, dims=dims, **keywords)


@lower("Einsum")
def einsum(ctx, xs, *, equation):
    dtype = ctx.result_types[0].dtype
    inputs, output = equations.parse(equation, [x.rank for x in xs])
    labels = [label for term in inputs for label in term]
    if any(len(label) > 1 for label in labels) or any(len(set(term)) != len(term) for term in inputs):
        ctx.refuse("mx.einsum has neither an ellipsis nor repeated labels")
    if not dtype.is_float or dtype.bits < 32 or len(xs) > 2:
        ctx.refuse(f"mx.einsum of {len(xs)} operands of {dtype}")
    sized: dict[str, Size] = {}
    for x, term in zip(xs, inputs, strict=True):
        for label, dim in zip(term, x.dims, strict=True):
            if label in sized and sizes.equal(sized[label], dim) is not True:
                ctx.refuse("labels whose sizes are not provably equal")
            sized[label] = dim
    text = ",".join("".join(term) for term in inputs) + "->" + "".join(output)
    return ctx.call("mx.einsum", f'"{text}"', *xs, dtype=dtype, dims=ctx.result_types[0].shape)


@lower("cholesky")
def cholesky(ctx, a, *, lower):
    if types.accumulator(a.dtype) is not a.dtype:
        ctx.refuse(f"cholesky of {a.dtype}")
    if lower:
        return ctx.recipe("_cholesky", a)
    return _adjoint(ctx, ctx.recipe("_cholesky", _adjoint(ctx, a)))


def _adjoint(ctx, x):
    swapped = ctx.method(x, "swapaxes", -1, -2, dims=(*x.dims[:-2], x.dims[-1], x.dims[-2]))
    return ctx.call("mx.conjugate", swapped) if x.dtype.is_complex else swapped


@lower("triangular_solve")
def triangular_solve(ctx, a, b, *, left_side, lower, unit_diagonal, transpose_a):
    if types.accumulator(a.dtype) is not a.dtype:
        ctx.refuse(f"triangular_solve of {a.dtype}")
    if transpose_a != "none":
        a = ctx.method(a, "swapaxes", -1, -2)
        lower = not lower
        a = ctx.call("mx.conjugate", a) if transpose_a == "adjoint" and a.dtype.is_complex else a
    if not left_side:
        a, b = (ctx.method(v, "swapaxes", -1, -2) for v in (a, b))
        lower = not lower
    out = ctx.recipe("_solve_triangular", a, b, lower, unit_diagonal, dims=b.dims)
    return out if left_side else ctx.method(out, "swapaxes", -1, -2)
