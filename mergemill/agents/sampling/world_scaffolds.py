"""Scaffolds of scenarios: a loop with native tool calls, with a user or without one, and two that need no model."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from backends.llm.meter import UsageMeter
from core.errors import UsageError
from samplers.rollouts.gateway_model import GatewayModel
from samplers.scaffolds.base import AgentEnd, ScaffoldHooks
from samplers.scaffolds.gateway_client import GatewayError
from worlds.definitions import Call
from worlds.gates.solutions import resolve_arguments
from worlds.scenario_agent import PROMPT_VERSIONS, EpisodeEnd, ScenarioAgent
from worlds.scenario_run import InteractionMode, ScenarioRun
from worlds.server.service import CallResult
from worlds.users import PROMPT_VERSION as USER_VERSION

SCRIPTED = "scripted"
"""User that reads the task out sentence by sentence."""
LOOP_VERSION = "1"


REASONS: Mapping[EpisodeEnd, str | None] = {
    EpisodeEnd.COMPLETED: None,
    EpisodeEnd.USER: None,
    EpisodeEnd.TRUNCATED: "turn-limit",
    EpisodeEnd.FAULT: "world-fault",
    EpisodeEnd.TOO_LONG: "model-failed",
    EpisodeEnd.NO_ACTION: "no-action",
    EpisodeEnd.BUDGET: "time-limit",
}
"""End of an episode -> reason of the rollout; None where it ended by itself."""


@dataclass(kw_only=True)
class ScenarioSession:
    """An episode of a scenario as its scaffold sees it."""

    run: ScenarioRun = field(init=False)
    """The episode, once it has begun."""
    model: GatewayModel | None
    """None where no model acts."""
    solution: tuple[Call, ...]
    """Calls of the certificate's solution; for the oracle alone."""
    seconds: float
    """Wall time of the episode."""
    calls: list[Call] = field(default_factory=list)
    """Calls that were made."""
    has_fault: bool = False
    """Whether the world's program had a fault."""

    def collect_submission(self) -> bytes:
        """Return the calls as JSON; nothing where there are none."""
        calls = [call.to_json() for call in self.calls]
        return json.dumps(calls, ensure_ascii=False).encode(errors="replace") if calls else b""


@dataclass(frozen=True, kw_only=True)
class WorldScaffold(ScaffoldHooks[ScenarioSession]):
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

    def agent_run(self, session: ScenarioSession) -> AgentEnd:
        """Let the model act, or make the calls of the solution, or do nothing."""
        if session.model is not None:
            return _work(session, session.model)
        if self.name == "oracle":
            _replay(session)
        return AgentEnd()


def _work(session: ScenarioSession, model: GatewayModel) -> AgentEnd:
    agent = ScenarioAgent(session.run)
    try:
        end = agent.work(model, UsageMeter(), deadline=time.monotonic() + session.seconds)
    except GatewayError as error:
        return AgentEnd(reason="model-failed", detail=str(error))
    finally:
        session.calls = [made.call for made in agent.calls]
    session.has_fault = end is EpisodeEnd.FAULT
    return AgentEnd(reason=REASONS[end], detail=agent.detail)


def _replay(session: ScenarioSession) -> None:
    """Make the calls of the certificate's solution."""
    results: dict[int, CallResult] = {}
    for number, call in enumerate(session.solution):
        arguments = resolve_arguments(call, results)
        session.calls.append(Call(tool=call.tool, arguments=arguments))
        outcome = session.run.step({"tool": call.tool, "arguments": arguments})
        results[number] = CallResult(value=outcome.observation, digest=session.run.digest)


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
