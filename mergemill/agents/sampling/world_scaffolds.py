"""Scaffolds of scenarios: a loop with native tool calls, with a user or without one, and two that need no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.errors import UsageError
from worlds.scenario_agent import PROMPT_VERSIONS
from worlds.scenario_run import InteractionMode
from worlds.users import PROMPT_VERSION as USER_VERSION

SCRIPTED = "scripted"
"""User that reads the task out sentence by sentence."""
LOOP_VERSION = "1"


@dataclass(frozen=True, kw_only=True)
class WorldScaffold:
    """How a scenario is attempted.

    `mode` is None where no model acts. `user` is the user of a conversation: `scripted`, or the name of a model; it is
    part of the version, so that another user makes other rollouts.
    """

    name: str
    version: str = LOOP_VERSION
    mode: InteractionMode | None = None
    user: str = ""

    @property
    def uses_model(self) -> bool:
        """Whether a model acts."""
        return self.mode is not None

    @property
    def user_model(self) -> str:
        """Name of the model that plays the user; empty where none does."""
        return "" if self.user == SCRIPTED else self.user


MODES: Mapping[str, InteractionMode | None] = {
    "tools": InteractionMode.NON_CONVERSATIONAL,
    "dialogue": InteractionMode.CONVERSATIONAL,
    "oracle": None,
    "noop": None,
}
"""Name of a scaffold -> how the agent learns of its task; None where no model acts."""


def make_world_scaffolds(words: Sequence[str], user: str) -> tuple[WorldScaffold, ...]:
    """Return the scaffolds of some names.

    Args:
        words: names, each once.
        user: user of conversations: `scripted` or the name of a model; empty for none.

    Raises:
        UsageError: there is no such scaffold, or a conversation has no user.
    """
    scaffolds = []
    for word in words:
        if word not in MODES:
            raise UsageError(f"--scaffold: {word} is unknown for scenarios", advice=f"one of {', '.join(MODES)}")
        mode = MODES[word]
        if mode is InteractionMode.CONVERSATIONAL and not user:
            raise UsageError("a conversation needs a user", advice=f"--user NAME, a model, or --user {SCRIPTED}")
        scaffolds.append(_make_scaffold(word, mode, user))
    return tuple(scaffolds)


def _make_scaffold(name: str, mode: InteractionMode | None, user: str) -> WorldScaffold:
    if mode is None:
        return WorldScaffold(name=name)
    version = f"{LOOP_VERSION} {PROMPT_VERSIONS[mode]}"
    if mode is InteractionMode.NON_CONVERSATIONAL:
        return WorldScaffold(name=name, version=version, mode=mode)
    played = user if user == SCRIPTED else f"{USER_VERSION} {user}"
    return WorldScaffold(name=name, version=f"{version} {played}", mode=mode, user=user)
