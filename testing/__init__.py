"""Helpers for authors of passes, operators and targets: agreement of outputs, and what their tests need."""
