"""Passes over the graph IR.  This file is the door: pipelines by text, runs and reports; each pass has its own file."""

from __future__ import annotations

from .manager import Level, Pass, PassError, all_passes, get_pass, register
from .pipeline import DEFAULT, PassReport, Pipeline, PipelineReport, parse_pipeline, run_passes, run_pipeline

__all__ = [
    "DEFAULT", "Level", "Pass", "PassError", "PassReport", "Pipeline", "PipelineReport", "all_passes", "get_pass",
    "parse_pipeline", "register", "run_passes", "run_pipeline",
]  # fmt: skip
