"""Prompts of the agent, rendered from the files of `prompts/`."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from core.templates import make_environment

PROMPT_FOLDER = Path(__file__).parent / "prompts"


def render_prompt(name: str, **values: Any) -> str:
    """Return a rendered prompt. A missing value is a bug and raises."""
    return _load_prompts().get_template(f"{name}.md.j2").render(values).strip() + "\n"


@cache
def hash_prompts() -> str:
    """Return the sha256 of all prompts, which each transcript records."""
    files = sorted(PROMPT_FOLDER.glob("*.j2"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


@cache
def _load_prompts() -> jinja2.Environment:
    return make_environment(PROMPT_FOLDER)
