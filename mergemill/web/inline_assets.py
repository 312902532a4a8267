"""Style sheet and theme as parts of every page: the first paint waits for no further request."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

_STATIC = Path(__file__).parent / "static"
STYLE = (_STATIC / "style.css").read_text(encoding="utf-8")
THEME_SCRIPT = (_STATIC / "theme.js").read_text(encoding="utf-8")


def build_source(content: str) -> str:
    """Return the source by which a Content-Security-Policy permits a single inlined text and no other."""
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
