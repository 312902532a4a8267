"""Statements that a kind of task words itself: a template beside the kind, filled in."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2


def filled(template: str, **values: Any) -> str:
    """The text of a template, which is a path below this folder. A value that is missing is a bug."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Markdown, not HTML
    )  # fmt: skip
