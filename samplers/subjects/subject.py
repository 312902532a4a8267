"""Subject of a rollout: the form in which tasks, scenarios and the like reach samplers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import IO

from samplers.subjects.guidance import Guidance


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A task, a scenario or the like, with all that a rollout needs of it."""

    id: str
    """Id of the record that it was made from, which is the parent of its rollouts."""
    name: str
    """Name for people."""
    environment: str
    """`Rollout.environment` of its rollouts."""
    statement: str
    """Text of the work that is to be done, by which the main conversation is found."""
    instruction: str = ""
    """The user's message of a rollout; empty where the environment opens the conversation."""
    image: str = ""
    """Image of its container; empty where a small system does, or where there is no container."""
    workdir: str = ""
    """Working directory of the agent's commands, which is a repository; empty where the agent has no shell."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Absolute path -> content, for subjects whose image has no repository."""
    tree: Callable[[], AbstractContextManager[IO[bytes]]] | None = None
    """Function that opens a tar of further files, to be unpacked at `/`; None for none."""
    answer: str | None = None
    """File that the submission is read from; None for the difference of the tree."""
    hidden_lines: frozenset[str] = frozenset()
    """Distinctive lines of the hidden tests, of which an agent has none."""
    project: str = ""
    """Name of the repository, whose packages nobody installs from a registry to work on it; empty for none."""
    guidance: Guidance = field(default_factory=Guidance)
    """Instructions besides the statement."""
    deliveries: Mapping[str, str] = field(default_factory=dict)
    """Constraint whose wording a later message of the user brings -> key of that message in `Rollout.delivered`."""
    grades_conversation: bool = False
    """Whether the answers of the model are part of the submission."""
