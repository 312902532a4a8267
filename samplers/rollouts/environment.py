"""Options that the container of a task without environment is opened with, handed in by the application.

Samplers import no simulators, as they import no verifiers. Errors of models that are part of an environment are here,
too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import IO, ClassVar

from backends.sandbox.base import ContainerSession
from backends.sandbox.mounts import Mount
from core.errors import Transient

SIMULATED = "simulated"
"""`Task.environment` of such tasks."""


class EnvironmentModelError(Transient):
    """A model that is part of an environment failed, so that the text that the agent read is worth nothing."""

    reason: ClassVar[str]
    """Reason of the rollout."""


class SimulatorFailedError(EnvironmentModelError):
    """The simulator's endpoint failed."""

    reason = "simulator-failed"


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


EnvironmentOpener = Callable[[str], AbstractContextManager[SimulatedEnvironment]]
"""Opens the environment of a simulated task, by the id of its subject."""
