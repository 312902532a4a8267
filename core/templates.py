"""Jinja environment that all templates share: scripts, Dockerfiles, problem statements and prompts."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import jinja2

TemplateSource = Path | Callable[[str], str | None]
"""Folder of templates, or a function that returns a template's text by its name (None: no such template)."""


def make_environment(source: TemplateSource, *, comment_marks: tuple[str, str] = ("{#", "#}")) -> jinja2.Environment:
    """Return an environment that fails on undefined values and drops the lines of its blocks.

    Nothing is escaped, as no template is HTML. The filter `sh` quotes a value as a word of a shell.

    Args:
        source: source where the templates are.
        comment_marks: start and end of a comment; bash needs others, as `{#` is part of `${#array[@]}`.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(source) if isinstance(source, Path) else jinja2.FunctionLoader(source),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        comment_start_string=comment_marks[0],
        comment_end_string=comment_marks[1],
        autoescape=False,  # noqa: S701 - see above
    )
    environment.filters["sh"] = shlex.quote
    return environment
