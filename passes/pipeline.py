"""Pipelines of passes: their text, running them with verification, printing and a report, reproducers of failures."""

from __future__ import annotations

import dataclasses
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from ..ir.clone import clone_model
from ..ir.collection import collection_paused
from ..ir.errors import AssumptionError, InputError, IrcError, UnsupportedError, VerifyError
from ..ir.model import Model
from ..ir.rewrite import Rewriter
from .manager import Pass, PassError, get_pass, level_of, make_pass, set_level

_CANONICAL = "fixpoint(max=4){canonicalize,lower-loops,fold,cse}"
BEFORE_FUSIONS = f"dce,{_CANONICAL},dce"
"""What brings a model to the form that fusions match."""
DEFAULT = f"{BEFORE_FUSIONS},fixpoint(max=3){{fuse,{_CANONICAL},dce}},sink-transposes,batch-norm,{_CANONICAL},dce"
"""What `irc.compile` and `irc opt` run when nothing else is asked for."""


@dataclass(frozen=True)
class Pipeline:
    """Passes and repeated groups of passes, in order.  `str()` spells it so that `parse_pipeline` reads it back."""

    items: tuple[Pass | Fixpoint, ...] = ()

    def __str__(self) -> str:
        return ",".join(map(str, self.items))

    def __add__(self, other: Pipeline) -> Pipeline:
        return Pipeline(self.items + other.items)


@dataclass(frozen=True)
class Fixpoint:
    """A group that runs again while it changes anything, at most `max` times."""

    body: Pipeline
    max: int = 8

    def __str__(self) -> str:
        return f"fixpoint(max={self.max}){{{self.body}}}"


def parse_pipeline(text: str) -> Pipeline:
    """The pipeline that `canonicalize,cse{across-graphs=false},fixpoint(max=4){fold,dce}` spells.

    IrcError names the column of what is wrong.  Values with punctuation stand in quotes: `specialize{dims="B=1,S=8"}`.
    """
    pipeline = _Parser(text).whole()
    check_order(pipeline)
    return pipeline


def check_order(pipeline: Pipeline) -> None:
    """IrcError unless every pass stands where its `requires`, `after` and `before` allow it."""
    first: dict[str, int] = {}
    steps = _flat(pipeline)
    for i, step in enumerate(steps):
        first.setdefault(step.name, i)
    for step in {s.name: s for s in steps}.values():
        own = first[step.name]
        for name in step.requires:
            if first.get(name, own) >= own:
                get_pass(name)
                raise IrcError(f"the pass {step.name!r} requires {name!r} before it: {name},{step}")
        for name, early, late in (*((n, n, step.name) for n in step.after), *((n, step.name, n) for n in step.before)):
            get_pass(name)  # a misspelt name must not pass in silence
            if name in first and first[early] >= first[late]:
                where = "after" if late == step.name else "before"
                raise IrcError(f"the pass {step.name!r} must come {where} {name!r}; in {str(pipeline)!r} it does not")


def _flat(pipeline: Pipeline) -> list[Pass]:
    """The passes of a pipeline in the order of their first runs."""
    out: list[Pass] = []
    for item in pipeline.items:
        out.extend(_flat(item.body) if isinstance(item, Fixpoint) else [item])
    return out


_TOKEN = re.compile(r"""\s*(?:("[^"]*"|'[^']*')|([^\s{}(),="']+)|([{}(),=]))""")
_MAX_NESTING = 16
_PRINTED_WEIGHTS = 1 << 16  # bytes


class _Parser:
    """Recursive descent over a pipeline's text; `nesting` is bounded."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.nesting = 0

    def whole(self) -> Pipeline:
        pipeline = self.pipeline(closing="")
        if self.peek():
            self.fail("a comma or the end")
        return pipeline

    def pipeline(self, closing: str) -> Pipeline:
        items: list[Pass | Fixpoint] = []
        if self.peek() == closing:
            return Pipeline()
        while True:
            items.append(self.item())
            if self.peek() != ",":
                return Pipeline(tuple(items))
            self.take()

    def item(self) -> Pass | Fixpoint:
        start = self.next_column()
        name = self.word("the name of a pass")
        if name == "fixpoint":
            return self.fixpoint(start)
        options: dict[str, str] = {}
        if self.peek() == "{":
            self.take()
            options = self.options("}")
        try:
            return make_pass(get_pass(name), options)
        except IrcError as error:
            raise IrcError(f"pipeline column {start}: {error}") from None

    def fixpoint(self, start: int) -> Fixpoint:
        options: dict[str, str] = {}
        if self.peek() == "(":
            self.take()
            options = self.options(")")
        times = options.pop("max", "8")
        if options or not times.isdigit() or int(times) < 1:
            raise IrcError(f"pipeline column {start}: fixpoint takes (max=N) with N at least 1, and a group in braces")
        self.expect("{")
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise IrcError(f"pipeline column {start}: groups are nested more than {_MAX_NESTING} deep")
        body = self.pipeline("}")
        self.nesting -= 1
        self.expect("}")
        return Fixpoint(body, int(times))

    def options(self, closing: str) -> dict[str, str]:
        out: dict[str, str] = {}
        while self.peek() != closing:
            column = self.next_column()
            name = self.word("the name of an option")
            if name in out:
                raise IrcError(f"pipeline column {column}: the option {name!r} is given twice")
            out[name] = "true"
            if self.peek() == "=":
                self.take()
                out[name] = self.word(f"a value of {name}", quoted=True)
            if self.peek() == ",":
                self.take()
            elif self.peek() != closing:
                self.fail(f"a comma or {closing!r}")
        self.take()
        return out

    def _match(self) -> re.Match[str] | None:
        return _TOKEN.match(self.text, self.position)

    def peek(self) -> str:
        """The next token, or the empty string at the end."""
        match = self._match()
        if match is None:
            if self.text[self.position :].strip():
                self.fail("a closed quotation")
            return ""
        return match.group().strip()

    def next_column(self) -> int:
        rest = self.text[self.position :]
        return self.position + len(rest) - len(rest.lstrip()) + 1

    def take(self) -> str:
        token = self.peek()
        match = self._match()
        self.position = match.end() if match else len(self.text)
        return token

    def word(self, expected: str, *, quoted: bool = False) -> str:
        self.peek()  # an open quotation is reported as such
        match = self._match()
        if match is None or not (match.group(2) or (quoted and match.group(1) is not None)):
            self.fail(expected)
        self.position = match.end()
        return match.group(2) or match.group(1)[1:-1]

    def expect(self, token: str) -> None:
        if self.peek() != token:
            self.fail(repr(token))
        self.take()

    def fail(self, expected: str) -> NoReturn:
        rest = self.text[self.position :].strip()
        got = repr(rest[:20]) if rest else "the end"
        raise IrcError(f"pipeline column {self.next_column()}: expected {expected}, got {got}\n  {self.text}\n"
                       f"  {' ' * (self.next_column() - 1)}^")  # fmt: skip


@dataclass
class PassReport:
    """What one run of one pass did."""

    name: str
    seconds: float
    nodes_before: int
    nodes_after: int
    changes: int
    rewrites: dict[str, int] = field(default_factory=dict)
    """Nodes replaced, by the label of the rewrite."""


@dataclass
class PipelineReport:
    """What a pipeline did, one entry a run of a pass."""

    passes: list[PassReport] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return sum(p.seconds for p in self.passes)

    def rewrites(self) -> Counter[str]:
        """Nodes replaced in the whole pipeline, by rewrite."""
        total: Counter[str] = Counter()
        for entry in self.passes:
            total.update(entry.rewrites)
        return total

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {"seconds": self.seconds, "passes": [dataclasses.asdict(p) for p in self.passes]}

    def __str__(self) -> str:
        rows = [("pass", "ms", "nodes", "changes")]
        rows += [
            (p.name, f"{p.seconds * 1e3:.1f}", f"{p.nodes_before} -> {p.nodes_after}", str(p.changes))
            for p in self.passes
        ]
        widths = [max(len(r[i]) for r in rows) for i in range(4)]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows)


Observer: TypeAlias = Callable[[Pass, Rewriter], None]
"""Told of every run of a pass."""


@dataclass
class _Run:
    """The settings of one `run_pipeline`, the model at its start, and what has run."""

    model: Model
    original: Model
    verify_each: bool
    print_after: Collection[str]
    print_changed: bool
    disable: Collection[str]
    report: PipelineReport
    write: Callable[[str], None]
    observe: Observer | None = None
    done: list[Pass] = field(default_factory=list)

    def pipeline(self, pipeline: Pipeline) -> bool:
        changed = False
        for item in pipeline.items:
            if isinstance(item, Fixpoint):
                changed |= self.fixpoint(item)
            elif item.name not in self.disable:
                changed |= self.one(item)
        return changed

    def fixpoint(self, group: Fixpoint) -> bool:
        for i in range(group.max):
            if not self.pipeline(group.body):
                return i > 0
        return True

    def one(self, step: Pass) -> bool:
        step.check_level(self.model)
        self.done.append(step)
        rewriter = Rewriter(self.model, step.name)
        before = count_nodes(self.model)
        start = time.perf_counter()
        try:
            step.run(self.model, rewriter)
        except (UnsupportedError, AssumptionError, InputError):
            raise  # the model or the request is at fault, and the message says how
        except Exception as error:
            self.fail(step, error)
        seconds = time.perf_counter() - start
        set_level(self.model, step.reaches)
        rewrites = Counter(c.rewrite for c in rewriter.changes if c.kind == "replace")
        after = count_nodes(self.model)
        self.report.passes.append(PassReport(str(step), seconds, before, after, len(rewriter.changes), dict(rewrites)))
        if self.verify_each:
            self.verify(step)
        if self.observe is not None:
            self.observe(step, rewriter)
        if step.name in self.print_after or (self.print_changed and rewriter.changed):
            self.write(f"// after {step}\n{_text(self.model)}")
        return rewriter.changed

    def verify(self, step: Pass) -> None:
        from ..ir.verify import check

        try:
            check(self.model, level=str(level_of(self.model)))
        except VerifyError as error:
            self.fail(step, error)

    def fail(self, step: Pass, error: Exception) -> NoReturn:
        wrong = "left an invalid model" if isinstance(error, VerifyError) else "failed"
        said = str(error) if isinstance(error, IrcError) else f"{type(error).__name__}: {error}"
        path, note = _write_reproducer(self.original, self.done)
        raise PassError(f"the pass {step.name!r} {wrong}: {said}\n  note: {note}", step.name, path, step) from error


@collection_paused()
def run_pipeline(
    model: Model,
    pipeline: Pipeline,
    *,
    verify_each: bool = False,
    print_after: Collection[str] = (),
    print_changed: bool = False,
    disable: Collection[str] = (),
    report: PipelineReport | None = None,
    write: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
    original: Model | None = None,
    observe: Observer | None = None,
) -> PipelineReport:
    """Run the passes on `model` itself and report.

    `verify_each` checks the model after every pass; `print_after` (names of passes) and `print_changed` write its
    text; passes named in `disable` are left out.  A pass that breaks raises PassError, which names a file with the
    model as it was at the start (`original`, default: a copy made now) and the passes up to the broken one.
    `observe` is called after every run of a pass, with the rewriter whose log tells what it did.
    """
    for name in {*print_after, *disable}:
        get_pass(name)  # a misspelt name must not pass in silence
    check_order(pipeline)
    report = PipelineReport() if report is None else report
    original = clone_model(model) if original is None else original
    run = _Run(model, original, verify_each, print_after, print_changed, disable, report, write, observe)
    run.pipeline(pipeline)
    return report


@collection_paused()
def run_passes(
    model: Model,
    pipeline: str | Pipeline | Sequence[Pass] = DEFAULT,
    *,
    report: PipelineReport | None = None,
    **options: Any,
) -> Model:
    """A new model, the old one improved; `model` stays as it is.  `options` are those of `run_pipeline`."""
    if isinstance(pipeline, str):
        pipeline = parse_pipeline(pipeline)
    elif not isinstance(pipeline, Pipeline):
        if not isinstance(pipeline, list | tuple) or not all(isinstance(p, Pass) for p in pipeline):
            raise IrcError(f"expected a pipeline as text, a Pipeline or a list of passes, got {pipeline!r}")
        pipeline = Pipeline(tuple(pipeline))
    out = clone_model(model)
    run_pipeline(out, pipeline, report=report, original=model, **options)
    return out


def count_nodes(model: Model) -> int:
    """Nodes of all functions, sub-graphs and `init` included."""
    return sum(len(graph) for graph in model.graphs())


def _text(model: Model) -> str:
    from ..ir.text import print_model

    # Weights small enough to read are part of the text, so that a reproducer needs no other file.
    weights = sum(c.data.nbytes for c in model.constants.values() if c.data is not None)
    return print_model(model, inline_weights=weights <= _PRINTED_WEIGHTS)


def _write_reproducer(model: Model, done: Sequence[Pass]) -> tuple[str | None, str]:
    """The path of a file that shows the failure again, and a sentence about it."""
    pipeline = Pipeline(tuple(done))
    try:
        text = _text(model)
    except Exception as error:  # the first failure is the one to report; this one must not hide it
        return None, f"no reproducer could be written ({type(error).__name__}: {error}); the passes were {pipeline}"
    with tempfile.NamedTemporaryFile("w", prefix="irc-reproducer-", suffix=".ir", delete=False) as file:
        file.write(f"// RUN: irc opt %s -p '{pipeline}' --verify-each\n{text}")
    return file.name, f"reproducer: {file.name}"
