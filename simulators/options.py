"""Options of a simulation: the settings that each profile sets, and the settings that the user changes.

Profile `simia` has the settings and rules of the released code (microsoft/Simia-Agent-Training, of the paper arXiv
2511.01824); `default` is the behaviour that this project does. `PROFILES` is the whole difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from core.config import Settings
from core.errors import UsageError
from core.settings.group import list_given, replace_values
from core.settings.simulation import SimulationSettings

SIMIA = "simia"
DEFAULT = "default"


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """Options of a run. Each but the first three is a setting `simulate_...` of the same name.

    `temperature`: of sampling. `prefilter`: `off`, `rules` or `model`. `seed_choice`: `round-robin` or `random` (with
    replacement). `attempts`: requests for a conversation until an answer can be parsed. `pause`: seconds between two
    submissions. `scenarios`, `seen_ids`: whether on. `failures`: share of conversations with a failing call, 0..1.
    `near_duplicates`: similarity above which the later is dropped, 1 for none. `benchmarks`: files of texts that no
    conversation may repeat. `think`: the treatment becomes of reasoning, visible `text` or `reasoning_content`.
    `target`: whose form of tools the system prompt has. `draw`: number from which everything random is drawn.
    """

    profile: str
    prompt: str
    """Folder of the prompt's templates."""
    released_rules: bool
    """Whether parsing and repair are those of the released code, with no further rules for turns and languages."""
    temperature: float = 1.0
    prefilter: str = "model"
    seed_choice: str = "round-robin"
    attempts: int = 3
    pause: float = 0.0
    scenarios: bool = True
    failures: float = 0.1
    seen_ids: bool = True
    near_duplicates: float = 0.7
    benchmarks: tuple[str, ...] = ()
    think: str = "reasoning"
    target: str = "qwen"
    draw: int = 0


PROFILES: Mapping[str, SimulationOptions] = {
    SIMIA: SimulationOptions(
        profile=SIMIA,
        prompt="simia-1",
        released_rules=True,
        prefilter="off",
        seed_choice="random",
        attempts=1,
        pause=1.0,
        scenarios=False,
        failures=0.0,
        seen_ids=False,
        near_duplicates=1.0,
        think="text",
    ),
    DEFAULT: SimulationOptions(profile=DEFAULT, prompt="conversation-1", released_rules=False),
}
GENERAL: Mapping[str, Mapping[str, Any]] = {
    SIMIA: {"workers": 200, "llm_answer_tokens": 60_000, "llm_timeout": 500.0, "llm_context": 200_000},
    DEFAULT: {"workers": 8, "llm_answer_tokens": 16_384, "llm_timeout": 500.0, "llm_context": 128_000},
}
"""Profile -> settings of other commands that it has values of its own for, where the user sets none."""


def resolve_options(profile: str, simulation: SimulationSettings) -> SimulationOptions:
    """Return the options of a profile, with the settings that the user sets in place of its own.

    Raises:
        UsageError: there is no such profile.
    """
    if profile not in PROFILES:
        raise UsageError(f"--profile: {profile} is unknown", advice=f"one of {', '.join(PROFILES)}")
    changes: dict[str, Any] = {}
    for option in fields(SimulationOptions):
        value = getattr(simulation, option.name, None)
        if value is not None:
            changes[option.name] = value == "on" if option.type == "bool" else value
    return replace(PROFILES[profile], **changes)


def apply_profile(profile: str, settings: Settings) -> Settings:
    """Return the settings with those of `GENERAL` that the user does not set."""
    given = list_given(settings)
    changes = {name: value for name, value in GENERAL[profile].items() if name not in given}
    return replace_values(settings, changes)
