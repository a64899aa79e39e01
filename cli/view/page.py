"""Makes the page: the template with its style, script and data in place.  It loads nothing, and its bytes depend on its
data alone."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib import resources
from typing import Any

SCRIPTS = ("state", "drawing", "moving", "panels", "events", "selftest")
"""One script on the page, in this order; all names are common to all."""


def page(data: dict[str, Any]) -> bytes:
    """One ASCII HTML file with `data` and the viewer.  The policy in it lets no other script run, and nothing load."""
    style, script = _text("page.css"), "\n".join(_text(f"{name}.js") for name in SCRIPTS)
    parts = {
        "POLICY": f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}",
        "TITLE": html.escape(f"{data['model']} - irc view"),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": embedded(data),
    }
    text = re.sub(r"\{\{([A-Z]+)\}\}", lambda m: parts[m[1]], _text("page.html"))
    return text.encode("ascii", "xmlcharrefreplace")


def embedded(data: dict[str, Any]) -> str:
    """JSON that cannot end the element around it, whatever the names in it are."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    """How the policy names an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
