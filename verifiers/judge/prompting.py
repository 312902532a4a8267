"""Prompt templates of the judge (`backends.llm.prompts`)."""

from __future__ import annotations

from pathlib import Path

from backends.llm.prompts import PromptTemplates

PROMPT_DIR = Path(__file__).parent / "prompts"
_PROMPTS = PromptTemplates(PROMPT_DIR)
render_conversation, render_message = _PROMPTS.render_conversation, _PROMPTS.render_message
