"""Rollouts of others in the database: files become rollouts and trajectories, graded if wanted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import InputError
from evaluation.instructions.submission import NO_LOG
from mergemill.grading.grading import Submission, TaskGrader
from samplers.imports.foreign import ForeignFormatError, ForeignRollout, list_requests
from samplers.imports.reading import read_foreign_file
from samplers.rollouts.conversation import pack_requests
from samplers.subjects.task_subject import describe_instructions
from samplers.trajectories.build import build_from_requests
from samplers.trajectories.requests import ModelRequest
from taskdb.artifacts import Artifacts, require_writable_store
from taskdb.queries import scores as score_queries
from taskdb.records import Score, Task
from taskdb.records.instructions import InstructionOracle
from taskdb.records.rollouts import Rollout, RolloutStatus

if TYPE_CHECKING:
    from core.config import Settings
    from taskdb.store import Store


@dataclass(frozen=True, kw_only=True)
class ImportedRollout:
    """Result of a file or line. `rollout` is None where it is skipped, for `problem`; `is_new`: it was not stored."""

    file: str
    line: int
    format: str
    rollout: Rollout | None = None
    trajectories: int = 0
    is_new: bool = False
    problem: str = ""


def import_rollouts(
    store: Store,
    settings: Settings,
    paths: Sequence[Path],
    format_name: str,
    *,
    task: str | None = None,
    grades: bool = False,
) -> Iterator[ImportedRollout]:
    """Import files individually; a rollout that cannot be imported is yielded with its problem.

    Args:
        store: the database.
        settings: artifacts and limits.
        paths: the files.
        format_name: any of `samplers.imports.formats.READERS`, or `auto`.
        task: name of the task of all files, where they do not name it.
        grades: whether to grade their submissions.

    Raises:
        InputError: a file cannot be read, or an image is missing.
        MachineError: no engine answers.
    """
    grader = TaskGrader(store, settings) if grades else None
    artifacts = require_writable_store(settings.storage)
    for path in paths:
        for line, name, foreign in read_foreign_file(path, format_name):
            if isinstance(foreign, ForeignFormatError):
                yield ImportedRollout(file=str(path), line=line, format=name, problem=str(foreign))
                continue
            record = _find_task(store, foreign, task)
            if record is None:
                known = ", ".join(dict.fromkeys([task] if task else foreign.instances[:1]))
                yield ImportedRollout(file=str(path), line=line, format=name, problem=f"there is no task {known}")
                continue
            rollout, n_trajectories, is_new = _store(store, artifacts, record, foreign, format_name=name, grader=grader)
            yield ImportedRollout(
                file=str(path), line=line, format=name, rollout=rollout, trajectories=n_trajectories, is_new=is_new
            )


def _find_task(store: Store, rollout: ForeignRollout, word: str | None) -> Task | None:
    """Return the task of a rollout by the first name that is known."""
    for name in [word] if word else rollout.instances:
        for form in ("patch", "tests", "review", "rollout"):
            try:
                return score_queries.resolve_instance(store, name, form)
            except InputError:
                continue
    return None


def _store(
    store: Store,
    artifacts: Artifacts,
    task: Task,
    foreign_rollout: ForeignRollout,
    *,
    format_name: str,
    grader: TaskGrader | None,
) -> tuple[Rollout, int, bool]:
    """Store a rollout with its trajectories; return it, their number, and whether it is new.

    A rollout that is stored with a value stays as it is. Without a value, a graded rollout is stored beside it.
    """
    requests = list_requests(foreign_rollout)
    rollout = _make_rollout(task, foreign_rollout, foreign_rollout.compute_origin(format_name), len(requests))
    if known := store.get_many(Rollout, [rollout.id]):
        if grader is None or known[rollout.id].value is not None:
            return known[rollout.id], 0, False
        rollout = rollout.model_copy(update={"retry": 1})
        if graded := store.get_many(Rollout, [rollout.id]):
            return graded[rollout.id], 0, False
    submission = foreign_rollout.submission
    if submission is not None and isinstance(task.oracle, InstructionOracle):
        submission = _add_conversation(task.oracle, submission, requests)
        if submission is None:
            detail = "a submission to an instruction task needs the requests of its rollout"
            rollout = rollout.model_copy(update={"reason": NO_LOG, "detail": detail})
    if submission is not None:
        fields: dict[str, object] = {"submission": artifacts.put(submission)}
        if grader is not None:
            fields |= _describe_score(grader.grade_persistently(Submission(task=task, content=submission)))
        rollout = rollout.model_copy(update=fields)
    trajectories = build_from_requests(rollout, requests, artifacts, statement=task.problem_statement)
    store.add(rollout, *trajectories)
    return rollout, len(trajectories), True


def _add_conversation(oracle: InstructionOracle, patch: bytes, requests: Sequence[ModelRequest]) -> bytes | None:
    """Return the submission to an instruction task; None where there is no request, so that nothing can be decided."""
    if not requests:
        return None
    subject = describe_instructions(oracle)
    return pack_requests(patch, requests, subject["guidance"].turns, subject["deliveries"])


def _describe_score(score: Score) -> dict[str, object]:
    return {"score": score, "value": score.value, "resolved": score.resolved}


def _make_rollout(task: Task, rollout: ForeignRollout, origin: str, n_requests: int) -> Rollout:
    return Rollout(
        parent=task.id,
        name=task.name,
        plan=hashlib.sha256(f"import {task.id} {origin}".encode()).hexdigest(),  # of no rollout that we plan
        scaffold=rollout.scaffold,
        scaffold_version=rollout.scaffold_version,
        model=rollout.model,
        attempt=1,
        origin=origin,
        environment=task.environment,
        status=RolloutStatus.DONE,
        requests=n_requests,
    )
