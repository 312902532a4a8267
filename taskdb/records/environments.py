"""Records of builders: the plan as pure data with its evidence, the attempts, and the environment."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Annotated, ClassVar

from taskdb.records.base import MEASURED, ArtifactHash, Part, Record, Seconds


class Evidence(Part):
    """Source of a choice in the plan."""

    choice: str
    """The plan's field, such as `language_version`."""
    value: str
    path: str
    """File in the repository, or `(default)`, `(date)`."""
    line: int
    """1-based; 0 when the whole file is the evidence."""
    note: str = ""


class TestCommand(Part):
    """The command that runs a project's tests and writes a report."""

    __test__: ClassVar[bool] = False  # pytest would collect it as a test class by its name
    framework: str
    """Name of a framework of some language (`languages.base.Framework`), such as `pytest`."""
    argv: tuple[str, ...]
    """The command without files and without report options, such as `("pytest", "-p", "no:cacheprovider")`."""
    paths: tuple[str, ...] = ()
    """Directories or files of a run of the whole suite; empty: as the project configures it."""
    folder: str = ""
    """Folder of the tree in which the command runs, empty for its root; paths of test files are relative to the root in
    either case."""


class BuildPlan(Record):
    """Everything needed to build the environment of a commit, each choice with its evidence. Pure data."""

    language: str
    language_version: str
    """Such as `3.11`; a key of the catalog of bases."""
    exclude_newer: str
    """Date (ISO, UTC midnight); package versions released later are not used."""
    system_packages: tuple[str, ...]
    dependency_steps: tuple[str, ...]
    """Shell lines that need the network but not the project's tree."""
    source_steps: tuple[str, ...]
    """Shell lines run in the project's tree, such as the editable install."""
    test: TestCommand
    manifests: tuple[tuple[str, str], ...] = ()
    """(path, git blob id) of the files that the dependency steps read; they are copied into the workdir first."""
    kept_folders: tuple[str, ...] = ()
    """Untracked folders of the workdir that the dependency steps fill, such as `node_modules`."""
    services: tuple[str, ...] = ()
    """Servers that run beside the tests, such as `postgresql`."""
    workdir: str = "/testbed"
    env: tuple[tuple[str, str], ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @cached_property
    def dependency_key(self) -> str:
        """Sha256 of the inputs of the dependency layer; commits with the same key share that layer."""
        part: list[object] = [
            self.language,
            self.language_version,
            self.exclude_newer,
            self.system_packages,
            self.dependency_steps,
        ]
        if self.manifests:
            part += [self.manifests, self.workdir, self.env]
        return hashlib.sha256(json.dumps(part).encode()).hexdigest()

    @property
    def dependency_image(self) -> str:
        """Name of the image with the dependency layer."""
        return f"mergemill/deps:{self.dependency_key[:16]}"


class Counts(Part):
    """Number of tests of a run by outcome."""

    passed: int = 0
    failed: int = 0
    error: int = 0
    skipped: int = 0
    xfailed: int = 0


class Attempt(Part):
    """An attempt at an environment: its edits, who proposed them, and the result."""

    number: int
    """1 for the first draft."""
    proposed_by: str
    """`draft` for the first; `(nearest)`, `(skill NAME)`, `(conflict)`, `(fallback)` or `(agent)` for repairs."""
    rationale: str
    edits: tuple[str, ...]
    """Names and arguments, such as `add-system-package libffi-dev`."""
    reason: str
    """`accepted`, or why it was rejected; `rejected-edit` when it was not built at all."""
    detail: str
    rolled_back: bool = False
    """Whether its edits were rolled back because it made less progress than the best attempt before it."""
    seconds: float = 0.0
    tokens: int = 0
    """Prompt and completion tokens of a model."""
    cost: float = 0.0
    """Cost of these tokens, in the currency of the configured prices."""
    transcript: ArtifactHash | None = None
    """The model's conversation up to here."""


class Environment(Record):
    """A runnable image in which the tests of the base commit run."""

    parent: str
    """Id of the Candidate."""
    name: str
    plan: BuildPlan
    attempt: Annotated[int, MEASURED]
    """Number of the accepted attempt, from 1. Not part of the identity: repairs of the repository's other commits
    shorten the way to the same plan."""
    attempts: Annotated[tuple[Attempt, ...], MEASURED] = ()
    """All attempts, the accepted attempt last."""
    image: str
    """Name and tag of the image, a hash of its inputs: the same on every machine."""
    image_digest: Annotated[str, MEASURED]
    image_bytes: Annotated[int, MEASURED]
    """Bytes of the source layer, which no other environment shares."""
    collected_share: float
    """Share of the discovered test files with at least one test in the report, 0..1."""
    counts: Counts
    """Of the first run at the base commit."""
    base_report: Annotated[ArtifactHash, MEASURED]
    """Outcomes at the base commit (artifact) of the tests whose status is the same in both runs."""
    log: Annotated[ArtifactHash, MEASURED]
    seconds: Seconds
    test_seconds: Seconds
