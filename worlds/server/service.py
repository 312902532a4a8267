"""Worlds in a container: load worlds, open episodes, call tools, run checks."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import guest
from core.closable import Closable
from core.errors import InputError
from guest.world import CONTAINER_FOLDER
from guest.world.reasons import CheckOutcome, FaultReason
from worlds.definitions import Check, State, WorldDefinition
from worlds.program.analysis import analyse_program
from worlds.server.connection import Answer, ServerConnection
from worlds.server.limits import ServerLimits

if TYPE_CHECKING:
    from backends.sandbox.base import Sandbox

CODE_FOLDER = "/opt/mergemill-worlds"
"""Folder of the server's modules in the container."""
BOOT = f"import sys; sys.path[0] = '{CODE_FOLDER}'; from guest.world.server import main; main()"
COMMAND = ("python3", "-S", "-s", "-B", "-c", BOOT)
"""Command of the server, without its limits. No package of the image is importable."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Fault of a world's program, which ends the episode."""

    reason: FaultReason
    detail: str


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """Result of a call: the value that the tool returned and the digest of the state after it, or a fault."""

    value: Mapping[str, Any]
    """Empty where there is a fault."""
    digest: str
    fault: Fault | None = None

    @property
    def is_success(self) -> bool:
        """Whether the tool reported success."""
        return self.fault is None and self.value["success"] is True


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """Result that a check function gave. `detail` is the type of an exception or of another value."""

    function: str
    outcome: CheckOutcome
    detail: str = ""

    @property
    def is_passed(self) -> bool:
        """Whether it returned True."""
        return self.outcome is CheckOutcome.PASSED


class ServedWorld(Closable):
    """A loaded world, until it is closed.

    Raises:
        InputError: the server has too many worlds.
    """

    def __init__(self, connection: ServerConnection, name: str, definition: WorldDefinition) -> None:
        analysis = analyse_program(definition.program)
        self.definition = definition
        self.analysis = analysis
        self._connection = connection
        self._name = name
        self._numbers = itertools.count()
        connection.request(
            {
                "op": "load",
                "world": name,
                "program": definition.program,
                "class_name": analysis.class_name,
                "tools": {tool.name: tool.parameters for tool in analysis.tools},
            }
        )

    def open_episode(self, state: State, *, seed: int = 0, step: int = 0) -> Episode:
        """Start an episode in an initial state.

        Args:
            state: initial state.
            seed: seed that determines clock, random numbers and uuids.
            step: number of calls that led to the state; an episode continues where another episode was.

        Raises:
            InputError: the server has too many episodes, or the state is not JSON.
            Transient, CancelledRunError: as `ServerConnection.request`.
        """
        episode = Episode(self._connection, f"{self._name}/{next(self._numbers)}")
        episode.reset(self._name, state, seed, step)
        return episode

    def close(self) -> None:
        """Forget the program; open episodes go on."""
        self._connection.request({"op": "unload", "world": self._name})


class Episode(Closable):
    """An episode in a process of its own. To be used by a single thread at a time.

    `fault` is set once the program has a fault: further calls give it again. `digest` is that of the present state.
    """

    def __init__(self, connection: ServerConnection, name: str) -> None:
        self._connection = connection
        self._name = name
        self.digest = ""
        self.fault: Fault | None = None

    def reset(self, world: str, state: State, seed: int, step: int) -> None:
        """Start again from a state, in a new process."""
        message = {"op": "reset", "episode": self._name, "world": world, "state": state, "seed": seed, "step": step}
        self._take(self._connection.request(message))

    def call(self, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        """Call a tool. Arguments that break its schema give `success: False`, and the program is not called.

        Raises:
            Transient, CancelledRunError: as `ServerConnection.request`.
        """
        answer = self._connection.request(
            {"op": "call", "episode": self._name, "tool": tool, "arguments": dict(arguments)}
        )
        self._take(answer)
        return CallResult(value=answer.get("result", {}), digest=self.digest, fault=self.fault)

    def get_state(self) -> State:
        """Return the present state; after a fault, that before it."""
        state: State = self._connection.request({"op": "state", "episode": self._name})["state"]
        return state

    def run_checks(self, checks: Sequence[Check], *, seed: int = 0) -> list[CheckResult]:
        """Run checks on the initial and the present state; none passes in an episode with a fault."""
        return _request_checks(self._connection, checks, {"episode": self._name, "seed": seed})

    def close(self) -> None:
        """End the episode's process."""
        self._connection.request({"op": "close", "episode": self._name})

    def _take(self, answer: Answer) -> None:
        self.digest = answer.get("digest", self.digest)
        self.fault = _read_fault(answer) or self.fault


class WorldServer:
    """Server of worlds in a single container. Threads may share it."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._numbers = itertools.count()

    @property
    def is_running(self) -> bool:
        """Whether the container runs, as far as is known."""
        return self._connection.is_open

    def load(self, definition: WorldDefinition) -> ServedWorld:
        """Load a world.

        Raises:
            InputError: the program breaks a rule of `worlds.program.rules`, or the server has too many worlds.
        """
        if violations := analyse_program(definition.program).violations:
            raise InputError(f"{definition.name}: {violations[0]}")
        return ServedWorld(self._connection, f"{definition.name}-{next(self._numbers)}", definition)

    def run_checks(self, checks: Sequence[Check], initial: State, final: State, *, seed: int = 0) -> list[CheckResult]:
        """Run checks on two states, in their order.

        Args:
            checks: checks, each run in a process of its own.
            initial: initial state.
            final: final state.
            seed: seed that determines the random numbers and the clock of those processes.
        """
        return _request_checks(self._connection, checks, {"initial": initial, "final": final, "seed": seed})


@contextlib.contextmanager
def open_world_server(sandbox: Sandbox, image: str, limits: ServerLimits | None = None) -> Iterator[WorldServer]:
    """Start a server of worlds in a container, which is removed at the end of the block.

    Args:
        sandbox: sandbox that starts the container, without network.
        image: name of an image with Python 3.11 or newer as `python3`, such as the base image of Python.
        limits: limits of the container and the processes in it.

    Raises:
        InputError: there is no such image.
        Transient: the engine cannot be reached.
    """
    limits = limits or ServerLimits()
    with (
        sandbox.open_process(
            image,
            [*COMMAND, json.dumps(limits.to_json())],
            limits=limits.build_container_limits(),
            files=collect_server_files(),
            # Fixed, so that sets have the same order when an episode is replayed in another container.
            env={"PYTHONHASHSEED": "0"},
        ) as process,
        ServerConnection(process) as connection,
    ):
        yield WorldServer(connection)


def collect_server_files() -> dict[str, bytes]:
    """Return path in the container -> content of the server's modules."""
    root = Path(guest.__file__).parent
    sources = [root / "__init__.py", *sorted(CONTAINER_FOLDER.glob("*.py"))]
    return {f"{CODE_FOLDER}/guest/{source.relative_to(root)}": source.read_bytes() for source in sources}


def _request_checks(
    connection: ServerConnection, checks: Sequence[Check], message: Mapping[str, Any]
) -> list[CheckResult]:
    sources = [{"function": check.function, "source": check.source} for check in checks]
    answer = connection.request({"op": "check", "checks": sources, **message})
    return [
        CheckResult(function=check.function, outcome=CheckOutcome(outcome["outcome"]), detail=outcome["detail"])
        for check, outcome in zip(checks, answer["outcomes"], strict=True)
    ]


def _read_fault(answer: Answer) -> Fault | None:
    return Fault(reason=FaultReason(answer["fault"]), detail=answer["detail"]) if "fault" in answer else None
