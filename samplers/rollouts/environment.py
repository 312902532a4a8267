"""Options that the container of a task without environment is opened with, handed in by the application.

Samplers import no simulators, as they import no verifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import IO

from backends.sandbox.base import ContainerSession
from backends.sandbox.mounts import Mount
from core.errors import Transient
from taskdb.records import Task

SIMULATED = "simulated"
"""`Task.environment` of such tasks."""


class SimulatorFailedError(Transient):
    """The simulator's endpoint failed, so that the text that the agent read is worth nothing."""


@dataclass(frozen=True, kw_only=True)
class SimulatedEnvironment:
    """True files, and programs that are simulated.

    Attributes:
        image: a small system.
        tree: function that opens the tar of the repository, to be unpacked at `/`.
        attach: function that returns the session of the agent for the session of the container, once it is open. Its
            `run` raises SimulatorFailedError.
        count_calls: function that returns the number of programs that were simulated so far.
        env: variables of each command.
        mounts: the programs.
    """

    image: str
    tree: Callable[[], AbstractContextManager[IO[bytes]]]
    attach: Callable[[ContainerSession], ContainerSession]
    count_calls: Callable[[], int]
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()


EnvironmentOpener = Callable[[Task], AbstractContextManager[SimulatedEnvironment]]
