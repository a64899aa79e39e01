"""Parses models and functions: the outer parts of the grammar.  Nodes are read by nodes.py.

Bodies are read after all headers, callees before callers, because the type of a call needs the callee's outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NoReturn

from ..data import Data, DataSource
from ..dims import Assumption
from ..errors import FormatError
from ..model import Constant, Function, Model, Value
from ..types import TensorType, Type
from .lexer import END, label, unquote
from .nodes import NodeReader, Scope
from .version import SYNTAX, UPGRADES, VOCABULARY

_HEADER = re.compile(r"(?:[ \t]*//[^\n]*\n|\s)*+irc[ \t]+([0-9]{1,9})[ \t]+vocabulary[ \t]+([0-9]{1,9})[ \t]*(?:\n|\Z)")
_HEADER_FORM = f"irc {SYNTAX} vocabulary {VOCABULARY}"


def parse_model(text: str, *, filename: str = "model.ir", data: Mapping[str, Data] | None = None) -> Model:
    """The model that a text describes; FormatError says where it is wrong and what was expected.

    `data` holds the contents of named constants by name (a container has them); splats stand in the text itself.
    """
    try:
        return _Parser(_upgraded(text, filename), filename, data).model()
    except RecursionError:
        raise FormatError(f"{filename}: error: the text nests too deeply") from None


def _upgraded(text: str, filename: str) -> str:
    """The text in today's vocabulary."""
    found = _HEADER.match(text)
    if found is None:
        raise FormatError(
            f"{filename}:1:1: error: expected a first line such as {_HEADER_FORM!r}; this is not the text of a model"
        )
    syntax, vocabulary = int(found[1]), int(found[2])
    if syntax > SYNTAX or vocabulary > VOCABULARY:
        raise FormatError(
            f"{filename}:1:1: error: written by a newer irc (syntax {syntax}, vocabulary {vocabulary}); "
            f"this one reads up to syntax {SYNTAX}, vocabulary {VOCABULARY}"
        )
    if syntax < 1 or vocabulary < 1:
        raise FormatError(
            f"{filename}:1:1: error: there is no syntax {syntax} or vocabulary {vocabulary}; both count from 1"
        )
    while vocabulary < VOCABULARY:
        text = UPGRADES[vocabulary](text)
        vocabulary += 1
    return text


class _Parser(NodeReader):
    def __init__(self, text: str, filename: str, data: Mapping[str, Data] | None) -> None:
        super().__init__(text, filename)
        self.data = data
        self.start_of_init = 0
        self.bodies: dict[str, int] = {}
        """Function -> its first token behind the opening brace."""
        self.outputs: dict[str, list[Type]] = {}
        self.input_keys: dict[str, list[tuple[str, int]]] = {}

    # The model.

    def model(self) -> Model:
        model = self.out
        self.at = 4  # behind `irc N vocabulary N`, which was checked
        self.expect("model")
        model.name = self.string("the model's name in quotes")
        self.expect("{")
        self.metadata(model.metadata)
        while self.accept("requires"):
            namespace = self.identifier("the namespace of a plug-in")
            self.expect("from", "and the distribution that has the plug-in")
            self.required[namespace] = self.string()
        while self.accept("weight"):
            self.weight()
        calls: dict[str | None, list[str]] = {}
        try:
            self.headers(calls)
        except FormatError as error:
            self.blame_a_body(calls, error)
        for name in self.callees_first(calls):
            self.body(name)
        return model

    def headers(self, calls: dict[str | None, list[str]]) -> None:
        """The headers of `init` (None) and all functions, up to the end; what each calls is noted."""
        if self.accept("init"):
            self.expect("{")
            self.start_of_init, calls[None] = self.at, []
            calls[None] = self.skip_body()
        while not self.accept("}"):
            if self.token not in ("private", "host", "func"):
                first = "metadata, requires, weight, init, func or }"
                raise self.expected("func, host func, private func or }" if self.bodies else first)
            name = self.function_header()
            calls[name] = []
            calls[name] = self.skip_body()
        if self.at != len(self.tokens) - 1:
            raise self.expected("the end of the text after the model's }")

    def blame_a_body(self, calls: dict[str | None, list[str]], error: FormatError) -> NoReturn:
        """Headers cannot be found where braces are out of order: a fault inside a body says better why."""
        for name in self.callees_first(calls):
            try:
                self.body(name)
            except FormatError as inner:
                # One that stems from typing may come of a callee that was not found.
                raise (inner if inner.__cause__ is None else error) from None
        raise error

    def body(self, name: str | None) -> None:
        if name is not None:
            self.function_body(self.out.functions[name])
        else:
            self.init()

    def metadata(self, into: dict[str, str]) -> None:
        while self.accept("metadata"):
            name = self.key("a key")
            self.expect("=")
            into[name] = self.string()

    def constant_head(self) -> tuple[str, dict[str, str]]:
        place = self.at
        name = self.sigil("#", "a constant's name (#name)")
        if name in self.out.constants:
            raise self.error(f"there is a constant #{label(name)} already", place)
        metadata: dict[str, str] = {"label": self.string()} if self.token[0] == '"' else {}
        metadata.update(self.marks())
        return name, metadata

    def weight(self) -> None:
        place = self.at
        name, metadata = self.constant_head()
        self.expect(":")
        at = self.at
        type_ = self.type()
        self.static(type_, at)
        data: Data | None
        if self.accept("="):
            data = self.contents(type_, at)
        else:
            data = None if self.data is None else self.stored(name, type_)
            if data is None:
                why = "only the text was given; open the model.ir container that it comes from"
                why = why if self.data is None else "the container has no tensor of that name"
                raise self.error(f"the contents of the weight #{label(name)} are missing: {why}", place)
            if data.type != type_:
                raise self.error(f"the weight #{label(name)} is declared as {type_}; its contents are {data.type}", at)
        constant = self.out.constants[name] = Constant(self.out, name, type_, data)
        constant.metadata = metadata

    def stored(self, name: str, type_: Type) -> Data | None:
        """Contents that stand outside the text."""
        if isinstance(self.data, DataSource) and isinstance(type_, TensorType):
            return self.data.typed(name, type_) if name in self.data else None
        return None if self.data is None else self.data.get(name)

    # Functions.

    def function_header(self) -> str:
        public = not self.accept("private")
        host = self.accept("host")
        self.expect("func")
        place = self.at
        function = Function(
            self.sigil("@", "the function's name (@name)"), kind="host" if host else "device", public=public
        )
        if function.name in self.out.functions:
            raise self.error(f"there is a function @{label(function.name)} already", place)
        if self.accept("<"):
            while not self.accept(">"):
                if function.dims:
                    self.expect(",", "or >")
                function.dims.append(self.identifier("the name of a symbolic dim"))
        self.expect("(")
        self.input_keys[function.name] = self.inputs(function.body, function.input_attributes)
        self.expect("->")
        self.expect("(")
        types: list[Type] = []
        while not self.accept(")"):
            if types:
                self.expect(",", "or )")
            if self.token[0] == "%":
                if len(function.output_names) < len(types):
                    raise self.error("an output with a name after one without")
                function.output_names.append(self.sigil("%", "an output's name"))
                self.expect(":")
            types.append(self.type())
        self.expect("{")
        self.bodies[function.name], self.outputs[function.name] = self.at, types
        self.out.functions[function.name] = function
        return function.name

    def skip_body(self) -> list[str]:
        """Step behind the closing brace; the names of functions called inside."""
        tokens, depth, called, at = self.tokens, 1, dict[str, None](), self.at
        while depth:
            token = tokens[at]
            if token == "{":
                depth += 1
            elif token == "}":
                depth -= 1
            elif token == "callee" and tokens[at + 1] == "=" and tokens[at + 2][0] == "@":
                name = tokens[at + 2][1:]
                called[unquote(name) or "" if name[:1] == '"' else name] = None
            elif token == END:
                raise self.error("this { is never closed", self.at - 1)
            at += 1
        self.at = at
        return list(called)

    def callees_first(self, calls: dict[str | None, list[str]]) -> list[str | None]:
        """Functions in an order in which every callee comes before its callers; None is `init`, which comes early."""
        order: dict[str | None, None] = {}
        open_: dict[str | None, Iterator[str]] = {}
        for start in sorted(calls, key=lambda name: name is not None):
            if start not in order:
                open_[start] = iter(calls[start])
            while open_:
                name = next(reversed(open_))
                callee = next((c for c in open_[name] if c in calls and c not in order), None)
                if callee is None:
                    del open_[name]
                    order[name] = None
                elif callee in open_:
                    raise self.error(
                        f"@{label(name or '')} and @{label(callee)} call each other in a circle", self.bodies[callee]
                    )
                else:
                    open_[callee] = iter(calls[callee])
        return list(order)

    def function_body(self, function: Function) -> None:
        self.scope = Scope(function)
        self.at = self.bodies[function.name]
        for value, (key, at) in zip(function.inputs, self.input_keys[function.name], strict=True):
            self.define(value, key, at)
        self.metadata(function.metadata)
        while self.accept("assume"):
            function.assumptions[self.assumption()] = None
        self.nodes(function.body, "return")
        place = self.at - 1
        values = self.used_values()
        self.close_body("return")
        declared = self.outputs[function.name]
        if len(values) != len(declared):
            raise self.error(
                f"@{label(function.name)} declares {len(declared)} outputs, this returns {len(values)}", place
            )
        for i, (value, type_) in enumerate(zip(values, declared, strict=True)):
            if value.type != type_:
                raise self.error(f"output {i} is declared as {type_}, the value returned has type {value.type}", place)
        function.body.set_outputs(values)

    def assumption(self) -> Assumption:
        start = self.at
        left = self.size()
        relation = self.token
        if relation in ("==", "<="):
            self.at += 1
            right = self.size()
        else:
            self.at = start
            self.expect("bcast", "(a, b), or a comparison by == or <=")
            relation = "bcast"
            self.expect("(")
            left = self.size()
            self.expect(",")
            right = self.size()
            self.expect(")")
        sometimes = self.accept("sometimes")
        self.expect("from", "and the node's name")
        return Assumption(relation, left, right, self.string(), sometimes)  # type: ignore[arg-type]  # one of the three relations

    def init(self) -> None:
        self.scope = Scope(None)
        self.at = self.start_of_init
        model = self.out
        self.nodes(model.init, "yield")
        outputs: list[Value] = []
        while self.token != "}":
            if outputs:
                self.expect(",", "or }")
            outputs.append(self.used_value())
            self.expect("as", "and the constant's name (#name)")
            name, metadata = self.constant_head()
            constant = model.constants[name] = Constant(model, name, outputs[-1].type, None)
            constant.metadata = metadata
            model.derived.append(constant)
        self.close_body("yield")
        model.init.set_outputs(outputs)
