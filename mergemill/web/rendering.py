"""Templates of the pages. Every value is escaped, and its hidden characters are made visible."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup
from starlette.responses import HTMLResponse, JSONResponse

from mergemill.web.inline_assets import STYLE, THEME_SCRIPT
from mergemill.web.statement import render_statement
from mergemill.web.visible_text import make_visible

FOLDER = Path(__file__).parent
NOTHING = "\u2013"
"""Shown where there is no value."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


@cache
def make_templates() -> jinja2.Environment:
    """Return the environment of the templates, which all applications of a process share."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_finalize,
        autoescape=True,
    )
    environment.filters |= {
        "address": build_address,
        "day": lambda value: str(value or "")[:10],
        "markdown": render_statement,
        "number": format_number,
        "duration": format_duration,
        "share": lambda value: NOTHING if value is None else f"{100 * value:.0f} %",
    }
    environment.globals |= {"style": Markup(STYLE), "theme_script": Markup(THEME_SCRIPT)}  # noqa: S704 - our own files
    for name in environment.list_templates():
        environment.get_template(name)  # compiled now, as no page should wait for it
    return environment


def build_address(name: str, key: str) -> str:
    """Return the last part of a record's address: its name, or its id where a browser would not keep the name."""
    return quote(name if _PLAIN_NAME.fullmatch(name) and ".." not in name else key, safe="")


def format_duration(seconds: float | None) -> str:
    """Return seconds for people: `0.4 s`, `3 min 20 s`, `2 h 05 min`."""
    if seconds is None:
        return NOTHING
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


class PageResponse(HTMLResponse):
    """HTML in which characters that UTF-8 cannot encode are replaced."""

    def render(self, content: Any) -> bytes:
        """Return the page as bytes."""
        return str(content).encode(errors="replace")


class DataResponse(JSONResponse):
    """JSON in ASCII, so that any text of a repository can be sent."""

    def render(self, content: Any) -> bytes:
        """Return the data as bytes."""
        return json.dumps(content, default=str).encode()


def _finalize(value: Any) -> Any:
    return make_visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def format_number(value: Any) -> str:
    """Return a number with thin spaces between thousands; a dash for none."""
    if value is None:
        return NOTHING
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{value:,}".replace(",", "\u2009")
