"""Prompts: templates of a folder `NAME-VERSION/`.

A version that has been in use is never changed: another wording is another folder, and records and cached answers name
their version.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from backends.llm.base import Message
from core.templates import make_environment

DELIMITER_DIGITS = 16
"""Hex digits of the delimiter around data."""


class PromptTemplates:
    """Prompt templates of a folder."""

    def __init__(self, folder: Path) -> None:
        self._environment = make_environment(folder)

    def render_conversation(self, prompt: str, **values: Any) -> tuple[Message, ...]:
        """Return the start of a conversation: `system.md.j2` and `user.md.j2` of a prompt, rendered.

        Foreign texts are enclosed in lines with a mark that is a hash of all values, so that no text can contain the
        closing delimiter. A missing value is a bug.
        """
        mark = hashlib.sha256(repr(sorted(values.items())).encode(errors="replace")).hexdigest()[:DELIMITER_DIGITS]
        system, user = (self._render(prompt, part, {**values, "mark": mark}) for part in ("system", "user"))
        return Message(role="system", text=system), Message(role="user", text=user)

    def render_message(self, prompt: str, part: str, **values: Any) -> Message:
        """Return a later message of the conversation: another template of the prompt."""
        return Message(role="user", text=self._render(prompt, part, values))

    def _render(self, prompt: str, part: str, values: dict[str, Any]) -> str:
        text = self._environment.get_template(f"{prompt}/{part}.md.j2").render(values).strip() + "\n"
        return text.encode(errors="replace").decode()  # surrogates cannot be sent
