"""What the model is told: the files of `prompts/`, filled in."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

FOLDER = Path(__file__).parent / "prompts"


def prompt(name: str, **values: Any) -> str:
    """A prompt, filled in. A value that is missing is a bug."""
    return _environment().get_template(f"{name}.md.j2").render(values).strip() + "\n"


@cache
def prompts_hash() -> str:
    """Sha256 over all prompts: what a transcript says it was led by."""
    files = sorted(FOLDER.glob("*.j2"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER), undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - text for a model, not HTML
    )  # fmt: skip
