"""Lineage of a candidate: the records from the change to the certificate, which a stage gets as its input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from taskdb.records import (
    Candidate,
    Certificate,
    Environment,
    ExploitReference,
    Kind,
    Record,
    Stage,
    Task,
    Verification,
)
from taskdb.records.verdicts import Verdict

R = TypeVar("R", bound=Record)


class StepTasks(list[Task]):
    """Tasks of an environment that are as many as its step is to give.

    `progress`: results of the search so far, for its next step (`derivers.search_progress`).
    """

    def __init__(self, tasks: Iterable[Task], progress: bytes) -> None:
        super().__init__(tasks)
        self.progress = progress


class ChangeTests(NamedTuple):
    """Test patch of a change (artifact hash), and the paths that it touches and leaves in place, sorted."""

    patch: str
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class GoldGradings:
    """Gradings of gold under other conditions than those of every submission, made for the certificate of a task."""

    task: str
    """Id of the task."""
    name: str
    values: tuple[float, ...]
    conditions: tuple[str, ...]
    """Conditions of each, a line each."""

    @classmethod
    def read(cls, certificate: Certificate) -> GoldGradings:
        """Return the gradings of a certificate: all but the first."""
        return cls(
            task=certificate.parent,
            name=certificate.name,
            values=certificate.gold[1:],
            conditions=certificate.conditions[1:],
        )


@dataclass(frozen=True, kw_only=True)
class RepositoryHistory:
    """Facts about a repository from all records of the database, which decide how many runs a stage makes."""

    exploited_families: Mapping[str, ExploitReference] = field(default_factory=dict)
    """Key of an environment family -> its first certified task whose exploits earned what they must."""
    gold_gradings: Mapping[str, GoldGradings] = field(default_factory=dict)
    """Key of a gold tree -> the gradings of gold of its first certified task."""
    is_steady: bool = False
    """Whether no test was ever seen to be flaky; False where the database was not read."""


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """Chain of records of a change. `require_...()` returns a record that the order of stages guarantees."""

    candidate: Candidate
    environment: Environment | None = None
    verification: Verification | None = None
    verdict: Verdict | None = None
    task: Task | None = None
    """Task to certify."""
    certificate: Certificate | None = None
    rejected_by: Stage | None = None
    """Stage that rejected the change."""
    next_stage: Stage | None = None
    """Next stage up to the judge; it runs again where its record exists already."""
    kinds: tuple[Kind, ...] = ()
    """Kinds of tasks that are neither derived nor rejected yet."""
    tasks: tuple[Task, ...] = ()
    """Tasks without a certificate."""
    existing: tuple[Task, ...] = ()
    """Tasks of the kind in `kinds` that the environment has given before, certified or not, where more are wanted."""
    wanted: int | None = None
    """Further tasks of the kind in `kinds` that the environment is to give; None for tasks of the change."""
    step: int | None = None
    """How many of them the next call of the deriver is to give; None for all."""
    progress: bytes = b""
    """Results of the earlier steps of the search for them, for the deriver; empty for a new search."""
    neighbours: tuple[Lineage, ...] = ()
    """Lineages of neighbouring changes, for tasks of several changes."""
    similar: tuple[Candidate, ...] | None = None
    """Changes of other projects whose issues may be mirrored, the most similar first; None where the database was not
    searched."""
    is_renewal: bool = False
    """Whether its verification is made again, with all that follows from it; `kinds` are then those of its tasks."""
    certified: Mapping[str, Kind] = field(default_factory=dict)
    """Name -> kind of the certified tasks that a renewal must certify again; empty for other changes."""
    history: RepositoryHistory = RepositoryHistory()
    """Facts about the repository that the database had when the stage began."""

    @property
    def tests(self) -> ChangeTests:
        """Tests of the change: its own, or those that a model wrote for the verification."""
        written = self.verification.written_tests if self.verification else None
        if written is not None:
            return ChangeTests(written.patch, written.files)
        return ChangeTests(self.candidate.test_patch, self.candidate.test_files)

    @property
    def gold_patch(self) -> str:
        """Gold patch of its tasks (artifact hash): the candidate's, or that part of it with which it was verified."""
        reduced = self.verification.gold_patch if self.verification else None
        return reduced or self.candidate.gold_patch

    def require_environment(self) -> Environment:
        """Return the environment; for stages after `build`."""
        return _require(self.environment)

    def require_verification(self) -> Verification:
        """Return the verification; for stages after `verify`."""
        return _require(self.verification)

    def require_verdict(self) -> Verdict:
        """Return the verdict; for stages after `judge`."""
        return _require(self.verdict)

    def require_task(self) -> Task:
        """Return the task; for stages after `derive`."""
        return _require(self.task)

    def with_record(self, record: Record) -> Lineage:
        """Return the lineage with one more record."""
        changes: dict[str, Any] = {type(record).__name__.lower(): record}
        return replace(self, **changes)


def _require(record: R | None) -> R:
    if record is None:
        raise LookupError("the record of an earlier stage is missing")
    return record
