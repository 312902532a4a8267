"""Scripted agents and users of scenarios: they find their scenario by its task, and its solution among the examples."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.samplers.scripted_model import Call, ModelRequest, Turn
from worlds.definitions import ScenarioDefinition
from worlds.examples.loading import list_example_worlds, load_example_scenarios
from worlds.gates.solutions import resolve_arguments
from worlds.server.service import CallResult

AGENT, USER = "agent", "user"
"""Names of the models."""
COMPLETED = Turn(text="Task Completed")


def list_scenarios() -> list[ScenarioDefinition]:
    """Return all scenarios of the example worlds."""
    return [scenario for name in list_example_worlds() for scenario in load_example_scenarios(name)]


def read_results(request: ModelRequest) -> list[dict[str, Any]]:
    """Return the results of tools in a conversation."""
    return [json.loads(message["content"]) for message in request.body["messages"] if message["role"] == "tool"]


def get_text(request: ModelRequest) -> str:
    """Return the words of a conversation with one blank between them."""
    texts = (str(message.get("content") or "") for message in request.body["messages"])
    return " ".join(" ".join(texts).split())


@dataclass(frozen=True)
class ScenarioPlayer:
    """An agent that makes the first calls of the solution, all for None, one or more in each turn, and then ends."""

    n_calls: int | None = None
    per_turn: int = 1
    delay: float = 0.0
    last: Turn = COMPLETED
    scenario: ScenarioDefinition | None = None
    """Found by its task where it is None."""

    def __call__(self, request: ModelRequest) -> Turn:
        """Return the next turn."""
        results = read_results(request)
        call_results = {number: CallResult(value=result, digest="") for number, result in enumerate(results)}
        solution = (self.scenario or self.find(request)).solution or ()
        rest = solution[: self.n_calls][len(results) : len(results) + self.per_turn]
        calls = tuple(Call(call.tool, resolve_arguments(call, call_results)) for call in rest)
        if not calls:
            return Turn(text=self.last.text, delay=self.delay)
        return Turn(text="Next.", calls=calls, delay=self.delay, reasoning="What is next?")

    def find(self, request: ModelRequest) -> ScenarioDefinition:
        """Return the scenario of a conversation."""
        text = get_text(request)
        return next(scenario for scenario in list_scenarios() if scenario.task in text)


def play_user(request: ModelRequest) -> Turn:
    """Give the task away at once, then end the conversation."""
    scenario = ScenarioPlayer().find(request)
    lines = ["Good morning.", scenario.task, "###STOP###"]
    return Turn(text=lines[min(request.place, len(lines) - 1)])


def play_dialogue(request: ModelRequest) -> Turn:
    """Play the user under one name; under another, ask for the task, solve it and report."""
    if request.body["model"] == USER:
        return play_user(request)
    if "Good morning." in get_text(request) and request.place == 0:
        return Turn(text="How can I help?")
    return ScenarioPlayer(last=Turn(text="That is done."))(request)


def solve_slowly(request: ModelRequest) -> Turn:
    """Solve the scenario, and take a while for each answer."""
    return ScenarioPlayer(delay=0.15)(request)
