"""ONNX lowering of operators on strings, in files."""

from __future__ import annotations

from .late import files_only
from .lowering import lower


@lower("StringConcat", when=lambda ctx, x, y: files_only(ctx))
def string_concat(ctx, x, y):
    return ctx.op("StringConcat", x, y)


@lower("StringSplit", when=lambda ctx, x, *, delimiter, maxsplit: files_only(ctx))
def string_split(ctx, x, *, delimiter, maxsplit):
    return ctx.ops("StringSplit", x, delimiter=delimiter, maxsplit=None if maxsplit < 0 else maxsplit)


@lower("StringNormalizer", when=lambda ctx, x, *, case, case_sensitive, stopwords: files_only(ctx))
def string_normalizer(ctx, x, *, case, case_sensitive, stopwords):
    words, sensitive = list(stopwords) or None, int(case_sensitive)
    return ctx.op("StringNormalizer", x, case_change_action=case, is_case_sensitive=sensitive, stopwords=words)


@lower("RegexFullMatch", when=lambda ctx, x, *, pattern: files_only(ctx))
def regex_full_match(ctx, x, *, pattern):
    return ctx.op("RegexFullMatch", x, pattern=pattern)
