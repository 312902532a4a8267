"""What mergemill knows, as frozen records. Read from top to bottom they are the data path.

What builders make stands in `taskdb.building`, verdicts in `taskdb.verdicts`, oracles in `taskdb.oracles`.

A record's `id` is the sha256 of its canonical JSON without the fields marked `Measured`: those (seconds, digests of
images as built, log hashes, clock times) ride along and are stored, but two runs that found the same thing give the
same id, so a rerun is a no-op. Every record names its parent's id, so every task can be traced to its change.

Large texts (patches, reports, logs) lie in the artifact store; a record holds their sha256 ("artifact hash").
Units: `*_seconds` are wall-clock seconds, `*_bytes` bytes, dates ISO 8601 in UTC.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from taskdb.base import MEASURED, ArtifactHash, Part, Seconds
from taskdb.base import Record as Record
from taskdb.base import TestId as TestId
from taskdb.building import Attempt as Attempt
from taskdb.building import BuildPlan as BuildPlan
from taskdb.building import Counts as Counts
from taskdb.building import Environment as Environment
from taskdb.building import Evidence as Evidence
from taskdb.building import TestCommand as TestCommand
from taskdb.discussion import AuthorKind, IssueLink
from taskdb.oracles import Oracle
from taskdb.tags import ChangeKind


class Stage(StrEnum):
    """The stages, in the order of the data path."""

    MINE = "mine"
    BUILD = "build"
    VERIFY = "verify"
    JUDGE = "judge"
    DERIVE = "derive"
    CERTIFY = "certify"


# ---------------------------------------------------------------------------------------------------- miner


class Shape(StrEnum):
    """How a change came into the history."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"
    COMMIT = "commit"
    RELEASE = "release"
    INSTANCE = "instance"


class Published(Part):
    """The lists a published task came with (SWE-bench's fields)."""

    fail_to_pass: tuple[TestId, ...]
    pass_to_pass: tuple[TestId, ...]


class PullRequest(Record):
    """One merged change as its source tells it, before any rule was asked."""

    source: str
    """The source as the user named it: `git:...`, `pypi:...`, `instances:...`; of a repository that was
    renamed, the first: `github:...` by the name under which it was first mined."""
    repo: str
    """`owner/name`; for a package its name twice, for a local path the best guess from its remote or folder."""
    name: str
    """What people see: `owner__repo-123`, `owner__repo-1a2b3c4d` for a commit, `name__name-1.2.3` for a release."""
    number: int | None
    shape: Shape
    title: str
    body: str
    """What the source says of the change: the pull request's text, the commit message, the changelog entry."""
    author: str
    merged_at: str
    """ISO 8601, UTC. For a release, the day it was uploaded."""
    base_commit: str
    """The first parent of the merge or squash commit (40 hex digits)."""
    merge_commit: str
    """The commit whose tree holds the change. Equal to `base_commit` for instances, which bring patches instead."""
    problem_statement: str = ""
    """A statement the source itself brings (changelog entry, published task); empty: title and body are it."""
    hints: str = ""
    patch: ArtifactHash | None = None
    """For instances: the gold patch as published."""
    test_patch: ArtifactHash | None = None
    version: str = ""
    """The project's version at the base commit where the source knows it, else empty."""
    published: Published | None = None
    author_kind: AuthorKind = AuthorKind.UNKNOWN
    labels: tuple[str, ...] = ()
    """As the forge spells them, sorted."""
    links: tuple[IssueLink, ...] = ()
    """Issues it speaks of, in the order of `LinkOrigin` and of the text."""
    discussion: ArtifactHash | None = None
    """Canonical JSON of `Discussion`; null when nobody said anything, or the source does not tell."""
    head_commit: str | None = None
    """Tip of the pull request's branch."""
    first_commit_at: str | None = None
    """When the first commit of the branch was made (ISO 8601, UTC); what was said later may know the solution."""
    base_ref: str | None = None
    """Name of the branch it was merged into, as the forge remembers it."""
    checks: Literal["success", "failure", "error", "pending", "expected"] | None = None
    """What the checks of its last commit came to, where the forge tells."""


class Candidate(Record):
    """A change that passed the miner's rules: base commit, gold patch, test patch, statement."""

    parent: str
    """Id of the PullRequest."""
    source: str
    repo: str
    name: str
    language: str
    base_commit: str
    merge_commit: str
    created_at: str
    """The change's own date (ISO 8601, UTC); packages are pinned to it."""
    version: str
    """As in PullRequest."""
    problem_statement: str
    hints: str
    license: str
    """SPDX expression found in the tree at the base commit, `NOASSERTION` when none was recognised."""
    gold_patch: ArtifactHash
    test_patch: ArtifactHash
    gold_files: tuple[str, ...]
    """Paths the gold patch touches (new names of renames), sorted."""
    test_files: tuple[str, ...]
    """Paths the test patch touches and leaves in place, sorted; fixtures and configuration among them."""
    gold_lines: int
    """Added and removed lines of the gold patch."""
    test_lines: int
    published: Published | None = None
    kind: Annotated[ChangeKind, MEASURED] = ChangeKind.OTHER
    """What the change is above all. Not part of the identity: better tags build nothing anew."""
    discussion: Annotated[ArtifactHash | None, MEASURED] = None
    """As in PullRequest. Not part of the identity: what is said of a change later builds nothing anew."""


# ------------------------------------------------------------------------------------------------- verifiers


class FailureKind(StrEnum):
    """How a FAIL_TO_PASS test failed before the gold patch."""

    ASSERTION = "assertion"
    ERROR = "error"
    COLLECTION = "collection"
    """Its file could not be imported or collected."""
    ABSENT = "absent"


class RunKind(StrEnum):
    """Which tree a run saw: B, B+T, B+T+G, or B+T'+G with sabotaged tests T'."""

    BASE = "base"
    TESTED = "tested"
    SOLVED = "solved"
    TWIN = "twin"


class TestRun(Part):
    """One run of the tests in one fresh container."""

    __test__: ClassVar[bool] = False
    kind: RunKind
    seed: int
    """0 keeps the project's order of files and hash seed 0; others shuffle both."""
    script: str
    """Sha256 of the evaluation script that ran."""
    image_digest: str
    report: ArtifactHash
    log: ArtifactHash
    exit_code: int
    killed_by: str | None
    """`time`, `memory`, `disk` or null."""
    seconds: float
    test_seconds: float
    """Seconds inside the test process alone."""
    counts: Counts


class Verification(Record):
    """What the tests say of one candidate: the lists, how each FAIL_TO_PASS failed, what was left out and why."""

    parent: str
    """Id of the Environment."""
    candidate: str
    name: str
    FAIL_TO_PASS: tuple[tuple[TestId, FailureKind], ...]
    PASS_TO_PASS: tuple[TestId, ...]
    flaky: tuple[tuple[TestId, str], ...]
    """Tests left out because their status varied, each with its statuses, such as `solved: passed 2, failed 1`."""
    twins: tuple[TestId, ...]
    """FAIL_TO_PASS tests for which a sabotaged twin was seen to fail under the gold patch."""
    eval_files: tuple[str, ...]
    """Test files the evaluation runs; empty means the whole suite."""
    eval_script: ArtifactHash
    twin_patch: ArtifactHash | None
    """Patch that replaces the test patch in a twin run; null when no twin could be made."""
    repeats: int
    runs: Annotated[tuple[TestRun, ...], MEASURED]
    seconds: Seconds


class ListDifference(Part):
    """A published list against ours. `missing`: published, not ours; `extra`: ours, not published."""

    missing: tuple[TestId, ...] = ()
    extra: tuple[TestId, ...] = ()


class PublishedVerdict(Part):
    """How our lists differ from the published ones; the verdict speaks of the FAIL_TO_PASS set."""

    verdict: Literal["exact", "superset", "subset", "different"]
    fail_to_pass: ListDifference
    pass_to_pass: ListDifference


class Score(Part):
    """What a submission is worth. `value` is null when the infrastructure failed: unscored is not zero."""

    task: str
    value: float | None
    resolved: bool
    f2p_rate: float
    p2p_rate: float
    tampering: tuple[str, ...] = ()
    explanation: str = ""
    infrastructure_error: str | None = None
    parts: dict[str, float] = Field(default_factory=dict)
    """What the value is made of, by name, for kinds whose value is no yes or no."""


# -------------------------------------------------------------------------------------------------- derivers


class Kind(StrEnum):
    """Kinds of tasks that derivers make."""

    BUGFIX = "bugfix"
    FEATURE = "feature"
    PERFORMANCE = "performance"
    TEST_WRITING = "test-writing"
    REVIEW = "review"
    INJECTED = "injected"
    COMBINED = "combined"
    SIMULATED = "simulated"


class Task(Record):
    """A task as it leaves the house: self-contained, it needs its image and nothing else of the database."""

    parent: str
    """Id of the Verification; of the Candidate, for kinds that need no environment."""
    candidate: str
    source: str
    name: str
    """`owner__repo-123.bugfix`; a number follows where a change gives several of one kind."""
    kind: Kind
    repo: str
    language: str
    language_version: str
    version: str
    base_commit: str
    created_at: str
    """Date of the change."""
    license: str
    problem_statement: str
    hints: str
    gold_patch: ArtifactHash
    test_patch: ArtifactHash
    twin_patch: ArtifactHash | None
    FAIL_TO_PASS: tuple[tuple[TestId, FailureKind], ...]
    PASS_TO_PASS: tuple[TestId, ...]
    twins: tuple[TestId, ...]
    eval_script: ArtifactHash | None
    plan: BuildPlan | None
    """Null where there is no environment, as are an empty image and an empty script."""
    image: str
    image_digest: Annotated[str, MEASURED]
    test_seconds: Annotated[float, MEASURED]
    """Longest `solved` run, for time limits of consumers."""
    published: PublishedVerdict | None = None
    others: tuple[str, ...] = ()
    """Ids of further candidates it is made of, sorted."""
    setup_patch: ArtifactHash | None = None
    """What the agent's tree has beyond the base commit's, such as an injected bug."""
    oracle: Oracle | None = None
    """What tells right from wrong for kinds to which the lists of tests are not enough."""
    environment: Literal["verified", "simulated", "none"] = "verified"

    @property
    def family(self) -> frozenset[str]:
        """Ids of all candidates it is made of; tasks that share one belong on one side of any split."""
        return frozenset({self.candidate, *self.others})

    @property
    def the_script(self) -> ArtifactHash:
        """The evaluation script; only for tasks that have an environment."""
        if self.eval_script is None:
            raise LookupError(f"{self.name} has no environment")
        return self.eval_script

    @property
    def the_plan(self) -> BuildPlan:
        """The plan; only for tasks that have an environment."""
        if self.plan is None:
            raise LookupError(f"{self.name} has no environment")
        return self.plan


class Certificate(Record):
    """Proof that a task holds, from its own image and script: gold 1 in every run, no-op 0."""

    parent: str
    """Id of the Task."""
    name: str
    gold: tuple[float, ...]
    noop: float
    image_digest: Annotated[str, MEASURED]
    seconds: Seconds


class Bundle(Record):
    """An export that was written."""

    format: str
    tasks: tuple[str, ...]
    """Ids of the tasks in it, sorted."""
    manifest_sha256: str
    out: Annotated[str, MEASURED]
    at: Annotated[str, MEASURED]


# ------------------------------------------------------------------------------------------- and all that fell


class Rejection(Record):
    """Why a record went no further. Stored, counted, shown by `funnel` and `why`."""

    parent: str
    """Id of the record that was rejected."""
    name: str
    """Name of the change, for people."""
    source: str
    stage: Stage
    reason: str
    """A value of the stage's own `Reason` enum, such as `no-tests`."""
    kind: Kind | None = None
    """Of the derivers: the kind of task that the change does not give."""
    detail: Annotated[str, MEASURED]
    """One line for people."""
    log: Annotated[ArtifactHash | None, MEASURED] = None
    attempts: Annotated[tuple[Attempt, ...], MEASURED] = ()
    """Of the builders: all tries."""
    published: PublishedVerdict | None = None
    """For instances whose tests ran: how the lists differ all the same."""
    seconds: Seconds = 0.0


def to_json(record: BaseModel) -> dict[str, Any]:
    """The record as plain JSON data, its id first where it has one."""
    data = record.model_dump(mode="json")
    return {"id": record.id, **data} if isinstance(record, Record) else data
