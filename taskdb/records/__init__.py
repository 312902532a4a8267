"""The records of mergemill, frozen. Read from top to bottom they are the data path.

Plans and environments are in `environments`, verdicts in `verdicts`, oracles in `oracles`.

A record's `id` is the sha256 of its canonical JSON without the fields marked `Measured`: those (seconds, digests of
images as built, log hashes, clock times) ride along and are stored, but two runs that found the same thing give the
same id, so a rerun is a no-op. Every record names its parent's id, so every task can be traced to its change.

Large texts (patches, reports, logs) lie in the artifact store; a record holds their sha256 ("artifact hash").
Units: `*_seconds` are wall-clock seconds, `*_bytes` bytes, dates ISO 8601 in UTC.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from taskdb.records.base import LATER, MEASURED, ArtifactHash, Part, Seconds
from taskdb.records.base import Record as Record
from taskdb.records.base import TestId as TestId
from taskdb.records.discussion import AuthorKind, IssueLink
from taskdb.records.environments import Attempt as Attempt
from taskdb.records.environments import BuildPlan as BuildPlan
from taskdb.records.environments import Counts as Counts
from taskdb.records.environments import Environment as Environment
from taskdb.records.environments import Evidence as Evidence
from taskdb.records.environments import TestCommand as TestCommand
from taskdb.records.oracles import Oracle, ReviewOracle
from taskdb.records.tags import ChangeKind


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
    HEAD = "head"
    """It is none: the newest commit of a branch, of which the environment alone is used."""


class TestOrigin(StrEnum):
    """Who wrote the tests that decide about a change."""

    __test__ = False
    HUMAN = "human"
    """They are part of the change, or of the tree before it."""
    MODEL_WRITTEN = "model-written"
    """A model wrote them for a change without tests."""


class PublishedLists(Part):
    """The lists a published task came with (SWE-bench's fields)."""

    FAIL_TO_PASS: tuple[TestId, ...]
    PASS_TO_PASS: tuple[TestId, ...]


class PullRequest(Record):
    """A merged change as its source describes it, before any rule is applied."""

    source: str
    """The source as the user named it: `git:...`, `pypi:...`, `instances:...`. A renamed GitHub repository keeps the
    name under which it was first mined."""
    repo: str
    """`owner/name`; for a package its name twice, for a local path the best guess from its remote or folder."""
    name: str
    """Name for people: `owner__repo-123`, `owner__repo-1a2b3c4d` for a commit, `name__name-1.2.3` for a release."""
    number: int | None
    shape: Shape
    title: str
    body: str
    """Description of the change: the pull request's text, the commit message, the changelog entry."""
    author: str
    merged_at: str
    """ISO 8601, UTC. For a release, the day it was uploaded."""
    base_commit: str
    """The first parent of the merge or squash commit (40 hex digits)."""
    merge_commit: str
    """The commit whose tree holds the change. Equal to `base_commit` for instances, which bring patches instead."""
    problem_statement: str = ""
    """Problem statement given by the source (changelog entry, published task); empty: title and body are used."""
    hints: str = ""
    patch: ArtifactHash | None = None
    """For instances: the gold patch as published."""
    test_patch: ArtifactHash | None = None
    version: str = ""
    """The project's version at the base commit where the source has it, else empty."""
    published: PublishedLists | None = None
    author_kind: AuthorKind = AuthorKind.UNKNOWN
    labels: tuple[str, ...] = ()
    """As the forge spells them, sorted."""
    links: tuple[IssueLink, ...] = ()
    """Issues it mentions, in the order of `LinkOrigin` and of the text."""
    discussion: ArtifactHash | None = None
    """Canonical JSON of `Discussion`; null when there are no comments or the source has none."""
    head_commit: str | None = None
    """Tip of the pull request's branch."""
    first_commit_at: str | None = None
    """Date of the branch's first commit (ISO 8601, UTC); later comments may reveal the solution."""
    base_ref: str | None = None
    """Name of the branch it was merged into, according to the forge."""
    checks: Literal["success", "failure", "error", "pending", "expected"] | None = None
    """Combined result of the checks of its last commit, where the forge has it."""


class Candidate(Record):
    """A change that passed the mining rules: base commit, gold patch, test patch, statement."""

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
    published: PublishedLists | None = None
    change_kind: Annotated[ChangeKind, MEASURED] = ChangeKind.OTHER
    """Primary kind of the change. Not part of the identity: better tags cause no rebuild."""
    discussion: Annotated[ArtifactHash | None, MEASURED] = None
    """As in PullRequest. Not part of the identity: later comments cause no rebuild."""
    tests: Annotated[TestOrigin, LATER] = TestOrigin.HUMAN
    """`model-written`: the change has no tests, and the verification has a model write them."""
    incidental_files: Annotated[tuple[str, ...], LATER] = ()
    """Those of `gold_files` that are no part of the fix: instructions for agents, lock files and changelogs."""


# ------------------------------------------------------------------------------------------------- verifiers


class FailureKind(StrEnum):
    """How a FAIL_TO_PASS test failed before the gold patch."""

    ASSERTION = "assertion"
    ERROR = "error"
    COLLECTION = "collection"
    """Its file could not be imported or collected."""
    ABSENT = "absent"
    UNKNOWN = "unknown"
    """It was not run here: the list is a published one."""


class RunVariant(StrEnum):
    """The tree of a run: B, B+T, B+T+G, or B+T'+G with sabotaged tests T'."""

    BASE = "base"
    TEST_ONLY = "test-only"
    GOLD = "gold"
    CONTROL = "control"


class TestRun(Part):
    """A run of the tests in a fresh container, or behind another run of a trusted tree there."""

    __test__: ClassVar[bool] = False
    variant: RunVariant
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


class FlakyTest(Part):
    """A test excluded because its status varies between runs, or because its id holds a date of the runs."""

    test: TestId
    counts: dict[RunVariant, dict[str, int]]
    """Kind of run -> status (`passed`, `failed`, `error`, `skipped`, `xfailed`, `absent`) -> number of runs."""
    date: str = ""
    """Date of the runs in the id that the test's source does not hold, such as `2026-11-28` or `the year 2027`."""

    def describe_counts(self) -> str:
        """Return the counts as text, most frequent first, such as `test-only: failed 3; gold: passed 2, failed 1`."""
        described = []
        for variant in (run_variant for run_variant in RunVariant if run_variant in self.counts):
            counts = sorted(self.counts[variant].items(), key=lambda item: (-item[1], item[0]))
            described.append(f"{variant.value}: {', '.join(f'{status} {number}' for status, number in counts)}")
        dated = f"its id holds {self.date}, a date of the run, which its source does not; " if self.date else ""
        return dated + "; ".join(described)


class Weakness(StrEnum):
    """Why a test is weak evidence, or none."""

    SKIPS = "skips-without-package"
    """It passes here, and is skipped where a package or program is missing."""
    REPEATED = "reported-twice"
    """A report has several rows of it, all of the same status; those of different status are in no list."""
    ASSERTS_NOTHING = "asserts-nothing"
    """Neither its file nor a helper that the file uses has an assertion."""
    SKIPPED = "skipped"
    """It is in a file of the change and was skipped in every gold run, so it is in no list."""


class WeakTest(Part):
    """A test that shows little, or a file of the change that was skipped as a whole."""

    test: TestId
    weakness: Weakness
    evidence: str
    """Place and text of the source, or what the reports have."""


class WrittenTests(Part):
    """Tests that a model wrote for a change without tests, and the evidence that showed that they test it."""

    patch: ArtifactHash
    """The test patch."""
    files: tuple[str, ...]
    """Paths of the test patch, sorted."""
    model: str
    prompt: str
    """Name and version of the prompt."""
    attempt: Annotated[int, MEASURED]
    """Number of the answer that was accepted, from 1."""
    transcript: Annotated[ArtifactHash, MEASURED]
    """JSON of the conversation: a list of `{"role", "content"}`."""
    faults: Annotated[int, MEASURED]
    """Mutants of the gold patch, and the patch without any of its hunks, that could be run."""
    faults_detected: Annotated[int, MEASURED]
    """Those among them that a written test fails on."""
    variants: Annotated[int, MEASURED]
    """Rewrites of the gold patch that keep its behaviour; the written tests pass with each."""


class Verification(Record):
    """Lists of a candidate's tests, how each FAIL_TO_PASS test failed, and which tests were excluded and why."""

    parent: str
    """Id of the Environment."""
    candidate: str
    name: str
    FAIL_TO_PASS: tuple[tuple[TestId, FailureKind], ...]
    PASS_TO_PASS: tuple[TestId, ...]
    flaky: tuple[tuple[TestId, str], ...] = ()
    """Of earlier versions, where it was part of the identity; empty since. `list_flaky` reads both fields."""
    controls: tuple[TestId, ...]
    """FAIL_TO_PASS tests of which the gold patch was seen to fail other instances."""
    eval_files: tuple[str, ...]
    """Test files of the evaluation; empty for the whole suite."""
    eval_script: ArtifactHash
    control_patch: ArtifactHash | None
    """Of earlier versions, which had a sabotaged run; null since."""
    repeats: int
    runs: Annotated[tuple[TestRun, ...], MEASURED]
    seconds: Seconds
    dropped_canaries: Annotated[bool, LATER] = False
    """Whether the script has no canaries because the first gold run did not report them as it should."""
    blind_controls: Annotated[ArtifactHash | None, LATER] = None
    """Other instances of the tests (`guest.controls.blind`); null where no test has any."""
    control_bound: Annotated[float | None, LATER] = None
    """Probability of passing for a submission that solves nothing and chooses the instances of tests that look true."""
    worst_block_bound: Annotated[float | None, LATER] = None
    """Probability of passing for a submission that solves all tests but those of one block, for the worst block."""
    evaluations: Annotated[int, LATER] = 1
    """Runs of the tests that a grading takes."""
    flaky_tests: Annotated[tuple[FlakyTest, ...], MEASURED] = ()
    """Excluded tests with their counts, sorted; measured, as names and counts may differ between two verifications."""
    written_tests: Annotated[WrittenTests | None, LATER] = None
    """Test patch of the verification where a model wrote it; null where it is the candidate's own."""
    gold_patch: Annotated[ArtifactHash | None, LATER] = None
    """The candidate's gold patch without its incidental files, where the tests pass without them; null elsewhere."""
    weak_tests: Annotated[tuple[WeakTest, ...], MEASURED] = ()
    """Listed tests that are weak evidence, and skipped tests of the change, sorted; empty in earlier records."""

    def list_flaky(self) -> list[tuple[TestId, str]]:
        """Return the tests excluded as flaky, each with its statuses as text."""
        return [*self.flaky, *((flaky_test.test, flaky_test.describe_counts()) for flaky_test in self.flaky_tests)]

    def compute_skipped_share(self) -> float:
        """Return the share of tests that were skipped in the last gold run, 0..1."""
        counts = next((run.counts for run in reversed(self.runs) if run.variant is RunVariant.GOLD), Counts())
        total = sum(counts.model_dump().values())
        return counts.skipped / total if total else 0.0

    def list_gold_seconds(self) -> list[float]:
        """Return the seconds inside the test process of each gold run of the final script.

        A long suite ran as a whole before that, with another script.
        """
        gold = [run for run in self.runs if run.variant is RunVariant.GOLD]
        final = [run for run in gold if run.script == self.eval_script]
        return [run.test_seconds for run in final or gold]


class ListDifference(Part):
    """A published list against ours. `missing`: published, not ours; `extra`: ours, not published."""

    missing: tuple[TestId, ...] = ()
    extra: tuple[TestId, ...] = ()


class DifferenceCause(StrEnum):
    """Why a published list and ours differ in a test, as far as reports and logs show it."""

    FLAKY = "flaky"
    """Its status varies between the runs of the verification."""
    ENVIRONMENT = "environment"
    """It was skipped, or failed for a missing module, program or file, or another version of it."""
    COLLECTION = "collection"
    """Its file was not collected or compiled, or is not among the files that were run or published."""
    ID_SPELLING = "id-spelling"
    """Both have it; the published id fits several tests, or differs in more than the known readings allow."""
    NETWORK = "network"
    TIME = "time"
    """A time limit, or a result that depends on the date."""
    UNKNOWN = "unknown"


class TestDifference(Part):
    """A test in which a published list and ours differ, with the cause."""

    __test__: ClassVar[bool] = False
    list_name: Literal["FAIL_TO_PASS", "PASS_TO_PASS"]
    side: Literal["missing", "extra"]
    test: TestId
    cause: DifferenceCause
    detail: str
    """A line: a quotation from the report or log, or the fact that was found."""


class PublishedGroup(Part):
    """A published id that is matched, but not by exactly one test that no other published id matches."""

    list_name: Literal["FAIL_TO_PASS", "PASS_TO_PASS"]
    published: TestId
    level: Literal["name", "parent", "file"]
    """`name`: tests whose names are equal as published (cut, or without the file); `parent`: a Go test with its
    subtests; `file`: a whole file, class or program."""
    tests: int
    """Number of our tests for which it stands."""


class PublishedVerdict(Part):
    """How our lists differ from the published lists; the verdict is about the FAIL_TO_PASS set.

    `exact`: every published id is exactly one of our tests, and there are no others. `exact-by-name`, `exact-by-parent`
    and `exact-by-file`: the same, but some published ids stand for several tests, as in `PublishedGroup`; the coarsest
    level counts. `superset`: we have more, `subset`: fewer, `different`: both. Verdicts stored without `readings` and
    `groups` may be of earlier versions, whose `exact` included the other three and lists that name a file of which any
    test was ours.
    """

    verdict: Literal["exact", "exact-by-name", "exact-by-parent", "exact-by-file", "superset", "subset", "different"]
    fail_to_pass: ListDifference
    pass_to_pass: ListDifference
    readings: Annotated[tuple[str, ...], MEASURED] = ()
    """Readings of our ids by which FAIL_TO_PASS ids match, other than as written."""
    groups: Annotated[tuple[PublishedGroup, ...], MEASURED] = ()
    causes: Annotated[tuple[TestDifference, ...], MEASURED] = ()
    """A cause for each missing and extra test; empty where the verdict was made without diagnosis."""


class Score(Part):
    """Result of grading a submission. `value` is null when the infrastructure failed: unscored is not zero."""

    task: str
    value: float | None
    resolved: bool
    f2p_rate: float
    p2p_rate: float
    tampering: tuple[str, ...] = ()
    explanation: str = ""
    infrastructure_error: str | None = None
    parts: dict[str, float] = Field(default_factory=dict)
    """Components of the value by name, for kinds whose value is not 0 or 1."""
    verdicts: dict[str, str] = Field(default_factory=dict)
    """Constraint of an instruction task -> state of its check, such as `passed`; empty where none was decided."""
    evaluations: int = 0
    """Evaluations that were made, each in a fresh container; 0 for kinds with another oracle."""
    control_bound: float | None = None
    worst_block_bound: float | None = None
    """As in `Task`."""
    grader: str = ""
    """Version of the code that graded it, for a scenario that of worlds; empty where no version was stored."""


# -------------------------------------------------------------------------------------------------- derivers


class Kind(StrEnum):
    """Kinds of tasks that derivers make."""

    BUGFIX = "bugfix"
    FEATURE = "feature"
    PERFORMANCE = "performance"
    TEST_WRITING = "test-writing"
    REVIEW = "review"
    INJECTED = "injected"
    REBUILD = "rebuild"
    COMBINED = "combined"
    SIMULATED = "simulated"
    TERSE = "terse"
    """A bug fix or feature with a short statement; as the next two, it has the tests of its original."""
    USER_STORY = "user-story"
    TRACEBACK = "traceback"
    REFACTORING = "refactoring"
    DEPENDENCY_MIGRATION = "dependency-migration"
    MIRRORED = "mirrored"
    """An issue of another project, made again as a bug of this one."""
    INSTRUCTIONS = "instructions"
    """A bug fix or feature with instructions from several sources, each decided by a check."""


class MirrorOrigin(Part):
    """Change of another project whose issue a task makes again, and the tests that a model wrote for that."""

    candidate: str
    """Id of its candidate."""
    name: str
    """Name of the change."""
    repo: str
    license: str
    written_tests: WrittenTests


class Injection(Part):
    """A bug that was injected into a task's tree: its place in the base tree, and how it was made."""

    path: str
    function: str
    """Name of the innermost function or type around it, such as `Cart.total`; empty where it is in none."""
    operator: str
    """Name of the mutation operator; `history`: an earlier commit is undone; `model-written`: a model wrote it."""
    line: int
    """First line that differs, 1-based, in the base tree."""
    detail: str
    """A line for people, such as `a < b became a <= b`; it reveals the bug."""


class ChangedCode(Part):
    """Code that a gold patch changes, measured in the agent's tree: what tasks are compared by."""

    functions: tuple[str, ...]
    """`PATH::NAME` of the innermost definitions around changed lines, before and after the patch, with the names of
    classes around them; `PATH` alone for lines outside of any. Sorted; of source files, where it changes any."""
    files: int
    lines: int
    """Added and removed lines."""
    hunks: int
    call_depth: int | None
    """Calls from the nearest FAIL_TO_PASS test to a changed function, by names in the source: 1 where the test itself
    names one. Null where none was found. Equal names are taken for equal functions, so it is a lower bound."""


class Task(Record):
    """A task as it is exported: self-contained, it needs its image and nothing else of the database."""

    parent: str
    """Id of the Verification; of the Environment, for tasks of an environment alone; of the Candidate, for kinds that
    need no environment."""
    candidate: str
    source: str
    name: str
    """`owner__repo-123.bugfix`; a number follows where a change gives several of the same kind. Of an imported task,
    the name of its change."""
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
    control_patch: ArtifactHash | None
    FAIL_TO_PASS: tuple[tuple[TestId, FailureKind], ...]
    PASS_TO_PASS: tuple[TestId, ...]
    controls: tuple[TestId, ...]
    eval_script: ArtifactHash | None
    plan: BuildPlan | None
    """Null where there is no environment, as are an empty image and an empty script."""
    image: str
    image_digest: Annotated[str, MEASURED]
    test_seconds: Annotated[float, MEASURED]
    """Seconds of the longest gold run, for time limits of consumers."""
    published: PublishedVerdict | None = None
    other_candidates: tuple[str, ...] = ()
    """Ids of the further candidates it combines, sorted."""
    setup_patch: ArtifactHash | None = None
    """Patch applied to the agent's tree on top of the base commit, such as an injected bug."""
    oracle: Oracle | None = None
    """Definition that decides the reward, for kinds whose lists of tests are not sufficient."""
    environment: Literal["verified", "simulated", "none", "imported"] = "verified"
    """`imported`: the task is as it was published, with its lists, and nothing of it was run."""
    blind_controls: Annotated[ArtifactHash | None, LATER] = None
    """Other instances of the tests; this and the next three as in `Verification`."""
    control_bound: Annotated[float | None, LATER] = None
    worst_block_bound: Annotated[float | None, LATER] = None
    evaluations: Annotated[int, LATER] = 1
    variant_of: Annotated[str, LATER] = ""
    """Name of the task of which it is a variant: the same in everything but the statement."""
    tests: Annotated[TestOrigin, LATER] = TestOrigin.HUMAN
    weak_tests: Annotated[tuple[WeakTest, ...], MEASURED] = ()
    """Those of `Verification` that are in a list of the task."""
    injections: Annotated[tuple[Injection, ...], MEASURED] = ()
    """Injected bugs, of injected-bug tasks; empty in earlier records, and for all other kinds."""
    mirror: Annotated[MirrorOrigin | None, LATER] = None
    """The change that a mirrored task makes again; null for other kinds."""
    changed_code: Annotated[ChangedCode | None, MEASURED] = None
    """Null where its tree could not be read, and in records of earlier versions."""

    @property
    def rests_on_copies(self) -> bool:
        """Whether its bound is one of earlier versions that a submission can beat by comparing copies of tests.

        Without copies such a bound is a power of a third, or there are more than two evaluations.
        """
        if self.worst_block_bound is not None or not self.control_bound or self.evaluations != 2:
            return False
        tests = -math.log(self.control_bound, 3)
        return abs(tests - round(tests)) > 1e-9

    @property
    def family(self) -> frozenset[str]:
        """Ids of all candidates it is made of; tasks that share a belong to the same side of any split."""
        mirrored = (self.mirror.candidate,) if self.mirror else ()
        return frozenset({self.candidate, *self.other_candidates, *mirrored})

    def require_script(self) -> ArtifactHash:
        """Return the evaluation script.

        Raises:
            LookupError: the task has no environment.
        """
        if self.eval_script is None:
            raise LookupError(f"{self.name} has no environment")
        return self.eval_script

    def require_plan(self) -> BuildPlan:
        """Return the build plan.

        Raises:
            LookupError: the task has no environment.
        """
        if self.plan is None:
            raise LookupError(f"{self.name} has no environment")
        return self.plan

    def list_tree_commits(self) -> tuple[str, ...]:
        """Return the commits whose trees the task needs: its base commit, and the commit that a review is of."""
        tree = self.oracle.tree if isinstance(self.oracle, ReviewOracle) else None
        return tuple(dict.fromkeys([self.base_commit, tree or self.base_commit]))


class ExploitReference(Part):
    """Certified task whose gradings the certificate of another task relies on. It is named and need not be stored."""

    task: str
    """Id of the task."""
    name: str


class Certificate(Record):
    """Proof from the task's own image and script that gold scores 1 in every run and the no-op 0."""

    parent: str
    """Id of the Task."""
    name: str
    gold: tuple[float, ...]
    noop: float
    image_digest: Annotated[str, MEASURED]
    seconds: Seconds
    conditions: Annotated[tuple[str, ...], LATER] = ()
    """Conditions of each grading of gold, a line each, with the name of another task whose grading it was."""
    gold_tree: Annotated[str, MEASURED] = ""
    """Key of its gold tree (`mergemill.execution.gold_trees`), with the layers of this machine's image; empty where no
    other task may have the same."""
    gold_of: Annotated[ExploitReference | None, LATER] = None
    """Task with the same gold tree on whose gradings of gold under other conditions it relies; null where all in `gold`
    are its own."""
    exploits: Annotated[dict[str, float | None], LATER] = Field(default_factory=dict)
    """Name of a submission that must earn 0 -> its value.

    A submission that only controls expose may earn 1 where there are none.
    """
    combined_exploits: Annotated[dict[str, tuple[str, ...]], LATER] = Field(default_factory=dict)
    """Name of a submission that made several of these exploits at once -> their names; the others were graded alone."""
    environment_family: Annotated[str, LATER] = ""
    """Key of the task's environment family (`mergemill.execution.environment_families`); empty where none is known."""
    exploits_of: Annotated[ExploitReference | None, LATER] = None
    """Task of the same environment family on whose exploits it relies; null where its own were graded, or none."""
    dutiful: Annotated[dict[str, str], LATER] = Field(default_factory=dict)
    """Constraint of an instruction task -> state of its check for the script that follows all; empty elsewhere."""
    careless: Annotated[dict[str, float], LATER] = Field(default_factory=dict)
    """Constraint -> value of the script that breaks it and no other, by the checks alone."""
    machine: Annotated[dict[str, Any], MEASURED] = Field(default_factory=dict)
    """Where it was certified: architecture, CPUs, memory, kernel, engine; empty for tasks without an image."""
    evaluations: Annotated[int, MEASURED] = 0
    """Runs of the tests that the certificate took."""


class Bundle(Record):
    """A finished export."""

    format: str
    tasks: tuple[str, ...]
    """Ids of the tasks in it, sorted."""
    manifest_sha256: str
    out: Annotated[str, MEASURED]
    at: Annotated[str, MEASURED]


# ------------------------------------------------------------------------------------------------ rejections


class Rejection(Record):
    """Reason that a record was rejected by a stage. Stored, counted, shown by `funnel` and `why`."""

    parent: str
    """Id of the record that was rejected."""
    name: str
    """Name of the change, for people."""
    source: str
    stage: Stage
    reason: str
    """A value of the stage's own `Reason` enum, such as `no-tests`."""
    kind: Kind | None = None
    """For derivers: the kind of task that cannot be derived from the change."""
    detail: Annotated[str, MEASURED]
    """A line for people."""
    log: Annotated[ArtifactHash | None, MEASURED] = None
    attempts: Annotated[tuple[Attempt, ...], MEASURED] = ()
    """For builders: all attempts."""
    published: PublishedVerdict | None = None
    """For instances whose tests ran: how the lists differ."""
    seconds: Seconds = 0.0


def to_json(record: BaseModel) -> dict[str, Any]:
    """Return the record as plain JSON data, its id first where any."""
    data = record.model_dump(mode="json")
    return {"id": record.id, **data} if isinstance(record, Record) else data
