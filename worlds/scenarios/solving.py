"""Rollouts of a model on a scenario, without a user to talk to, and the solution that follows from those of reward 1.

Section 3.3 of EnvScaler (arXiv 2601.05808): the whole task at once, one or more calls a turn, `Task Completed` ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backends.llm.base import ContextLengthError, Message, ModelReply, Tool
from backends.llm.ledger import RecordedModel
from backends.llm.meter import UsageMeter
from worlds.asking import PROMPTS, ModelRole, RoleModels
from worlds.definitions import Call, ScenarioDefinition, WorldDefinition
from worlds.environment import STOP, WorldEnvironment
from worlds.options import MakingOptions
from worlds.server.service import WorldServer
from worlds.states import compute_world_id

PROMPT = "solver-1"
COMPLETED = "Task Completed"
"""Text with which the model ends an episode."""


@dataclass(frozen=True, kw_only=True)
class MadeCall:
    """A call of a rollout, what it returned, and whether it changed the state."""

    call: Call
    result: Mapping[str, Any]
    is_changed: bool


@dataclass(frozen=True, kw_only=True)
class SolverRollout:
    """One rollout. `ended` is `completed`, `truncated` (at the most steps), `fault` or `too-long`."""

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
    """Runs a model on one scenario."""

    scenario: ScenarioDefinition
    world: WorldDefinition
    server: WorldServer
    models: RoleModels
    options: MakingOptions
    meter: UsageMeter

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
        with WorldEnvironment(
            self.server, self.world, [self.scenario], max_steps=self.options.max_steps
        ) as environment:
            return _RolloutRun(environment, model, self.meter).run(number)


class _RolloutRun:
    """One rollout on its way."""

    def __init__(self, environment: WorldEnvironment, model: RecordedModel, meter: UsageMeter) -> None:
        observation, info = environment.reset(seed=0)
        self._environment, self._model, self._meter = environment, model, meter
        self._tools = [Tool(**tool) for tool in observation["tools"]]
        self._messages = list(
            PROMPTS.render_conversation(PROMPT, documentation=observation["documentation"], task=observation["task"])
        )
        self._digest = info["digest"]
        self._calls: list[MadeCall] = []
        self._ended, self._reward = "", 0.0

    def run(self, number: int) -> SolverRollout:
        """Return the rollout once it has ended."""
        while not self._ended:
            try:
                reply = self._model.complete(self._messages, self._tools, meter=self._meter)
            except ContextLengthError:
                self._ended = "too-long"
                break
            self._take_turn(reply)
        return SolverRollout(
            number=number,
            calls=tuple(self._calls),
            reward=self._reward,
            ended=self._ended,
            messages=tuple(self._messages),
        )

    def _take_turn(self, reply: ModelReply) -> None:
        self._messages.append(reply.message)
        if not reply.tool_calls:
            if COMPLETED.lower() in reply.text.lower():
                _, self._reward, _, _, _ = self._environment.step({STOP: True})
                self._ended = "completed"
                return
            answer = self._step({"text": reply.text})
            if not self._ended:
                self._messages.append(Message(role="user", text=f"{answer}\nCall a tool, or answer {COMPLETED}."))
            return
        for call in reply.tool_calls:
            arguments = dict(call.arguments) if call.arguments is not None else None
            answer = self._step({"tool": call.name, "arguments": arguments})
            self._messages.append(Message(role="tool", text=answer, tool_call_id=call.id, tool_name=call.name))
            if self._ended:
                return

    def _step(self, action: dict[str, Any]) -> str:
        """Take an action and return what the model reads about it."""
        observation, reward, terminated, truncated, info = self._environment.step(action)
        if isinstance(action.get("arguments"), dict):
            call = Call(tool=action["tool"], arguments=action["arguments"])
            self._calls.append(MadeCall(call=call, result=observation, is_changed=info["digest"] != self._digest))
        self._digest = info["digest"]
        if terminated or truncated:
            self._ended, self._reward = "fault" if "fault" in info else "truncated", reward
        return json.dumps(observation, ensure_ascii=False)


def list_solutions(rollouts: Sequence[SolverRollout], scenario: ScenarioDefinition) -> list[tuple[Call, ...]]:
    """Return call lists that may solve a scenario, the most likely first: from solved rollouts, shorter ones first.

    Of each, first the calls that changed the state, then all of them. An argument that is an id which an earlier call
    returned, and that neither task nor initial state have, becomes a reference to it, so that the list holds where the
    system makes other ids.
    """
    found: list[tuple[Call, ...]] = []
    for rollout in sorted((one for one in rollouts if one.is_solved), key=lambda one: (len(one.calls), one.number)):
        changing = [one for one in rollout.calls if one.is_changed]
        for calls in (changing, list(rollout.calls)):
            found.append(insert_references(calls, scenario))
            found.append(tuple(one.call for one in calls))
    return list({json.dumps([call.to_json() for call in calls], sort_keys=True): calls for calls in found}.values())


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
        return [_refer(one, places) for one in value]
    if isinstance(value, dict):
        return {key: _refer(one, places) for key, one in value.items()}
    return value


def _iterate_paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield path and text of the strings that keys of dicts lead to."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _iterate_paths(one, (*path, key))
    elif isinstance(value, str) and path:
        yield path, value


def _iterate_strings(value: Any) -> Iterator[str]:
    """Yield all strings of a JSON value, keys included."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield key
            yield from _iterate_strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _iterate_strings(one)
    elif isinstance(value, str):
        yield value


def _describe_message(message: Message) -> dict[str, Any]:
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    parts = {"calls": calls, "tool": message.tool_name}
    return {"role": message.role, "text": message.text, **{name: value for name, value in parts.items() if value}}
