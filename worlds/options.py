"""Settings that have values of their own where worlds are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.settings.group import list_given, replace_values

if TYPE_CHECKING:
    from core.config import Settings

GENERAL: Mapping[str, Any] = {"workers": 8, "llm_answer_tokens": 16_384, "llm_context": 128_000}
"""Settings of other commands that have values of their own here, where the user sets none."""


def apply_defaults(settings: Settings) -> Settings:
    """Return the settings with those of `GENERAL` that the user does not set."""
    given = list_given(settings)
    return replace_values(settings, {name: value for name, value in GENERAL.items() if name not in given})
