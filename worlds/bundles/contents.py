"""Parts that a bundle is made of: worlds, their scenarios, and conversations that solve these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from worlds.definitions import Call, Check, ScenarioDefinition, WorldDefinition
from worlds.program.analysis import ProgramAnalysis, analyse_program

ENVIRONMENT = "synthetic"
"""Mark of every row and card: a program stands for the world."""
ORACLE, ROLLOUT = "oracle", "rollout"
"""Sources of conversations: the known solution, played; a model's rollout that earned 1."""
Message = Mapping[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Certification:
    """Gates that a world and its scenarios passed: name of a gate -> the value that it measured, empty where not known.

    `by` is who ran them, for the card.
    """

    by: str
    gates: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class WorldContents:
    """A world with its scenarios, as an export takes it."""

    definition: WorldDefinition
    scenarios: tuple[ScenarioDefinition, ...]
    license: str
    """SPDX expression, `NOASSERTION` where none is known."""
    origin: str
    """`written`, `synthesised` or `imported`."""
    models: tuple[str, ...] = ()
    """Models that wrote it and its scenarios; empty where none did."""
    certification: Certification | None = None
    """None where it is not certified."""
    rollouts: Mapping[str, tuple[WorldConversation, ...]] = field(default_factory=dict)
    """Name of a scenario -> rollouts that solved it."""


@dataclass(frozen=True, kw_only=True)
class WorldConversation:
    """A conversation of an agent in a scenario: OpenAI's messages, the system's first, the agent's last.

    `calls` have their arguments as they were sent.
    """

    messages: tuple[Message, ...]
    calls: tuple[Call, ...]
    source: str
    """ORACLE or ROLLOUT."""
    number: int = 0
    """Number of the rollout among those of its scenario."""
    model: str
    """Model of the agent; empty where none wrote it."""
    reward: float
    """0..1."""

    @property
    def system(self) -> str:
        """Text that the agent was given first."""
        return "\n\n".join(message["content"] for message in self.messages if message["role"] == "system")

    @property
    def turns(self) -> list[Message]:
        """The messages without the system's."""
        return [message for message in self.messages if message["role"] != "system"]

    @property
    def label(self) -> str:
        """Name of the conversation among those of its scenario."""
        return self.source if self.source == ORACLE else f"{self.source}-{self.number}"


@dataclass(frozen=True, kw_only=True)
class BundledScenario:
    """A scenario that was tried for a bundle. `kept` are the numbers of the checks that hold from the start."""

    definition: ScenarioDefinition
    kept: frozenset[int]
    conversation: WorldConversation | None
    """The known solution, played; None where there is none."""
    rollouts: tuple[WorldConversation, ...] = ()

    @property
    def conversations(self) -> tuple[WorldConversation, ...]:
        """All conversations that solve it."""
        return (*([self.conversation] if self.conversation is not None else []), *self.rollouts)

    @property
    def earning_checks(self) -> tuple[Check, ...]:
        """The checks that earn something."""
        return tuple(check for number, check in enumerate(self.definition.checks) if number not in self.kept)

    @property
    def kept_checks(self) -> tuple[Check, ...]:
        """The checks that hold from the start and may not break."""
        return tuple(check for number, check in enumerate(self.definition.checks) if number in self.kept)


@dataclass(frozen=True, kw_only=True)
class BundledWorld:
    """A world whose scenarios were tried for a bundle."""

    contents: WorldContents
    scenarios: tuple[BundledScenario, ...]

    @property
    def definition(self) -> WorldDefinition:
        """The world."""
        return self.contents.definition

    @property
    def name(self) -> str:
        """Name of the world."""
        return self.definition.name

    @property
    def analysis(self) -> ProgramAnalysis:
        """Analysis of the program."""
        return analyse_program(self.definition.program)

    @property
    def function_tools(self) -> list[Row]:
        """The tools in OpenAI's form."""
        return [{"type": "function", "function": tool.to_json()} for tool in self.analysis.tools]
