"""Writes a legal model as NumPy code: one line a node, names of the model, helper functions in front."""

from __future__ import annotations

import inspect
import keyword
import re
from dataclasses import dataclass

from irc.ir.errors import IrcError
from irc.ir.model import Constant
from irc.ir.reference import Evaluator

from . import numpy_helpers
from .numpy_rules import TABLE

INLINE = 8
"""Constants of at most this many elements are written out."""


@dataclass(frozen=True)
class Operand:
    """What a rule gets: the text of an operand, its element type and sizes."""

    text: str
    dtype: object
    dims: tuple

    def __str__(self):
        return self.text


class Emitter:
    """Writes one function; `helpers` and `weights` collect what its lines mention."""

    def __init__(self, model):
        self.model = model
        self.helpers = {}
        self.weights = {}
        self._names = {}
        self._taken = {"main", "np", "weights", *dir(numpy_helpers)}

    def helper(self, name):
        """A function of numpy_helpers, which is copied into the module."""
        self.helpers[name] = getattr(numpy_helpers, name)
        return name

    def name(self, value):
        if value not in self._names:
            base = re.sub(r"\W", "_", value.name or "v")
            base = f"v_{base}" if keyword.iskeyword(base) or not base[0].isalpha() else base
            text, i = base, 1
            while text in self._taken:
                text, i = f"{base}_{i}", i + 1
            self._taken.add(text)
            self._names[value] = text
        return self._names[value]

    def operand(self, value):
        if value is None:
            return None
        text = self._constant(value) if isinstance(value, Constant) else self.name(value)
        return Operand(text, value.dtype, value.dims)

    def _constant(self, constant):
        data = constant.data
        if data is not None and data.size <= INLINE:
            dtype = f"np.{data.dtype.numpy.name}"
            array = data.numpy().tolist()
            spelled = re.sub(r"\b(nan|inf)\b", r"np.\1", repr(array))
            return f"{dtype}({spelled})" if not data.shape else f"np.array({spelled}, {dtype}).reshape({data.shape})"
        name = constant.name or f"constant_{len(self.weights)}"
        self.weights[name] = constant
        return f"weights[{name!r}]"

    def line(self, node):
        entry = TABLE.find(node.op.name)
        if entry is None:
            raise IrcError(f"numpy has no lowering of {node.label}; legalize the model first")
        operands = [self.operand(v) for v in node.operands]
        text = entry.rule(self, *node.op.group(operands), **node.keywords)
        (result,) = node.results
        sizes = ", ".join(map(str, result.dims))
        return f"    {self.name(result)} = {text}  # {result.dtype}[{sizes}]"


def emit(model, entry):
    """(module text, weights by name) of an entry whose sizes are all numbers."""
    function = model.entry(entry)
    out = Emitter(model)
    parameters = [out.name(v) for v in function.inputs]
    lines = [out.line(node) for node in function.body.nodes]
    results = "".join(f"{out.operand(v)}, " for v in function.outputs)
    head = ", ".join([*parameters, "weights"] if out.weights else parameters)
    body = "\n".join([f"def main({head}):", *lines, f"    return ({results})"])
    helpers = [inspect.getsource(f) for f in out.helpers.values()]
    title = f'"""The function {entry!r} of the model {model.name!r}, written by irc-sample-plugin."""'
    text = "\n\n\n".join(["\n\n".join([title, "import numpy as np"]), *(h.rstrip() for h in helpers), body]) + "\n"
    contents = Evaluator(model).constant if any(c.data is None for c in out.weights.values()) else None
    return text, {n: c.data.numpy() if c.data is not None else contents(c) for n, c in out.weights.items()}
