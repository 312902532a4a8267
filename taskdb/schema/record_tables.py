"""Names of the tables of records, for readers: the tables' classes (`taskdb.schema.tables`) are slow to make."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, TableClause, column, table, text

from taskdb.records import (
    Bundle,
    Candidate,
    Certificate,
    Environment,
    PullRequest,
    Record,
    Rejection,
    Task,
    Verification,
)
from taskdb.records.audits import Audit
from taskdb.records.bench import BenchRun, BenchSet
from taskdb.records.images import ImageCopy
from taskdb.records.questions import Corpus, Question, QuestionCertificate, QuestionRejection, Walk
from taskdb.records.rollouts import Rollout, Trajectory, TrajectorySelection
from taskdb.records.simulations import SimulatedConversation, SimulationRejection
from taskdb.records.simulator_measurements import SimulatorMeasurement
from taskdb.records.tags import Tags
from taskdb.records.verdicts import Verdict
from taskdb.records.worlds import Scenario, ScenarioCertificate, Theme, World, WorldCertificate, WorldRejection

TABLE_NAMES: Mapping[type[Record], str] = {
    PullRequest: "pull_request",
    Tags: "tagging",
    Candidate: "candidate",
    Environment: "environment",
    Verification: "verification",
    Verdict: "verdict",
    Task: "task",
    Certificate: "certificate",
    Audit: "audit",
    Rollout: "rollout",
    Trajectory: "trajectory",
    TrajectorySelection: "trajectory_selection",
    SimulatorMeasurement: "simulator_measurement",
    BenchSet: "bench_set",
    BenchRun: "bench_run",
    Rejection: "rejection",
    Bundle: "bundle",
    ImageCopy: "image_copy",
    Theme: "theme",
    World: "world",
    WorldCertificate: "world_certificate",
    Scenario: "scenario",
    ScenarioCertificate: "scenario_certificate",
    WorldRejection: "world_rejection",
    SimulatedConversation: "simulated_conversation",
    SimulationRejection: "simulation_rejection",
    Corpus: "corpus",
    Walk: "walk",
    Question: "question",
    QuestionCertificate: "question_certificate",
    QuestionRejection: "question_rejection",
}
"""Record class -> name of its table, parents before their children."""


RECORDS_WITHOUT_CHANGE: frozenset[type[Record]] = frozenset(
    {
        Theme,
        World,
        WorldCertificate,
        Scenario,
        ScenarioCertificate,
        WorldRejection,
        SimulatedConversation,
        SimulationRejection,
        BenchSet,
        BenchRun,
        Corpus,
        Walk,
        Question,
        QuestionCertificate,
        QuestionRejection,
    }
)
"""Classes of records that descend from no change: synthesised and simulated records, benches, questions."""


def get_record_clause(kind: type[Record]) -> TableClause:
    """Return the columns that all tables of records have, for queries."""
    return table(TABLE_NAMES[kind], column("seq"), column("id"), column("body"))


def find_change(connection: Connection, pull: PullRequest) -> int | None:
    """Return the `seq` of the row of `change` for a change, or None where it was never stored."""
    change: int | None = connection.execute(_SEQ, build_change_key(pull)).scalar()
    return change


_SEQ = text("SELECT seq FROM change WHERE source = :source AND name = :name AND merge_commit = :merge_commit")


def build_change_key(pull: PullRequest) -> dict[str, str]:
    """Return the values that identify a change, by column of `change`."""
    return {"source": pull.source, "name": pull.name, "merge_commit": pull.merge_commit}
