"""The versions that the first line of a text states, and the upgrades from older vocabularies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

SYNTAX: Final = 1
"""How text is written.  A new number means that older programs cannot read the text at all."""

VOCABULARY: Final = 1
"""Which operators there are and what they mean."""

UPGRADES: Final[dict[int, Callable[[str], str]]] = {}
"""N -> a function that rewrites a text of vocabulary N so that it means the same in vocabulary N + 1."""
