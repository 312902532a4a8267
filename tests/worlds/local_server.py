"""Worlds of our own in processes of this machine, with the code that containers run: for tests that need no walls."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any, cast

from core.closable import Closable
from guest.world.canonical import compute_digest, encode_json
from guest.world.reasons import CheckOutcome, FaultReason
from guest.world_tool.verify import run_check_apart
from guest.world_tool.world_tool import run_apart
from worlds.definitions import Check, State, WorldDefinition
from worlds.program.analysis import analyse_program
from worlds.server.service import CallResult, CheckResult, Fault, WorldServer


@cache
def start_process() -> ProcessPoolExecutor:
    """Return a small process that forks calls and checks; the tests' own takes 30 ms of CPU to fork."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def run_call(world: Mapping[str, Any], state: State, step: int, tool: str, arguments: Mapping[str, Any]) -> Any:
    return start_process().submit(run_apart, world, state, step, tool, arguments).result()


class LocalEpisode(Closable):
    def __init__(self, world: Mapping[str, Any], state: State, seed: int, step: int) -> None:
        self._world, self._state, self._seed, self._step = world, state, seed, step
        self.fault: Fault | None = None
        result = run_call({**world, "seed": seed}, state, 0, "no_such_tool", {})
        if "fault" in result:
            self._take_fault(result["fault"])
        else:
            self._state = result["state"]

    @property
    def digest(self) -> str:
        return compute_digest(encode_json(self._state))

    def call(self, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        result = run_call({**self._world, "seed": self._seed}, self._state, self._step, tool, arguments)
        self._step += 1
        if "fault" in result:
            self._take_fault(result["fault"])
            return CallResult(value={}, digest=self.digest, fault=self.fault)
        self._state = result["state"]
        return CallResult(value=result["result"], digest=self.digest)

    def get_state(self) -> State:
        return self._state

    def close(self) -> None:
        pass

    def _take_fault(self, text: str) -> None:
        reason, _, detail = text.partition(": ")
        self.fault = Fault(reason=FaultReason(reason), detail=detail)


class LocalWorld(Closable):
    def __init__(self, definition: WorldDefinition) -> None:
        self.definition, self.analysis = definition, analyse_program(definition.program)
        self._world = {
            "program": definition.program,
            "class_name": self.analysis.class_name,
            "tools": [tool.to_json() for tool in self.analysis.tools],
        }

    def open_episode(self, state: State, *, seed: int = 0, step: int = 0) -> LocalEpisode:
        return LocalEpisode(self._world, state, seed, step)

    def close(self) -> None:
        pass


class LocalServer:
    def load(self, definition: WorldDefinition) -> LocalWorld:
        return LocalWorld(definition)

    def run_checks(self, checks: Sequence[Check], initial: State, final: State, *, seed: int = 0) -> list[CheckResult]:
        return [_check(check, initial, final, seed) for check in checks]


def make_local_server() -> WorldServer:
    return cast("WorldServer", LocalServer())


def _check(check: Check, initial: State, final: State, seed: int) -> CheckResult:
    named = {"source": check.source, "function": check.function}
    outcome = start_process().submit(run_check_apart, named, initial, final, seed=seed).result()
    return CheckResult(function=check.function, outcome=CheckOutcome(outcome), detail="")
