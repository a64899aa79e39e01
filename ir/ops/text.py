"""String operators, and n-grams of strings or numbers.  Targets hold no strings: the host handles them in between."""

import math
import re
from typing import Literal

import numpy as np

from .. import dtypes
from ..facts import Fact
from ..operators import ANY, FLOAT, HOST, INTEGER, PURE, STRING, Operand, operator
from ..types import TensorType
from .shape.positions import sliced

TEXT = PURE | HOST


def _each(function, *arrays):
    """Strings computed one by one from broadcast arrays of strings."""
    rows = np.broadcast_arrays(*arrays)
    out = np.empty(rows[0].shape, object)
    for place in np.ndindex(out.shape):
        out[place] = function(*(str(row[place]) for row in rows))
    return out


@operator("StringConcat", family="text", traits=TEXT)
class StringConcat:
    """x followed by y, element by element; the operands broadcast."""

    x: Operand[STRING]
    y: Operand[STRING]

    def infer(ctx, x, y):
        return x.with_dims(ctx.broadcast(x.dims, y.dims))

    def reference(ctx, x, y):
        return _each(lambda a, b: a + b, x, y)


@operator("StringSplit", family="text", traits=TEXT)
class StringSplit:
    """Each string cut at `delimiter`: (pieces[.., most], count[..]); shorter rows are filled with empty strings.

    An empty delimiter cuts at runs of blanks and drops empty pieces.  At most `maxsplit` cuts, all for -1.
    """

    x: Operand[STRING]
    delimiter: str = ""
    maxsplit: int = -1

    def infer(ctx, x, *, delimiter, maxsplit):
        return Fact(TensorType(dtypes.string, None)), x.with_dtype(dtypes.i64)

    def reference(ctx, x, *, delimiter, maxsplit):
        rows = [str(s).split(delimiter or None, maxsplit) for s in x.reshape(-1)]
        most = max(map(len, rows), default=0)
        pieces = np.full((len(rows), most), "", object)
        for i, row in enumerate(rows):
            pieces[i, : len(row)] = row
        counts = np.array([len(r) for r in rows], np.int64)
        return pieces.reshape(*x.shape, most), counts.reshape(x.shape)


@operator("StringNormalizer", family="text", traits=TEXT)
class StringNormalizer:
    """x[C] or x[1,C] without the stopwords, then in lower or upper case; one empty string where nothing is left.

    Stopwords are compared as they are if `case_sensitive`, else without regard to case.
    """

    x: Operand[STRING]
    case: str = "NONE"
    case_sensitive: bool = False
    stopwords: tuple[str, ...] = ()

    def infer(ctx, x, *, case, case_sensitive, stopwords):
        ctx.need(case in ("NONE", "LOWER", "UPPER"), f"case must be NONE, LOWER or UPPER, got {case!r}")
        ctx.need(x.rank in (1, 2), f"x must have rank 1 or 2, got {x.type}")
        if x.rank == 2:
            ctx.equal(x.dims[0], 1, "the first dim of a matrix x and 1")
        return x.with_dims(None) if stopwords else x.with_dims(x.dims)

    def reference(ctx, x, *, case, case_sensitive, stopwords):
        words = [str(s) for s in x.reshape(-1)]
        if case_sensitive:
            unwanted = set(stopwords)
            words = [w for w in words if w not in unwanted]
        else:
            unwanted = {s.lower() for s in stopwords}
            words = [w for w in words if w.lower() not in unwanted]
        change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[case]
        out = np.array([change(w) for w in words] or [""], object)
        return out if x.ndim == 1 else out.reshape(1, -1)


@operator("RegexFullMatch", family="text", traits=TEXT)
class RegexFullMatch:
    """Whether each string as a whole matches the regular expression (RE2's syntax)."""

    x: Operand[STRING]
    pattern: str

    def infer(ctx, x, *, pattern):
        try:
            re.compile(pattern)
        except re.error as error:
            ctx.fail(f"the pattern {pattern!r} is no regular expression: {error}")
        return x.with_dtype(dtypes.bool_)

    def reference(ctx, x, *, pattern):
        compiled = re.compile(pattern)
        return _each(lambda s: compiled.fullmatch(s) is not None, x).astype(bool)


@operator("Tokenizer", family="text", traits=TEXT)
class Tokenizer:
    """The tokens of each string along a new last axis: [.., most]; shorter rows are filled with `pad_value`.

    With `token` what matches that regular expression (RE2's syntax), else what stands between matches of any of
    `separators`; one empty separator gives the characters.  Tokens shorter than `least` are dropped.  `mark` puts
    U+0002 before and U+0003 after the tokens of a row, unless no row has any.
    """

    x: Operand[STRING]
    separators: tuple[str, ...] = ()
    token: str = ""
    least: int = 1
    pad_value: str = ""
    mark: bool = False

    def infer(ctx, x, *, separators, token, least, pad_value, mark):
        ctx.need(bool(separators) != bool(token), "Tokenizer needs either separators or a token expression")
        for pattern in (*separators, token):
            try:
                re.compile(pattern)
            except re.error as error:
                ctx.fail(f"the pattern {pattern!r} is no regular expression: {error}")
        return x.with_dims(None)

    def reference(ctx, x, *, separators, token, least, pad_value, mark):
        rows = [[t for t in _tokens(str(s), separators, token) if len(t) >= max(least, 1)] for s in x.reshape(-1)]
        if mark and any(rows):
            rows = [["\x02", *row, "\x03"] for row in rows]
        out = np.full((len(rows), max(map(len, rows), default=0)), pad_value, object)
        for i, row in enumerate(rows):
            out[i, : len(row)] = row
        return out.reshape(*x.shape, out.shape[1])


def _tokens(text, separators, token):
    """The pieces of one string, empty ones among them."""
    if token:
        return [match.group() for match in re.finditer(token, text)]
    if separators == ("",):
        return list(text)
    pieces = [text]
    for separator in separators:
        cut = re.compile(f"(?:{separator})")
        pieces = [piece for whole in pieces for piece in _between(cut, whole)]
    return pieces


def _between(cut, text):
    """What stands between the matches, whatever groups the pattern has."""
    start, out = 0, []
    for match in cut.finditer(text):
        out.append(text[start : match.start()])
        start = match.end()
    return [*out, text[start:]]


@operator("TfIdfVectorizer", family="text", traits=PURE)
class TfIdfVectorizer:
    """How often each n-gram of the pool stands in x[C] or x[B,C]: f32 [.., 1 + greatest of places].

    pool has the grams of length 1, then 2, ... one behind the other; counts[k] is where those of length k+1 begin, and
    places[i] the column of gram i.  Grams of least..most elements count, with 0..skips elements between neighbours
    (single elements once).  mode TF: the number, IDF: weights[i] (or 1) where there are any, TFIDF: their product.
    """

    x: Operand[ANY]
    pool: Operand[ANY]
    places: Operand[INTEGER]
    weights: Operand[FLOAT] | None = None
    counts: tuple[int, ...] = ()
    least: int = 1
    most: int = 1
    skips: int = 0
    columns: int = 1
    mode: Literal["TF", "IDF", "TFIDF"] = "TF"

    def infer(ctx, x, pool, places, weights, *, counts, least, most, skips, columns, mode):
        ctx.same_dtype(x, pool)
        ctx.need(x.rank in (1, 2), f"x must have rank 1 or 2, got {x.type}")
        ctx.need(places.dtype.is_integer, f"places must be integers, got {places.type}")
        columns_fit = places.data is None or all(0 <= int(p) < columns for p in places.data.numpy().reshape(-1))
        ctx.need(columns_fit, f"places must be columns, of which there are {columns}")
        ordered = all(0 <= a <= b for a, b in zip(counts, (*counts[1:], 2**63), strict=True))
        ctx.need(ordered, f"counts must be positions in the pool in rising order, got {list(counts)}")
        if isinstance(total := pool.dims[0], int):
            ends = zip(counts, (*counts[1:], total), strict=True)
            grams = sum((end - start) // size for size, (start, end) in enumerate(ends, 1))
            ctx.at_most(grams, places.dims[0], "the number of grams in the pool, against that of places,")
        return Fact(TensorType(dtypes.f32, (*x.dims[:-1], columns)))

    def reference(ctx, x, pool, places, weights, *, counts, least, most, skips, columns, mode):
        rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        out = np.zeros((len(rows), columns))
        for size, start, grams in _grams(counts, len(pool), least, most):
            wanted = pool[start : start + grams * size].reshape(grams, size)
            for distance in range(1, (skips + 1 if size > 1 else 1) + 1):
                for at in range(rows.shape[1] - distance * (size - 1)):
                    piece = rows[:, at : at + distance * (size - 1) + 1 : distance]
                    same = (piece[:, None, :] == wanted[None]).all(-1)
                    first = _number(counts, size)
                    np.add.at(out, (slice(None), places[first : first + grams].astype(np.int64)), same)
        if mode != "TF":
            ones = np.ones(columns) if weights is None else _by_column(weights, columns)
            out = (out > 0) * ones if mode == "IDF" else out * ones
        return out.reshape(*x.shape[:-1], columns)

    def decompose(ctx, x, pool, places, weights, *, counts, least, most, skips, columns, mode):
        b = ctx.build
        batch = x.dims[0] if x.rank == 2 else 1
        rows = b.reshape(x, dims=(batch, x.dims[-1]))
        length = x.dims[-1]
        if not isinstance(length, int) or not isinstance(pool.dims[0], int):
            ctx.refuse("the number of elements of a row is known only at run time")
        out = b.full(0, dtypes.f32, (batch, columns))
        for size, start, grams in _grams(counts, pool.dims[0], least, most):
            wanted = b.reshape(sliced(b, pool, 0, start, start + grams * size), dims=(grams, size))
            first = _number(counts, size)
            column = b.convert(sliced(b, places, 0, first, first + grams), dtype=dtypes.i64)
            for distance in range(1, (skips + 1 if size > 1 else 1) + 1):
                windows = length - distance * (size - 1)
                if windows <= 0:
                    continue
                same = None
                for k in range(size):
                    piece = b.reshape(
                        sliced(b, rows, 1, k * distance, k * distance + windows), dims=(batch, windows, 1)
                    )
                    gram = b.reshape(sliced(b, wanted, 1, k, k + 1), dims=(1, 1, grams))
                    equal = b.compare(piece, gram, direction="eq")
                    same = equal if same is None else b.and_(same, equal)
                found = b.reduce(b.convert(same, dtype=dtypes.f32), axes=(1,), kind="sum")
                index = b.broadcast_in_dim(column, dims=(batch, grams), broadcast_dimensions=(1,))
                out = b.put_along_axis(out, index, found, axis=1, kind="sum")
        if mode == "IDF":
            out = b.convert(b.compare(out, b.constant(0, dtypes.f32), direction="gt"), dtype=dtypes.f32)
        if mode != "TF" and weights is not None:
            out = b.multiply(out, b.reshape(weights, dims=(1, columns)))
        return b.reshape(out, dims=(*x.dims[:-1], columns))


def _grams(counts, total, least, most):
    """(length, start in the pool, number) of the grams of each length that counts."""
    for k, start in enumerate(counts):
        size, end = k + 1, counts[k + 1] if k + 1 < len(counts) else total
        if least <= size <= most and end > start:
            yield size, start, (end - start) // size


def _number(counts, size):
    """The number of the first gram of a length: all shorter ones come before it."""
    ends = [*counts[1:size]]
    return sum((end - start) // (k + 1) for k, (start, end) in enumerate(zip(counts, ends, strict=False)))


def _by_column(weights, columns):
    return np.asarray(weights, np.float64)[:columns]
