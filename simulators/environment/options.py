"""Options of episodes: the settings that each profile sets, and the settings that the user changes.

Profile `simia` has the settings of the released code (microsoft/Simia-Agent-Training); `default` is the behaviour that
this project does. `PROFILES` is the whole difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from core.config import Settings
from core.errors import UsageError
from core.settings.group import list_given, replace_values
from simulators.options import DEFAULT, SIMIA

ANSWER_TOKENS = 500
"""Tokens of the agent's context that are kept free for its next answer."""
RESERVE_TOKENS = 500
"""Tokens of the agent's context that are kept free for the next answer of the environment."""


@dataclass(frozen=True, kw_only=True)
class EpisodeOptions:
    """Options of the episodes of a server. Each but the first is a setting, most of them `episode_...`.

    `turns`: of the agent, at most. `actions`: its calls and messages, at most. `steps`: of the simulator; at the last
    step the judge decides. `context`: tokens of the agent's context. `overlong`: an episode that exceeds it earns 0
    (`zero`), or is judged as it stands (`judge`). `attempts`: requests until an answer can be used. `rules`: whether
    malformed and invalid calls are answered by rule, and results of tools checked. `rewrites`: share of groups whose
    first message is rewritten, 0..1. `groups`: number of groups, for the choice of samples. `temperature` and
    `judge_temperature`: of sampling. `draw`: number from which everything random is drawn.
    """

    profile: str
    turns: int = 40
    actions: int = 60
    steps: int = 100
    context: int = 32_000
    overlong: str = "judge"
    attempts: int = 3
    rules: bool = True
    rewrites: float = 0.5
    groups: int = 16
    temperature: float = 1.0
    judge_temperature: float = 0.0
    draw: int = 0

    @property
    def context_limit(self) -> int:
        """Tokens of system prompt and conversation from which on the agent cannot be given another turn."""
        return max(self.context - ANSWER_TOKENS - RESERVE_TOKENS, 0)


PROFILES: Mapping[str, EpisodeOptions] = {
    SIMIA: EpisodeOptions(
        profile=SIMIA, context=9000, overlong="zero", rules=False, rewrites=0.0, judge_temperature=1.0
    ),
    DEFAULT: EpisodeOptions(profile=DEFAULT),
}
GENERAL: Mapping[str, Mapping[str, Any]] = {
    SIMIA: {"workers": 128, "llm_answer_tokens": 60_000, "llm_timeout": 600.0, "llm_context": 60_000},
    DEFAULT: {"workers": 64, "llm_answer_tokens": 8_192, "llm_timeout": 500.0, "llm_context": 128_000},
}
"""Profile -> settings of other commands that it has values of its own for, where the user sets none."""


def resolve_options(profile: str, settings: Settings) -> EpisodeOptions:
    """Return the options of a profile, with the settings that the user sets in place of its own.

    Raises:
        UsageError: there is no such profile.
    """
    if profile not in PROFILES:
        raise UsageError(f"--profile: {profile} is unknown", advice=f"one of {', '.join(PROFILES)}")
    changes: dict[str, Any] = {}
    simulation = settings.simulation
    given = {**dict(settings.episode), "temperature": simulation.temperature, "draw": simulation.draw}
    for option in fields(EpisodeOptions):
        value = given.get(option.name)
        if value is not None:
            changes[option.name] = value == "on" if option.type == "bool" else value
    return replace(PROFILES[profile], **changes)


def apply_profile(profile: str, settings: Settings) -> Settings:
    """Return the settings with those of `GENERAL` that the user does not set."""
    given = list_given(settings)
    changes = {name: value for name, value in GENERAL[profile].items() if name not in given}
    return replace_values(settings, changes)
