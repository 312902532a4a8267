"""Rollouts of a model on a scenario, without a user to talk to, and the solution that follows from those of reward 1.

Section 3.3 of EnvScaler (arXiv 2601.05808): the whole task at once, one or more calls a turn, `Task Completed` ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backends.llm.base import Message
from backends.llm.meter import UsageMeter
from core.settings.worlds import WorldsSettings
from worlds.definitions import Call, ScenarioDefinition, WorldDefinition
from worlds.model_requests import ModelRole, RoleModels
from worlds.rewards import Scorer
from worlds.scenario_agent import PROMPT_VERSIONS, MadeCall, ScenarioAgent
from worlds.scenario_run import InteractionMode, ScenarioRun
from worlds.server.service import WorldServer
from worlds.states import compute_world_id

PROMPT = PROMPT_VERSIONS[InteractionMode.NON_CONVERSATIONAL]


@dataclass(frozen=True, kw_only=True)
class SolverRollout:
    """A rollout. `ended` is a value of `EpisodeEnd`."""

    number: int
    calls: tuple[MadeCall, ...]
    reward: float
    ended: str
    messages: tuple[Message, ...]

    @property
    def is_solved(self) -> bool:
        """Whether it earned 1."""
        return self.reward == 1.0

    def to_json(self) -> dict[str, Any]:
        """Return the rollout as a line of the log."""
        return {
            "rollout": self.number,
            "reward": self.reward,
            "ended": self.ended,
            "messages": [_describe_message(message) for message in self.messages],
        }


@dataclass(frozen=True, kw_only=True)
class ScenarioSolver:
    """Runs a model on a single scenario."""

    scenario: ScenarioDefinition
    world: WorldDefinition
    server: WorldServer
    models: RoleModels
    options: WorldsSettings
    meter: UsageMeter
    scorer: Scorer = field(default_factory=Scorer)

    def run(self) -> list[SolverRollout]:
        """Return all rollouts: their rewards are the pass rate of the model.

        Raises:
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`, or the container has ended.
        """
        return [self._run_one(number) for number in range(1, self.options.rollouts + 1)]

    def _run_one(self, number: int) -> SolverRollout:
        identity = self.models.make_identity(
            "solver",
            f"{compute_world_id(self.world)} {self.scenario.name}",
            PROMPT,
            temperature=self.options.solver_temperature,
            sample=number,
        )
        model = self.models.open(ModelRole.SOLVER, identity, self.options.solver_temperature)
        with (
            self.server.load(self.world) as served,
            ScenarioRun(self.server, served, self.scenario, self.scorer, max_steps=self.options.max_steps) as run,
        ):
            agent = ScenarioAgent(run)
            end = agent.work(model, self.meter)
            return SolverRollout(
                number=number,
                calls=tuple(agent.calls),
                reward=agent.reward,
                ended=end.value,
                messages=tuple(agent.messages),
            )


def list_solutions(rollouts: Sequence[SolverRollout], scenario: ScenarioDefinition) -> list[tuple[Call, ...]]:
    """Return call lists that may solve a scenario, the most likely first: from solved rollouts, shorter ones first.

    Of each, first the calls that changed the state, then all of them. An argument that is an id which an earlier call
    returned, and that neither task nor initial state have, becomes a reference to it, so that the list holds where the
    system makes other ids.
    """
    solutions: list[tuple[Call, ...]] = []
    for rollout in sorted(
        (rollout for rollout in rollouts if rollout.is_solved), key=lambda rollout: (len(rollout.calls), rollout.number)
    ):
        changing = [call for call in rollout.calls if call.is_changed]
        for calls in (changing, list(rollout.calls)):
            solutions.append(insert_references(calls, scenario))
            solutions.append(tuple(call.call for call in calls))
    return list({json.dumps([call.to_json() for call in calls], sort_keys=True): calls for calls in solutions}.values())


def insert_references(calls: Sequence[MadeCall], scenario: ScenarioDefinition) -> tuple[Call, ...]:
    """Return calls in which made ids are references to the results that had them; see `worlds.definitions.Call`."""
    known = set(_iterate_strings(scenario.state))
    places: dict[str, list[Any]] = {}
    done: list[Call] = []
    for number, made in enumerate(calls):
        arguments = {name: _refer(value, places) for name, value in made.call.arguments.items()}
        done.append(Call(tool=made.call.tool, arguments=arguments))
        for path, text in _iterate_paths(made.result):
            if text not in known and text not in scenario.task:
                places.setdefault(text, [number, *path])
    return tuple(done)


def _refer(value: Any, places: Mapping[str, list[Any]]) -> Any:
    if isinstance(value, str):
        return {"$result": places[value]} if value in places else value
    if isinstance(value, list):
        return [_refer(item, places) for item in value]
    if isinstance(value, dict):
        return {key: _refer(item, places) for key, item in value.items()}
    return value


def _iterate_paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield path and text of the strings that keys of dicts lead to."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _iterate_paths(item, (*path, key))
    elif isinstance(value, str) and path:
        yield path, value


def _iterate_strings(value: Any) -> Iterator[str]:
    """Yield all strings of a JSON value, keys included."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from _iterate_strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _iterate_strings(item)
    elif isinstance(value, str):
        yield value


def _describe_message(message: Message) -> dict[str, Any]:
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    parts = {"calls": calls, "tool": message.tool_name}
    return {"role": message.role, "text": message.text, **{name: value for name, value in parts.items() if value}}
