"""Tables. A row is a record (`body`: compressed JSON) under its id; further columns are those used to filter or sort.

Table names are singular (a row is a record); the documented views in `taskdb.schema.views` have the plural names. `seq`
increases, so the newest row of a parent has the largest. A new field of a record needs no migration; a new column does,
but for those of tasks (`taskdb.schema.task_columns`).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, MetaData, UniqueConstraint
from sqlmodel import Field, SQLModel

from taskdb.schema.columns import COLUMN_TYPES, ChangeColumns, DerivationColumns
from taskdb.schema.task_columns import DECLARED, NULLABLE, VALUE_TYPES, TaskColumns

NAMING = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
SQLModel.metadata.naming_convention = NAMING


class TableRow(SQLModel):
    """Base of the rows. They are never validated, the tables alone are used: pydantic need not build validators."""

    model_config = {"defer_build": True}


class RecordRow(TableRow):
    """Columns of every table of records."""

    seq: int | None = Field(default=None, primary_key=True)
    id: str = Field(unique=True)
    body: bytes
    """The record's JSON in its stored form (`taskdb.schema.stored_records`), measured fields among them."""
    added_at: str
    """ISO 8601, UTC."""


class PullRequestRow(RecordRow, table=True):
    """`PullRequest`."""

    __tablename__ = "pull_request"
    source: str = Field(index=True)
    repo: str = Field(index=True)
    name: str = Field(index=True)
    number: int | None
    shape: str
    author: str
    title: str
    merged_at: str


class TaggingRow(RecordRow, table=True):
    """`Tags` of a change. `kind`: the primary; `language`: that of the largest share, or empty."""

    __tablename__ = "tagging"
    parent: str = Field(foreign_key="pull_request.id", index=True)
    name: str
    change_kind: str = Field(index=True)
    language: str
    size: str
    changed_files: int
    changed_lines: int | None


class TagRow(TableRow, table=True):
    """A kind of a change. `place`: 1 for the primary; `rule` and `quote`: its strongest sign."""

    __tablename__ = "tag"
    seq: int | None = Field(default=None, primary_key=True)
    tagging: str = Field(foreign_key="tagging.id", index=True)
    change_kind: str = Field(index=True)
    rank: int
    confidence: float
    rule: str
    quote: str
    route: str
    """Kinds of tasks the change can become, with blanks between them."""


class CandidateRow(RecordRow, table=True):
    """`Candidate`."""

    __tablename__ = "candidate"
    parent: str = Field(foreign_key="pull_request.id", index=True)
    source: str = Field(index=True)
    repo: str = Field(index=True)
    name: str = Field(index=True)
    language: str
    license: str
    base_commit: str
    created_at: str
    gold_lines: int
    test_lines: int
    n_gold_files: int
    tests: str


class EnvironmentRow(RecordRow, table=True):
    """`Environment`."""

    __tablename__ = "environment"
    parent: str = Field(foreign_key="candidate.id", index=True)
    name: str = Field(index=True)
    language_version: str
    image: str
    image_digest: str
    image_bytes: int
    attempt: int
    collected_share: float
    seconds: float
    test_seconds: float


class VerificationRow(RecordRow, table=True):
    """`Verification`."""

    __tablename__ = "verification"
    parent: str = Field(foreign_key="environment.id", index=True)
    candidate: str = Field(foreign_key="candidate.id", index=True)
    name: str = Field(index=True)
    n_fail_to_pass: int
    n_pass_to_pass: int
    n_flaky: int
    repeats: int
    seconds: float
    n_gold_runs: int
    """Gold runs that were not killed."""


class VerdictRow(RecordRow, table=True):
    """`Verdict`. `n_opinions`: those that count."""

    __tablename__ = "verdict"
    parent: str = Field(foreign_key="verification.id", index=True)
    candidate: str = Field(foreign_key="candidate.id", index=True)
    name: str = Field(index=True)
    underspecified: float
    unfair_tests: float
    set_aside: str | None
    n_findings: int
    n_opinions: int
    agreement: float | None
    tokens: int
    cost: float
    seconds: float


class FindingRow(TableRow, table=True):
    """A finding of a verdict. `place`: where its quote stands."""

    __tablename__ = "finding"
    seq: int | None = Field(default=None, primary_key=True)
    verdict: str = Field(foreign_key="verdict.id", index=True)
    rule: str = Field(index=True)
    quote: str
    detail: str
    quote_source: str


class TaskRow(RecordRow, table=True):
    """`Task`. `parent`: a verification, an environment or a candidate.

    Its words are in `task_search` (`taskdb.schema.search`).
    Columns that `taskdb.schema.task_columns` computes from the record are added below.
    """

    __tablename__ = "task"
    # Without a foreign key, as the parent is in any of three tables.
    parent: str = Field(index=True)
    candidate: str = Field(foreign_key="candidate.id", index=True)
    source: str = Field(index=True)
    name: str = Field(index=True)
    kind: str = Field(index=True)
    repo: str = Field(index=True)
    language: str
    language_version: str
    license: str
    base_commit: str
    created_at: str
    n_fail_to_pass: int
    n_pass_to_pass: int
    environment: str
    image: str
    image_digest: str
    n_controls: int
    control_bound: float | None
    test_seconds: float
    tests: str


class CertificateRow(RecordRow, table=True):
    """`Certificate`."""

    __tablename__ = "certificate"
    parent: str = Field(foreign_key="task.id", index=True)
    name: str = Field(index=True)
    noop: float
    seconds: float
    n_gold_runs: int
    """Gold runs of value 1."""


class AuditRow(RecordRow, table=True):
    """`Audit`."""

    __tablename__ = "audit"
    parent: str = Field(foreign_key="task.id", index=True)
    name: str
    clean: bool
    n_findings: int
    strength: float | None
    untested_hunks: str | None
    image_digest: str
    at: str
    seconds: float


class RolloutRow(RecordRow, table=True):
    """`Rollout`.

    `parent` is a task or a scenario; `n_leaks`: number of attempts to get at the secrets that the task hides.
    """

    __tablename__ = "rollout"
    # Without a foreign key, as the parent is a task or a scenario.
    parent: str = Field(index=True)
    name: str = Field(index=True)
    environment: str = Field(default="", sa_column_kwargs={"server_default": ""})
    plan: str = Field(index=True)
    scaffold: str
    scaffold_version: str
    model: str
    checkpoint: str
    attempt: int
    retry: int
    origin: str
    status: str
    reason: str | None
    value: float | None
    resolved: bool
    n_leaks: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost: float
    seconds: float
    at: str


class TrajectoryRow(RecordRow, table=True):
    """`Trajectory`."""

    __tablename__ = "trajectory"
    parent: str = Field(foreign_key="rollout.id", index=True)
    name: str = Field(index=True)
    root: int
    role: str
    scaffold: str
    model: str
    attempt: int
    value: float | None
    n_requests: int
    n_branches: int
    prompt_tokens: int
    completion_tokens: int
    has_token_ids: bool


class TrajectorySelectionRow(RecordRow, table=True):
    """`TrajectorySelection`."""

    __tablename__ = "trajectory_selection"
    parent: str = Field(foreign_key="trajectory.id", index=True)
    selected: bool
    reason: str | None
    at: str


class RejectionRow(RecordRow, table=True):
    """`Rejection`. `parent` is a record of any kind."""

    __tablename__ = "rejection"
    # Without a foreign key, as the parent is a record of any table.
    parent: str = Field(index=True)
    source: str = Field(index=True)
    name: str = Field(index=True)
    stage: str = Field(index=True)
    reason: str = Field(index=True)
    detail: str
    seconds: float
    kind: str | None


class BundleRow(RecordRow, table=True):
    """`Bundle`."""

    __tablename__ = "bundle"
    format: str
    n_tasks: int
    out: str
    manifest_sha256: str


class ImageCopyRow(RecordRow, table=True):
    """`ImageCopy`: a registry that has an image."""

    __tablename__ = "image_copy"
    image: str = Field(index=True)
    image_digest: str
    reference: str


class ThemeRow(RecordRow, table=True):
    """`Theme`. `parent`: id of the seed task."""

    __tablename__ = "theme"
    parent: str = Field(index=True)
    source: str = Field(index=True)
    name: str = Field(index=True)
    label: str
    license: str
    usefulness: int
    modelability: int
    model: str


class WorldRow(RecordRow, table=True):
    """`World`."""

    __tablename__ = "world"
    parent: str | None = Field(foreign_key="theme.id", index=True)
    source: str = Field(index=True)
    name: str = Field(index=True)
    origin: str
    environment: str
    license: str
    model: str
    n_tools: int
    n_queries: int
    n_changes: int
    n_attributes: int


class WorldCertificateRow(RecordRow, table=True):
    """`WorldCertificate`."""

    __tablename__ = "world_certificate"
    parent: str = Field(foreign_key="world.id", index=True)
    name: str
    n_calls: int
    rounds: int
    passed: int
    warned: int
    failed: int
    pass_rate: float | None
    score: float | None


class ScenarioRow(RecordRow, table=True):
    """`Scenario`."""

    __tablename__ = "scenario"
    parent: str = Field(foreign_key="world.id", index=True)
    world: str = Field(index=True)
    name: str = Field(index=True)
    environment: str
    license: str
    model: str
    n_checks: int


class ScenarioCertificateRow(RecordRow, table=True):
    """`ScenarioCertificate`."""

    __tablename__ = "scenario_certificate"
    parent: str = Field(foreign_key="scenario.id", index=True)
    name: str
    solution_origin: str
    n_calls: int
    n_tools: int
    n_queries: int
    n_kept: int
    mutations: int
    mutations_noticed: int


class WorldRejectionRow(RecordRow, table=True):
    """`WorldRejection`. `parent`: a theme, world, scenario or seed task."""

    __tablename__ = "world_rejection"
    # Without a foreign key, as the parent is in one of several tables or, for a seed task, in none.
    parent: str = Field(index=True)
    source: str
    name: str = Field(index=True)
    step: str = Field(index=True)
    reason: str = Field(index=True)
    detail: str


class SimulatedConversationRow(RecordRow, table=True):
    """`SimulatedConversation`."""

    __tablename__ = "simulated_conversation"
    parent: str = Field(index=True)
    name: str = Field(index=True)
    environment: str
    domain: str
    pack_version: str
    profile: str
    simulator: str
    prompt: str
    sample: int
    scenario: str
    failure: str | None
    license: str
    answer: str = Field(index=True)
    n_turns: int
    n_calls: int
    trajectory: str


class SimulationRejectionRow(RecordRow, table=True):
    """`SimulationRejection`."""

    __tablename__ = "simulation_rejection"
    parent: str = Field(index=True)
    name: str = Field(index=True)
    environment: str
    domain: str
    profile: str
    simulator: str
    answer: str = Field(index=True)
    step: str
    reason: str
    detail: str


class CorpusRow(RecordRow, table=True):
    """`Corpus`."""

    __tablename__ = "corpus"
    name: str = Field(index=True)
    source: str
    language: str
    pages_sha256: str
    index_sha256: str
    n_pages: int
    n_left_out: int


class WalkRow(RecordRow, table=True):
    """`Walk`."""

    __tablename__ = "walk"
    parent: str = Field(foreign_key="corpus.id", index=True)
    corpus: str
    name: str = Field(index=True)
    seed: str
    model: str
    n_calls: int
    n_pages: int
    n_facts: int


class QuestionRow(RecordRow, table=True):
    """`Question`. `parent`: a walk or a question."""

    __tablename__ = "question"
    parent: str
    walk: str = Field(foreign_key="walk.id", index=True)
    corpus: str = Field(index=True)
    name: str = Field(index=True)
    environment: str
    round: int
    answer_type: str
    license: str
    model: str
    n_clues: int


class QuestionCertificateRow(RecordRow, table=True):
    """`QuestionCertificate`. `attempts`, `solved`, `mean_turns`: of the samples of all solvers."""

    __tablename__ = "question_certificate"
    parent: str = Field(foreign_key="question.id", index=True)
    name: str
    entry_rank: int | None
    attempts: int | None
    solved: int | None
    mean_turns: float | None


class QuestionRejectionRow(RecordRow, table=True):
    """`QuestionRejection`. `parent`: a seed, a walk or a question; the last three as of certificates."""

    __tablename__ = "question_rejection"
    parent: str = Field(index=True)
    walk: str = Field(index=True)
    corpus: str
    name: str = Field(index=True)
    step: str
    round: int
    reason: str = Field(index=True)
    detail: str
    entry_rank: int | None
    attempts: int | None
    solved: int | None
    mean_turns: float | None


class SimulatorMeasurementRow(RecordRow, table=True):
    """`SimulatorMeasurement`. `predicted`: the first simulated grading; `probability`: share of all."""

    __tablename__ = "simulator_measurement"
    parent: str = Field(foreign_key="task.id", index=True)
    name: str
    environment: str
    simulator: str = Field(index=True)
    prompt: str
    kind: str
    submission: str
    grader: str
    samples: int
    resolved: bool
    predicted: bool | None
    probability: float | None
    at: str


class BenchSetRow(RecordRow, table=True):
    """`BenchSet`."""

    __tablename__ = "bench_set"
    name: str = Field(index=True)
    version: str
    held_out: bool
    n_subjects: int


class BenchRunRow(RecordRow, table=True):
    """`BenchRun`."""

    __tablename__ = "bench_run"
    parent: str = Field(foreign_key="bench_set.id", index=True)
    name: str
    scaffold: str
    model: str
    checkpoint: str
    runs: int
    n_rollouts: int


class ScoreRow(RecordRow, table=True):
    """`Score` of a submission. `submission`: sha256 of its patch."""

    __tablename__ = "score"
    task: str = Field(index=True)
    submission: str
    value: float | None
    resolved: bool


class EventRow(TableRow, table=True):
    """A finished stage of a record. `parent`: the record it started from, `record`: the record that it made of it."""

    __tablename__ = "event"
    seq: int | None = Field(default=None, primary_key=True)
    stage: str
    kind: str | None = None
    name: str = Field(index=True)
    source: str
    parent: str | None = Field(index=True)
    record: str = Field(index=True)
    ok: bool
    reason: str | None
    detail: str
    seconds: float
    at: str


class ChangeRow(TableRow, table=True):
    """Newest outcome of the miner for a change: the only table whose rows are updated.

    `result` is the id of the candidate or of the rejection. A change that is mined again with other rules, or whose
    source has changed, begins a new lineage of records; the old ones stay, and this row references the newest.
    """

    __tablename__ = "change"
    __table_args__ = (UniqueConstraint("source", "name", "merge_commit"),)
    seq: int | None = Field(default=None, primary_key=True)
    source: str
    name: str = Field(index=True)
    merge_commit: str
    """A number alone is not a key: a fork keeps its parent's."""
    pull_request: str = Field(foreign_key="pull_request.id")
    result: str = Field(index=True)
    tagging: str | None = None
    """Id of the newest `Tags`; null for changes mined before tags existed."""


class ChangeListingRow(TableRow, ChangeColumns, table=True):
    """Row of the view `changes`, maintained by `taskdb.listing`. Its indices are `taskdb.schema.indices.INDICES`."""

    __tablename__ = "change_listing"
    change: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    """`seq` of the change."""
    set_aside: str | None
    """Of the verdict."""
    test_lines: int | None
    """Of the candidate; null where a model writes the tests."""
    state: int | None = None
    """`seq` of its `change_state`; null for a change that a rule rejected."""


class ChangeStateRow(TableRow, table=True):
    """State of changes on which their pending work depends (`taskdb.pending`), each once."""

    __tablename__ = "change_state"
    seq: int | None = Field(default=None, primary_key=True)
    state: str = Field(unique=True)
    """JSON."""


class FunnelCountRow(TableRow, table=True):
    """Number of changes with an outcome (`taskdb.counts`). An empty source counts those of all sources."""

    __tablename__ = "funnel_count"
    # Without row ids SQLite stores the columns of the key once, and not again in an index.
    __table_args__ = ({"sqlite_with_rowid": False},)
    source: str = Field(primary_key=True)
    dimension: str = Field(primary_key=True)
    value: str = Field(primary_key=True)
    outputs: str = Field(primary_key=True)
    """A letter for each stage with an output, else a dash."""
    rejected_by: str = Field(primary_key=True)
    reason: str = Field(primary_key=True)
    # Seconds are counted here in thousandths, for which 32 bits are too few.
    n: int = Field(sa_type=BigInteger)


class TaskCountRow(TableRow, table=True):
    """Number of tasks with a value of a facet."""

    __tablename__ = "task_count"
    __table_args__ = ({"sqlite_with_rowid": False},)
    facet: str = Field(primary_key=True)
    value: str = Field(primary_key=True)
    simulated: int = Field(primary_key=True)
    """1 for tasks that are selected only on request: simulated tasks, and those with model-written tests."""
    n: int = Field(sa_type=BigInteger)


class DerivationListingRow(TableRow, DerivationColumns, table=True):
    """Row of the view `derivations`, maintained by `taskdb.listing`."""

    __tablename__ = "derivation_listing"
    seq: int | None = Field(default=None, primary_key=True)
    change: int


class TaskListingRow(TableRow, TaskColumns, table=True):
    """Row of the view `tasks`, maintained by `taskdb.listing`: a task of a current lineage."""

    __tablename__ = "task_listing"
    task: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    """`seq` of the task."""
    change: int


class SketchRow(TableRow, table=True):
    """Key by which near duplicates of a candidate are found: two changes without a common key are not similar.

    Written for candidates, and unchanged when a change is mined again with another patch: keys only select the
    candidates that are compared.
    A million candidates have about 32 million rows, hence no more columns.
    """

    __tablename__ = "sketch"
    # Without row ids SQLite stores the columns of the key once, and not again in an index.
    __table_args__ = ({"sqlite_with_rowid": False},)
    key: int = Field(primary_key=True, sa_type=BigInteger)
    change: int = Field(primary_key=True, foreign_key="change.seq")


class TestListRow(TableRow, table=True):
    """List of tests that records share (`taskdb.schema.stored_records`)."""

    __tablename__ = "test_list"
    seq: int | None = Field(default=None, primary_key=True)
    id: str = Field(unique=True)
    """The first 32 digits of the sha256 of its JSON."""
    repo: str
    """Repository in names of its changes."""
    base: int | None
    """`seq` of the list that it is stored as the difference from; null for a whole list."""
    content: bytes


class MetaRow(TableRow, table=True):
    """Facts of the database itself, such as which views it holds."""

    __tablename__ = "meta"
    key: str = Field(primary_key=True)
    value: str


METADATA: MetaData = SQLModel.metadata
for _name, _declared in DECLARED.items():
    if _declared.record is not None:
        METADATA.tables["task"].append_column(
            Column(_name, COLUMN_TYPES[VALUE_TYPES[_name]], nullable=_name in NULLABLE)
        )
