"""ONNX string operators."""

from __future__ import annotations

import numpy as np

from ...ir.dtypes import f32, i64, string
from .registry import onnx_op


@onnx_op("StringConcat")
def string_concat(ctx, x, y):
    return ctx.build.StringConcat(x, y)


@onnx_op("StringSplit")
def string_split(ctx, x, *, delimiter="", maxsplit=-1):
    return ctx.build.StringSplit(x, delimiter=delimiter, maxsplit=maxsplit)


@onnx_op("StringNormalizer")
def string_normalizer(ctx, x, *, case_change_action="NONE", is_case_sensitive=0, stopwords=(), locale=""):
    return ctx.build.StringNormalizer(
        x, case=case_change_action, case_sensitive=bool(is_case_sensitive), stopwords=stopwords
    )


@onnx_op("RegexFullMatch")
def regex_full_match(ctx, x, *, pattern):
    return ctx.build.RegexFullMatch(x, pattern=pattern)


@onnx_op("TfIdfVectorizer")
def tf_idf_vectorizer(
    ctx, x, *, max_gram_length, max_skip_count, min_gram_length, mode, ngram_counts, ngram_indexes, pool_int64s=(),
    pool_strings=(), weights=(),
):  # fmt: skip
    b = ctx.build
    pool = (
        b.constant(np.array(pool_strings, object), string) if pool_strings else b.constant(np.array(pool_int64s), i64)
    )
    if not x.dtype.is_string:
        x = x if x.dtype is i64 else b.convert(x, dtype=i64)
    columns = max(ngram_indexes) + 1
    given = b.constant(np.array(weights[:columns], np.float32), f32) if weights else None
    return b.TfIdfVectorizer(
        x, pool, b.constant(np.array(ngram_indexes, np.int64)), given, counts=ngram_counts, least=min_gram_length,
        most=max_gram_length, skips=max_skip_count, columns=columns, mode=mode,
    )  # fmt: skip
