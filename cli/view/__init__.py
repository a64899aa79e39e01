"""The page of `irc view`: what a pipeline did to a model, recorded, laid out and written as one HTML file."""

from __future__ import annotations

from .page import page
from .recording import record

__all__ = ["page", "record"]
