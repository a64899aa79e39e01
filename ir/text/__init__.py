"""The textual form of a model: `print_model`, `parse_model`, and the versions that the first line states.

`parse_model(print_model(m))` equals `m`, and printing what was parsed from canonical text gives that text again.
"""

from .lexer import label
from .literals import attribute_text, constant_text
from .parser import parse_model
from .printer import is_in_text, print_function, print_model, print_node
from .version import SYNTAX, UPGRADES, VOCABULARY

__all__ = [
    "SYNTAX",
    "UPGRADES",
    "VOCABULARY",
    "attribute_text",
    "constant_text",
    "is_in_text",
    "label",
    "parse_model",
    "print_function",
    "print_model",
    "print_node",
]
