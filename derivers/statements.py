"""Problem statements that a kind of task writes itself: a Jinja template beside the kind."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from core.templates import make_environment


def render_template(template: str, **values: Any) -> str:
    """Return the text of a template.

    Args:
        template: its path below this folder.
        values: values of the template's variables.

    Raises:
        jinja2.UndefinedError: a value is missing.
    """
    return _load_templates().get_template(template).render(values)


@cache
def _load_templates() -> jinja2.Environment:
    return make_environment(Path(__file__).parent)
