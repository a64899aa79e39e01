"""The vjp of convolution: convolutions of the cotangent with w and of x with it.  Defines no operators."""

from ..dims import Size
from .widening import converted


def convolution_vjp(
    ctx, x, w, *, lhs_spec, rhs_spec, out_spec, window_strides, padding, lhs_dilation, rhs_dilation, window_reversal,
    feature_group_count, batch_group_count, precision, result,
):  # fmt: skip
    """A reversed kernel is reversed before, and its cotangent after, what holds for one that is not."""
    b = ctx.build
    g = converted(b, ctx.cotangent, x.dtype)
    spatial = [str(i) for i in range(x.rank - 2)]
    turned = tuple(rhs_spec.index(c) for c, reverse in zip(spatial, window_reversal, strict=True) if reverse)
    kernel = b.reverse(w, axes=turned) if turned else w
    rows = []
    for i, c in enumerate(spatial):
        inner = _dilated(x.dims[lhs_spec.index(c)], lhs_dilation[i])
        window = _dilated(w.dims[rhs_spec.index(c)], rhs_dilation[i])
        outer = _dilated(g.dims[out_spec.index(c)], window_strides[i])
        rows.append((inner, window, outer, padding[i][0]))
    shared = {"window_reversal": (False,) * len(spatial), "precision": precision}
    places = {"window_strides": lhs_dilation, "lhs_dilation": window_strides, "rhs_dilation": rhs_dilation}
    pads = tuple((k - low - 1, n + low - out) for n, k, out, low in rows)
    flipped = _grouped_kernel(b, kernel, rhs_spec, feature_group_count * batch_group_count)
    flipped = b.reverse(flipped, axes=tuple(rhs_spec.index(c) for c in spatial)) if spatial else flipped
    dx = b.convolution(
        g, flipped, lhs_spec=out_spec, rhs_spec=_swapped(rhs_spec, "oi", "io"), out_spec=lhs_spec, padding=pads,
        feature_group_count=feature_group_count * batch_group_count, **places, **shared,
    )  # fmt: skip
    if batch_group_count > 1:
        dx = _moved(b, dx, lhs_spec.index("f"), lhs_spec.index("b"), batch_group_count)
    places = {"window_strides": rhs_dilation, "lhs_dilation": lhs_dilation, "rhs_dilation": window_strides}
    pads = tuple((low, out - n + k - low - 1) for n, k, out, low in rows)
    dw = b.convolution(
        x, g, lhs_spec=_swapped(lhs_spec, "bf", "fb"), rhs_spec=_swapped(out_spec, "bf", "io"),
        out_spec=_swapped(rhs_spec, "io", "bf"), padding=pads, feature_group_count=batch_group_count,
        batch_group_count=feature_group_count, **places, **shared,
    )  # fmt: skip
    return dx, converted(b, b.reverse(dw, axes=turned) if turned else dw, w.dtype)


def _dilated(size: Size, factor: int) -> Size:
    """As many places as an axis has with factor - 1 gaps between its elements."""
    return 0 if size == 0 else (size - 1) * factor + 1


def _swapped(spec: str, old: str, new: str) -> str:
    return spec.translate(str.maketrans(old, new))


def _grouped_kernel(b, w, spec, groups):
    """The kernel whose groups of output features stand beside each other in its input features."""
    return w if groups == 1 else _moved(b, w, spec.index("o"), spec.index("i"), groups)


def _moved(b, x, source, target, groups):
    """The groups that axis `source` counts first, counted first by axis `target` instead."""
    dims = list(x.dims)
    dims[source] = dims[source] // groups
    split = b.reshape(x, dims=(*x.dims[:source], groups, dims[source], *x.dims[source + 1 :]))
    rest = [i for i in range(x.rank + 1) if i != source]
    rest.insert(target, source)
    dims[target] = dims[target] * groups
    return b.reshape(b.transpose(split, permutation=tuple(rest)), dims=tuple(dims))
