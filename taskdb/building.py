"""What builders make: a plan of pure data with its evidence, the attempts at it, and the environment that came."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Annotated, ClassVar

from taskdb.base import MEASURED, ArtifactHash, Part, Record, Seconds


class Evidence(Part):
    """Where a choice of the plan comes from."""

    choice: str
    """The plan's field, such as `language_version`."""
    value: str
    path: str
    """File in the repository, or `(default)`, `(date)`."""
    line: int
    """1-based; 0 when the whole file speaks."""
    note: str = ""


class TestCommand(Part):
    """How a project's tests are run so that a report falls out."""

    __test__: ClassVar[bool] = False  # not a test class, whatever pytest thinks of the name
    framework: str
    """Name of a framework of some language (`languages.base.Framework`), such as `pytest`."""
    argv: tuple[str, ...]
    """The command without files and without report options, such as `("pytest", "-p", "no:cacheprovider")`."""
    paths: tuple[str, ...] = ()
    """What a whole-suite run is given: directories or files; empty leaves it to the project's configuration."""
    folder: str = ""
    """Folder of the tree in which the command runs, empty for its root; files of tests are told from the root all the
    same."""


class BuildPlan(Record):
    """Everything needed to make a box for one commit, each choice with its evidence. Pure data, no engine needed."""

    language: str
    language_version: str
    """Such as `3.11`; a key of the catalog of bases."""
    exclude_newer: str
    """Date (ISO, UTC midnight) after which no package version is used."""
    system_packages: tuple[str, ...]
    dependency_steps: tuple[str, ...]
    """Shell lines that need network and not the project's tree."""
    source_steps: tuple[str, ...]
    """Shell lines run in the tree after it was put in place, such as the editable install."""
    test: TestCommand
    manifests: tuple[tuple[str, str], ...] = ()
    """(path, git blob id) of files of the tree that the dependency steps read; they lie in the workdir then."""
    kept_folders: tuple[str, ...] = ()
    """Folders of the workdir that the dependency steps fill and git does not know, such as `node_modules`."""
    services: tuple[str, ...] = ()
    """Servers that run beside the tests, such as `postgresql`."""
    workdir: str = "/testbed"
    env: tuple[tuple[str, str], ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @cached_property
    def dependency_key(self) -> str:
        """Sha256 of the part that makes the dependency layer; commits with the same key share that layer."""
        part: list[object] = [
            self.language, self.language_version, self.exclude_newer, self.system_packages, self.dependency_steps,
        ]  # fmt: skip
        if self.manifests:
            part += [self.manifests, self.workdir, self.env]
        return hashlib.sha256(json.dumps(part).encode()).hexdigest()

    @property
    def dependency_image(self) -> str:
        """Name of the image with the dependency layer."""
        return f"mergemill/deps:{self.dependency_key[:16]}"


class Counts(Part):
    """How many tests of one run ended how."""

    passed: int = 0
    failed: int = 0
    error: int = 0
    skipped: int = 0
    xfailed: int = 0


class Attempt(Part):
    """One try at an environment: what was edited, by whom, and what came of it."""

    number: int
    """1 for the first draft."""
    by: str
    """`draft` for the first; `(nearest)`, `(skill NAME)`, `(fallback)` or `(agent)` for what others proposed."""
    why: str
    edits: tuple[str, ...]
    """In words, such as `add-system-package libffi-dev`."""
    reason: str
    """Why it was refused; `accepted` when it was not, `refused-edit` when it was not even built."""
    detail: str
    undone: bool = False
    """Whether it came less far than the one before, so that its edits were taken back."""
    seconds: float = 0.0
    tokens: int = 0
    """Read and written by a model for it."""
    cost: float = 0.0
    """What these tokens cost."""
    transcript: ArtifactHash | None = None
    """The model's conversation up to here."""


class Environment(Record):
    """A runnable image in which the tests of the base commit were seen to run."""

    parent: str
    """Id of the Candidate."""
    name: str
    plan: BuildPlan
    attempt: Annotated[int, MEASURED]
    """1 for the first plan tried. Not part of the identity: what is known of the repository's other commits shortens
    the way to the same plan."""
    attempts: Annotated[tuple[Attempt, ...], MEASURED] = ()
    """All tries, the accepted one last."""
    image: str
    """Name and tag of the image, made from the content it is built from: the same everywhere."""
    image_digest: Annotated[str, MEASURED]
    image_bytes: Annotated[int, MEASURED]
    """Bytes of the source layer, which this environment alone needs."""
    collected_share: float
    """Share of the discovered test files of which the report holds at least one test, 0..1."""
    counts: Counts
    """Of the first run at the base commit."""
    base_report: Annotated[ArtifactHash, MEASURED]
    """Outcomes at the base commit (artifact), of tests whose status was the same in both runs."""
    log: Annotated[ArtifactHash, MEASURED]
    seconds: Seconds
    test_seconds: Seconds
