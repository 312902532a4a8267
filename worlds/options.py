"""Options of making worlds and scenarios: each is a setting `worlds_...` of the same name.

The defaults in `core.config` are the published ones of EnvScaler (arXiv 2601.05808 and RUC-NLPIR/EnvScaler).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.config import Settings

SETTING_PREFIX = "worlds_"
GENERAL: Mapping[str, Any] = {"workers": 8, "llm_answer_tokens": 16_384, "llm_context": 128_000}
"""Settings of other commands that have values of their own here, where the user sets none."""


@dataclass(frozen=True, kw_only=True)
class MakingOptions:
    """Options of a run; `core.config` describes each under its name with `worlds_`. Models are None for --model."""

    attempts: int
    temperature: float | None
    themes: int
    min_usefulness: int
    min_modelability: int
    embedding_model: str
    draw: int
    test_states: int
    test_state_temperature: float
    gate_calls: int
    min_changes: float
    rounds: int
    calls_per_tool: int
    min_score: float
    tester_model: str | None
    checker_model: str | None
    checker_temperature: float
    verdict_attempts: int
    states: int
    state_temperature: float
    min_task_words: int
    check_attempts: int
    solver_model: str | None
    solver_temperature: float | None
    rollouts: int
    max_steps: int
    min_noticed: float


def read_options(settings: Settings) -> MakingOptions:
    """Return the options of the settings."""
    found: dict[str, Any] = {
        one.name: getattr(settings, f"{SETTING_PREFIX}{one.name}") for one in fields(MakingOptions)
    }
    return MakingOptions(**found)


def apply_defaults(settings: Settings) -> Settings:
    """Return the settings with those of `GENERAL` that the user does not set."""
    changes = {name: value for name, value in GENERAL.items() if name not in settings.model_fields_set}
    return settings.model_copy(update=changes)
