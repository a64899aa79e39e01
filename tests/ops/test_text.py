"""String operators and n-grams, against their definitions."""

import numpy as np
import pytest

from irc.ir.errors import InferenceError
from irc.testing.operators import check_composite, run


def words(*items):
    return np.array(items, object)


def test_concat_broadcasts():
    out = run("StringConcat", words("a", "b"), np.array("-é", object))
    assert out.tolist() == ["a-é", "b-é"]


def test_split_fills_short_rows():
    pieces, counts = run("StringSplit", words("a,b,,c", "", "x"), delimiter=",")
    assert pieces.tolist() == [["a", "b", "", "c"], ["", "", "", ""], ["x", "", "", ""]]
    assert counts.tolist() == [4, 1, 1]


def test_split_at_blanks_and_a_limit():
    pieces, counts = run("StringSplit", words("  a  b c "), maxsplit=1)
    assert pieces.tolist() == [["a", "b c "]]
    assert counts.tolist() == [2]


def test_normalizer_drops_stopwords_and_changes_case():
    x = words("Monday", "tuesday", "MONDAY")
    assert run("StringNormalizer", x, case="UPPER", stopwords=("monday",)).tolist() == ["TUESDAY"]
    assert run("StringNormalizer", x, case_sensitive=True, stopwords=("Monday",)).tolist() == ["tuesday", "MONDAY"]
    assert run("StringNormalizer", x[None, :1], stopwords=("monday",)).tolist() == [[""]]


def test_regex_matches_the_whole_string():
    assert run("RegexFullMatch", words("ab", "abc"), pattern="a.").tolist() == [True, False]
    with pytest.raises(InferenceError, match="no regular expression"):
        run("RegexFullMatch", words("a"), pattern="(")


def test_n_grams_with_skips():
    """Bigrams (1,2) and (1,3) beside the element 2: pool [2 | 1 2 1 3]."""
    x = np.array([[1, 2, 3, 1, 3], [2, 2, 2, 2, 2]], np.int64)
    pool, places = np.array([2, 1, 2, 1, 3], np.int64), np.array([0, 2, 1], np.int64)
    common = {"counts": (0, 1), "least": 1, "most": 2, "columns": 3}
    plain = check_composite("TfIdfVectorizer", x, pool, places, None, **common)
    assert plain.tolist() == [[1, 1, 1], [5, 0, 0]]
    skipping = check_composite("TfIdfVectorizer", x, pool, places, None, skips=1, **common)
    assert skipping.tolist() == [[1, 2, 1], [5, 0, 0]]
    weights = np.array([2, 3, 5], np.float32)
    for mode, first in (("IDF", [2, 3, 5]), ("TFIDF", [2, 6, 5])):
        got = check_composite("TfIdfVectorizer", x, pool, places, weights, skips=1, mode=mode, **common)
        assert got[0].tolist() == first, mode
