"""A whole target at once, for its author: every operator that it claims, against the reference and the edge table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..ir.clone import clone_model
from ..ir.errors import UnsupportedError
from ..ir.model import Model
from ..ir.operators import all_operators
from ..passes.legalize import legalize
from ..targets import configured
from ..targets.base import Target
from . import cases, cases_of_families, edges
from .operators import model_of

NOT_ON_DEVICES = frozenset({"call", "trap", "bind_dim", "freeze", "onnx", "custom_call"})
"""Core operators without a case: they need more than one node, or are never part of device code."""


@dataclass
class TargetReport:
    """What a target did with the cases of the operators."""

    target: str
    ran: dict[str, int] = field(default_factory=dict)
    """Operator -> cases that ran and were right."""
    refused: dict[str, str] = field(default_factory=dict)
    """Operator -> the first reason why a case of it cannot run on the target."""
    failed: dict[str, str] = field(default_factory=dict)
    """Case -> what was wrong."""
    deviating: dict[str, str] = field(default_factory=dict)
    """Case that was wrong, as the target says it would be -> the reason it gives."""

    @property
    def unclaimed(self) -> list[str]:
        """Core operators of which no case ran."""
        core = {op.name for op in all_operators() if not op.is_composite} - NOT_ON_DEVICES
        return sorted(core & set(self.refused) - set(self.ran))

    def __str__(self) -> str:
        lines = [f"{self.target}: {sum(self.ran.values())} cases of {len(self.ran)} operators are right, "
                 f"{len(self.failed)} wrong, {len(self.refused)} operators are refused in part or whole"]  # fmt: skip
        return "\n".join([*lines, *(f"  {case}: {why}" for case, why in self.failed.items())])


def operator_cases() -> list[cases.Case]:
    """One-operator models with inputs that cover every core operator, its element types, empty and edge values."""
    return [*cases.cases(), *cases_of_families.cases()]


def check_target(
    target: str | Target,
    *,
    operators: Collection[str] | None = None,
    ulps: Mapping[str, float] | None = None,
    edge_cases: bool = True,
) -> TargetReport:
    """Run every case whose operators the target claims against the reference; AssertionError lists those that fail.

    A case with an operator that the target refuses is no failure: the report has the reason.  `operators` are those to
    look at (default: all); `ulps` are bounds for operators whose errors on this target are known to be greater, beside
    those that it states itself.  What the target lists in `deviations` must be wrong, and is no failure.
    `edge_cases` also runs the table `edges.json`, whose results must be equal bit by bit; composites are decomposed
    where the target does not claim them.
    """
    backend = configured(target, {})
    report = TargetReport(backend.spec)
    bounds = {**backend.ulps, **(ulps or {})}
    for case in operator_cases():
        if operators is None or case.op in operators:
            model = case.model()
            compared = partial(_check_case, case, case.expected(model), bounds.get(case.op) if case.ulps else None)
            _one(report, backend, case.op, case.id, model, case.arrays, compared)
    for row in edges.rows() if edge_cases else ():
        if operators is None or row["operator"] in operators:
            model, arrays = model_of(row["operator"], *edges.operands(row), **edges.attributes_of(row))
            _one(report, backend, row["operator"], row["id"], model, arrays, partial(edges.check, row))
    if report.failed:
        raise AssertionError(str(report))
    return report


def _check_case(case: cases.Case, expected: Any, ulps: float | None, results: Any) -> None:
    cases.check(case, results, expected, ulps=ulps)


def _one(
    report: TargetReport,
    backend: Target,
    op: str,
    name: str,
    model: Model,
    arrays: Any,
    check: Callable[[Any], None],
) -> None:
    """Run one case and enter it into the report."""
    work = clone_model(model)
    try:
        legalize(work, backend)
    except UnsupportedError as error:
        report.refused.setdefault(op, error.diagnostics[0].message)
        return
    try:
        check(list(backend.compile(work, "main", {}).run(arrays, True)))
    except Exception as error:  # whatever breaks in one case is told beside the others
        first = next((line for line in str(error).splitlines() if line.strip()), "no message")
        if name in backend.deviations:
            report.deviating[name] = backend.deviations[name]
        else:
            report.failed[name] = f"{type(error).__name__}: {first}"
    else:
        if name in backend.deviations:
            report.failed[name] = "is right, though the target lists it among its deviations: strike it there"
        report.ran[op] = report.ran.get(op, 0) + 1
