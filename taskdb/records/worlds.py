"""Records of synthesised tool environments: themes, worlds, scenarios, certificates and rejections.

A theme becomes a world, a world has scenarios; a certificate states the facts that the assessment of a world or a
scenario found. As in `taskdb.records`, of several children of a parent the newest counts, and a record with a child is
not rejected, whatever rejections it has.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from taskdb.records.base import MEASURED, ArtifactHash, Part, Record


class WorldStep(StrEnum):
    """The steps from a seed task to certified scenarios, in their order."""

    DISCOVER = "discover"
    BUILD = "build"
    ASSESS = "assess"
    SCENARIOS = "scenarios"


class WorldOrigin(StrEnum):
    """How a world came about."""

    SYNTHESISED = "synthesised"
    """A model wrote it for a theme."""
    WRITTEN = "written"
    """A person wrote it."""
    IMPORTED = "imported"
    """It comes from a bundle of another program."""


def compute_seed_task_id(task: str) -> str:
    """Return the id of a seed task: the sha256 (hex) of its text."""
    return hashlib.sha256(task.encode(errors="replace")).hexdigest()


class Theme(Record):
    """A domain for a world, which a model inferred from a seed task."""

    source: str
    """File of seed tasks as the user named it, or `swe`: mined repositories."""
    name: str
    """Slug of the label."""
    label: str
    description: str
    """About three sentences that do not depend on the seed task."""
    task: str
    """Text of the seed task."""
    license: str
    """SPDX expression of the seed task, `NOASSERTION` where its source names none."""
    usefulness: int = Field(ge=1, le=10)
    """1..10, as the model rated it."""
    modelability: int = Field(ge=1, le=10)
    """Whether it can be a single Python class: 1..10, as the model rated it."""
    model: str
    prompt: str
    """Name and version of the prompt."""

    @property
    def parent(self) -> str:
        """Id of the seed task, which is also the parent of a rejection of it."""
        return compute_seed_task_id(self.task)


class World(Record):
    """A tool environment: program, documentation, initial states and tools."""

    parent: str | None
    """Id of the Theme; null for a world that was written by hand or imported."""
    name: str
    """Name for people and for its scenarios, such as `library_loans`."""
    origin: WorldOrigin
    environment: Literal["synthetic"] = "synthetic"
    license: str
    """SPDX expression, `NOASSERTION` where none is known."""
    program: ArtifactHash
    """Python source of its class."""
    documentation: ArtifactHash
    """Text that an agent may read: introduction and rules."""
    states: ArtifactHash
    """Canonical JSON: name -> initial state."""
    tools: ArtifactHash
    """JSON: list of `{"name", "description", "parameters"}`, as agents see them."""
    model: str = ""
    """Model that wrote it; empty where none did."""
    prompt: str = ""
    """Name and version of the prompt; empty as `model`."""
    source: Annotated[str, MEASURED] = ""
    """Source of its theme, or the file or folder that it was read from."""
    n_tools: Annotated[int, MEASURED]
    n_queries: Annotated[int, MEASURED]
    """Tools that change nothing."""
    n_changes: Annotated[int, MEASURED]
    """Tools that change the state."""
    n_attributes: Annotated[int, MEASURED]
    """Attributes of the state."""


class GateFinding(Part):
    """Value that a gate that was passed measured."""

    name: str
    value: float
    limit: float | None = None
    """Least or most that the gate accepts, where it has such a limit."""
    detail: str = ""


class WorldCertificate(Record):
    """Facts that the assessment of a world found.

    Every gate is passed, and agents found few faults where they tested it.
    """

    parent: str
    """Id of the World."""
    name: str
    n_calls: int
    """Calls of each tool that the gates made."""
    gates: tuple[GateFinding, ...]
    """In the order of the gates."""
    rounds: int = 0
    """Rounds of tester and checker; 0 where no agents assessed it, as are the next three."""
    passed: int = 0
    """Rounds in which the checker found the tool right."""
    warned: int = 0
    """Rounds in which the tool worked but lacks a check."""
    failed: int = 0
    tester: str = ""
    """Model that chose the calls; empty where no agents assessed it."""
    checker: str = ""
    """Model that judged their results; empty as `tester`."""
    prompt: str = ""
    """Name and version of the prompts; empty as `tester`."""
    log: Annotated[ArtifactHash | None, MEASURED] = None
    """JSON lines of the rounds; null where no agents assessed it."""

    @property
    def pass_rate(self) -> float | None:
        """Share of the rounds that passed, 0..1; None without rounds."""
        return self.passed / self.rounds if self.rounds else None

    @property
    def score(self) -> float | None:
        """Share of the rounds that passed or were warned of, 0..1 (EnvScaler's threshold is on it); None without."""
        return (self.passed + self.warned) / self.rounds if self.rounds else None


class Scenario(Record):
    """A task in a world: initial state, text for the agent, checks of the final state."""

    parent: str
    """Id of the World."""
    world: str
    """Name of the World."""
    name: str
    """`WORLD.SCENARIO`, such as `library_loans.busy_morning`."""
    environment: Literal["synthetic"] = "synthetic"
    task: str
    """Text for the agent."""
    definition: ArtifactHash
    """Canonical JSON: `{"state": .., "task": .., "checks": [{"item", "function", "source"}]}`."""
    license: str
    """As in World."""
    model: str = ""
    """Model that wrote it; empty where none did."""
    prompt: str = ""
    """Name and version of the prompts; empty as `model`."""
    n_checks: Annotated[int, MEASURED]


class ModelPassRate(Part):
    """Outcome of a model's rollouts of a scenario."""

    model: str
    attempts: int
    """Rollouts with a reward."""
    solved: int
    """Rollouts of reward 1."""
    mean_reward: float
    """0..1."""


class ScenarioCertificate(Record):
    """Proof that a scenario can be solved, is not solved by doing nothing, and that its checks notice a wrong end."""

    parent: str
    """Id of the Scenario."""
    name: str
    solution: ArtifactHash
    """JSON: list of calls `{"tool", "arguments"}` that earns 1."""
    solution_origin: Literal["written", "rollout"]
    """Whether the solution came with the scenario or is that of a model's rollout."""
    n_calls: int
    """Calls of the solution."""
    n_tools: int
    """Different tools among them."""
    n_queries: int
    """Calls among them of tools that change nothing."""
    n_kept: int
    """Checks that hold in the initial state: they earn nothing and may not break."""
    mutations: int
    """Mutations of the end state, in fields that the task names, that were tried."""
    mutations_noticed: int
    """Those among them for which a check fails."""
    gates: tuple[GateFinding, ...] = ()
    """In the order of the gates."""
    pass_rates: tuple[ModelPassRate, ...] = ()
    """Of the models whose rollouts searched for a solution; empty where none did."""
    log: Annotated[ArtifactHash | None, MEASURED] = None
    """JSON lines of those rollouts; null without."""


class WorldRejection(Record):
    """Reason that a seed task, a theme, a world or a scenario was rejected."""

    parent: str
    """Id of the thing that was rejected: a Theme, World or Scenario, or a seed task (`compute_seed_task_id`).

    A scenario that did
    not come into being has its World as parent, and its own name."""
    name: str
    """Name of the thing that was rejected; of a seed task, a name for people, such as `FILE:LINE`."""
    source: str
    """As in Theme and World."""
    step: WorldStep
    reason: str
    """A value of the step's own `Reason` enum, such as `query-mutates`."""
    detail: Annotated[str, MEASURED]
    """A line for people."""
    log: Annotated[ArtifactHash | None, MEASURED] = None
