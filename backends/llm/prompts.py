"""What a model is told: the files of a folder `NAME-VERSION/`, filled in.

A version that has been asked with is never changed: another wording is another folder, and records and kept answers
name the one they were led by.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import jinja2

from backends.llm.base import Message

MARK = 16
"""Hex digits of the mark around what is data."""


class Prompts:
    """The prompts of a folder."""

    def __init__(self, folder: Path) -> None:
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(folder), undefined=jinja2.StrictUndefined, trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,  # noqa: S701 - text for a model, not HTML
        )  # fmt: skip

    def question(self, prompt: str, **values: Any) -> tuple[Message, ...]:
        """The beginning of a conversation: `system.md.j2` and `user.md.j2` of a prompt, filled in.

        Texts of others stand between lines with a mark that is made of the texts themselves, so that nothing in them
        can end what is said to be data. A value that is missing is a bug.
        """
        mark = hashlib.sha256(repr(sorted(values.items())).encode(errors="replace")).hexdigest()[:MARK]
        system, user = (self._filled(prompt, part, {**values, "mark": mark}) for part in ("system", "user"))
        return Message(role="system", text=system), Message(role="user", text=user)

    def told(self, prompt: str, part: str, **values: Any) -> Message:
        """A later message of the conversation: one more file of the prompt."""
        return Message(role="user", text=self._filled(prompt, part, values))

    def _filled(self, prompt: str, part: str, values: dict[str, Any]) -> str:
        text = self._environment.get_template(f"{prompt}/{part}.md.j2").render(values).strip() + "\n"
        return text.encode(errors="replace").decode()  # bytes that are no text cannot be sent
