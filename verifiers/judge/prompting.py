"""What the judge tells a model (`backends.llm.prompts`)."""

from __future__ import annotations

from pathlib import Path

from backends.llm.prompts import Prompts

FOLDER = Path(__file__).parent / "prompts"
_PROMPTS = Prompts(FOLDER)
question, told = _PROMPTS.question, _PROMPTS.told
