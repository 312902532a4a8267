"""The known solutions in place of a model, so that their trajectories have the form of any other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.world_loop.scenarios import DrawnScenario
from tests.samplers.scripted_model import Call, ModelRequest, Turn
from worlds.definitions import Call as WorldCall
from worlds.gates.solutions import resolve_arguments
from worlds.server.service import CallResult

GO_ON, DONE = "Go on.", "That is done."


@dataclass(frozen=True)
class SolutionPlayer:
    """Listens until the task is said, makes the calls of its solution, one in each turn, and says so."""

    scenarios: Sequence[DrawnScenario]

    def __call__(self, request: ModelRequest) -> Turn:
        """Return the next turn of a conversation."""
        messages = request.body["messages"]
        said = " ".join(str(message["content"]) for message in messages if message["role"] == "user")
        scenario = next((scenario for scenario in self.scenarios if scenario.task.text in said), None)
        if scenario is None:
            return Turn(text=GO_ON)
        results = [json.loads(message["content"]) for message in messages if message["role"] == "tool"]
        if len(results) == len(scenario.task.solution):
            return Turn(text=DONE)
        call = WorldCall(**scenario.task.solution[len(results)])
        call_results = {number: CallResult(value=result, digest="") for number, result in enumerate(results)}
        return Turn(text="", calls=(Call(call.tool, resolve_arguments(call, call_results)),))
