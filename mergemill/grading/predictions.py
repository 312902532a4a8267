"""Files of predictions: a submission per row, graded by several workers into a file of scores that can be continued.

A line of the output is written once its submission is graded, and no score is given twice: the same command reads the
output first and grades the row that is missing in it. Lines are matched by content, so the input may have been
reordered or have grown meanwhile.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import IO, Any

from backends.cluster.base import RecordKeeper
from core.config import Settings
from core.errors import InputError, MergemillError, UsageError, make_write_error
from core.json_files import JsonRow
from mergemill.execution.clusters import LOCAL, open_cluster
from mergemill.execution.nodes import add_stop, localize_settings, share_settings
from mergemill.grading.grading import Submission, TaskGrader, make_submission, make_unscored
from samplers.imports.predictions import MODEL, read_fields, read_prediction_rows
from taskdb.records import Score, Task, to_json
from taskdb.store import Store

RowKey = tuple[str, str, str, str]
"""Instance, model, id of the task and sha256 of the submission."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A row: whose submission it is, and to the task. `instance` is the task's name as the row has it."""

    place: str
    """Line of its file, or line and position of a row of a list or object."""
    instance: str
    model: str
    submission: Submission

    @property
    def key(self) -> RowKey:
        """Fields that distinguish this row in a file of scores."""
        return self.instance, self.model, *self.submission.key


@dataclass(frozen=True, kw_only=True)
class MalformedRow:
    """A row that cannot be graded, and why."""

    place: str
    problem: str


@dataclass(frozen=True, kw_only=True)
class PredictionScore:
    """Score of a row, as it was written. `error`: exception of a grading that failed through a bug."""

    prediction: Prediction
    score: Score
    error: Exception | None = None

    def to_fields(self) -> dict[str, Any]:
        """Return the fields of an output line."""
        prediction = self.prediction
        names = {"instance_id": prediction.instance, MODEL: prediction.model}
        ids = {"task_id": prediction.submission.task.id, "submission": prediction.submission.sha256}
        return {**names, **to_json(self.score), **ids}


def read_predictions(path: Path, grader: TaskGrader) -> tuple[list[Prediction], list[MalformedRow]]:
    """Read a file of predictions, in any form of `samplers.imports.predictions`.

    Raises:
        InputError: the file cannot be read.
    """
    rows, malformed = list[Prediction](), list[MalformedRow]()
    find_task = cache(grader.find_task)
    for row in read_prediction_rows(path):
        try:
            rows.append(_make_prediction(row, find_task))
        except (InputError, UsageError) as error:
            malformed.append(MalformedRow(place=row.place, problem=error.format_line()))
    return rows, malformed


def _make_prediction(row: JsonRow, find_task: Callable[[str, str], Task]) -> Prediction:
    """Return the prediction of a row. `find_task` is called with the task's name and the form of the submission.

    Raises:
        InputError: it is not a JSON object with the fields of a prediction, or there is no such task.
        UsageError: the task takes a submission of another form.
    """
    if row.problem:
        raise InputError(row.problem)
    fields = read_fields(row.value)
    content = {} if fields.content is None else {fields.form: fields.content}
    submission = make_submission(find_task(fields.instance, fields.form), content)
    return Prediction(place=row.place, instance=fields.instance, model=fields.model, submission=submission)


class ScoreFile:
    """Context manager of an output file: scores that it has already, and those that are added, each at once.

    The part that a killed run left of its last line is removed, and so are lines without a value, which are graded
    again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scored: Counter[RowKey] = Counter()
        self._file: IO[bytes] | None = None

    def __enter__(self) -> ScoreFile:
        if not self.path.parent.is_dir():
            raise InputError(f"there is no folder {self.path.parent}", advice="make it, or choose another --out")
        try:
            self._drop_unscored()
            # Unbuffered, so that a score is in the file as soon as it is added.
            self._file = self.path.open("ab", buffering=0)
        except OSError as error:
            raise make_write_error(f"cannot write {self.path}", error) from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def add(self, fields: Mapping[str, Any]) -> None:
        """Write a line.

        Raises:
            Transient: the disk is full.
        """
        if self._file is None:
            raise ValueError("the file is not open")
        try:
            self._file.write(json.dumps(fields).encode() + b"\n")
        except OSError as error:
            advice = "free some space, then run the same command again"
            raise make_write_error(f"cannot write {self.path}", error, advice=advice) from error

    def _drop_unscored(self) -> None:
        # A device or pipe has no scores, and reading it might not end.
        content = self.path.read_bytes() if self.path.is_file() else b""
        kept = [line for line in content.splitlines(keepends=True) if self._keep(line)]
        if b"".join(kept) != content:
            # Written beside the file and then moved, so that no score is lost when the run is killed in between.
            beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
            beside.write_bytes(b"".join(kept))
            beside.replace(self.path)

    def _keep(self, line: bytes) -> bool:
        """Count a line as scored; return False for a line that is incomplete or has no value."""
        if not line.endswith(b"\n"):
            return False
        try:
            fields = json.loads(line)
            key = (fields["instance_id"], fields[MODEL], fields["task_id"], fields["submission"])
            value = fields["value"]
        except (ValueError, KeyError, TypeError):
            advice = "--out takes a file that mergemill grade wrote, or a new one"
            raise InputError(f"{self.path} holds something else than scores", advice=advice) from None
        if value is not None:
            self.scored[key] += 1
        return value is not None


def select_missing(rows: Iterable[Prediction], scored: Counter[RowKey]) -> list[Prediction]:
    """Return the rows that a file of scores lacks; it may have some of several equal rows."""
    left, missing = scored.copy(), list[Prediction]()
    for row in rows:
        if left[row.key]:
            left[row.key] -= 1
        else:
            missing.append(row)
    return missing


GradeGroup = Callable[[Sequence[Prediction]], Iterator[PredictionScore]]


class PredictionKeeper(RecordKeeper[Sequence[Prediction], PredictionScore]):
    """Facts that the driver knows of the rows on their way, of which each record is a group with equal submissions."""

    def is_node_failure(self, result: PredictionScore) -> bool:
        """Return whether engine, disk or network failed."""
        return result.score.value is None

    def make_loss(self, record: Sequence[Prediction], detail: str) -> PredictionScore:
        """Return the first row as unscored; the others of the group are graded by the next run."""
        return PredictionScore(prediction=record[0], score=make_unscored(record[0].submission.task.name, detail))

    def get_locality(self, record: Sequence[Prediction]) -> str:
        """Return the repository of the task, whose environments share layers."""
        return record[0].submission.task.repo


def grade_group(grader: TaskGrader, rows: Sequence[Prediction]) -> Iterator[PredictionScore]:
    """Grade the submission of some rows once; yield the score of each."""
    submission, failure = rows[0].submission, None
    try:
        score = grader.grade_persistently(submission)
    except Exception as error:  # noqa: BLE001
        # The remaining rows are graded first; then the command fails.
        text = error.format_line() if isinstance(error, MergemillError) else f"bug: {error!r}"
        score, failure = make_unscored(submission.task.name, text), error
    for row in rows:
        yield PredictionScore(prediction=row, score=score, error=failure)


@dataclass(frozen=True)
class NodeGrading:
    """Function of a map: grades rows in a worker process of another machine."""

    settings: Settings

    def __call__(self, rows: Sequence[Prediction]) -> Iterator[PredictionScore]:
        """Yield the score of each row."""
        return grade_group(_open_grader(self.settings), rows)


@cache
def _open_grader(settings: Settings) -> TaskGrader:
    own = localize_settings(settings)
    grader = TaskGrader(
        Store.open(own.storage.db, create=False, patience=own.cluster.db_patience), own, is_writer=False
    )
    add_stop(grader.stop)
    return grader


@dataclass
class PredictionRun:
    """Grading of predictions on the cluster of the grader's settings. Equal submissions are graded once.

    `notify` shows a message.
    """

    grader: TaskGrader
    notify: Callable[[str], None] = lambda _: None

    def iterate_scores(self, rows: Sequence[Prediction]) -> Iterator[PredictionScore]:
        """Yield the score of each row, in the order of completion.

        Raises:
            MachineError: as of `open_cluster`.
        """
        groups: dict[tuple[str, str], list[Prediction]] = defaultdict(list)
        for row in rows:
            groups[row.submission.key].append(row)
        settings, grader = self.grader.settings, self.grader
        is_local = settings.cluster.address == LOCAL
        function: GradeGroup = partial(grade_group, grader) if is_local else NodeGrading(share_settings(settings))
        opening = open_cluster(settings, engine=True, notify=self.notify, stop=lambda _: grader.stop())
        with opening as cluster, closing(cluster.map(function, groups.values(), PredictionKeeper())) as scores:
            for scored in scores:
                # A node writes no score, so the driver stores it.
                if not is_local and scored.score.value is not None:
                    grader.keep(scored.prediction.submission, scored.score)
                yield scored
