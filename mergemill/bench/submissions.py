"""Submissions of others to a set: the rows of their files, and which subject of the set each is for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import verifiers
from core.errors import InputError, UsageError
from core.json_files import JsonRow
from mergemill.grading.grading import make_submission
from mergemill.grading.predictions import MalformedRow, Prediction
from samplers.imports.predictions import FORMS, read_fields, read_prediction_rows
from taskdb.queries.bench import get_family
from taskdb.queries.scores import KINDS_OF_FORM
from taskdb.records import Task

REVIEW = "review"
FINDING_LISTS = ("findings", "comments")
"""Fields with the findings of a review, of a row or of the review itself."""
FINDING_FIELDS: Mapping[str, Sequence[str]] = {
    "file": ("file", "path", "filename"),
    "first_line": ("first_line", "start_line", "line"),
    "last_line": ("last_line", "end_line", "line", "start_line"),
    "claim": ("claim", "body", "comment", "message"),
}
"""Field of a finding -> its names in the files of others, such as the comments of GitHub."""


@dataclass
class SubmittedFile:
    """Rows of a file of predictions: those that count, and the others by reason."""

    rows: dict[str, dict[str, Prediction]] = field(default_factory=dict)
    """Model -> name of a subject -> its first row."""
    malformed: list[MalformedRow] = field(default_factory=list)
    foreign: list[MalformedRow] = field(default_factory=list)
    """Rows for subjects that are not in the set."""
    repeated: list[MalformedRow] = field(default_factory=list)
    """Further rows for a subject and model."""

    @property
    def has_rows(self) -> bool:
        """Whether the file has any row, malformed ones included."""
        return bool(self.rows or self.malformed or self.foreign)

    @property
    def predictions(self) -> list[Prediction]:
        """All rows that count."""
        return [row for rows in self.rows.values() for row in rows.values()]


class ForeignSubjectError(InputError):
    """A row is for a subject that is not in the set."""


def read_submissions(path: Path, tasks: Sequence[Task]) -> SubmittedFile:
    """Read a file of predictions for the tasks of a set, in any form of `samplers.imports.predictions`.

    Raises:
        InputError: the file cannot be read.
    """
    submitted, subjects = SubmittedFile(), SubjectIndex(tasks)
    for row in read_prediction_rows(path):
        try:
            prediction = _make_prediction(row, subjects)
        except ForeignSubjectError as error:
            submitted.foreign.append(MalformedRow(place=row.place, problem=str(error)))
            continue
        except (InputError, UsageError) as error:
            submitted.malformed.append(MalformedRow(place=row.place, problem=error.format_line()))
            continue
        rows = submitted.rows.setdefault(prediction.model, {})
        name = prediction.submission.task.name
        if name in rows:
            problem = f"{name} has a row at {rows[name].place} already, which counts"
            submitted.repeated.append(MalformedRow(place=row.place, problem=problem))
        else:
            rows[name] = prediction
    return submitted


class SubjectIndex:
    """Tasks of a set by the words that rows name them with: name, id, or name of the change."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._own = {word: task for task in tasks for word in (task.id, task.name)}
        self._of_change: dict[str, list[Task]] = {}
        for task in tasks:
            self._of_change.setdefault(get_family(task.name), []).append(task)

    def find(self, word: str, form: str) -> Task:
        """Return the task of a word that takes a form of submission.

        The patches of SWT-Bench are tests: a patch is for the test-writing task of a change that has no other task.

        Raises:
            ForeignSubjectError: the set has none.
            InputError: it has several.
        """
        if word in self._own:
            return self._own[word]
        tasks = self._of_change.get(word, [])
        if not tasks:
            raise ForeignSubjectError(f"{word[:200]} is not in the set")
        for candidates in self._order(tasks, form):
            if len(candidates) == 1:
                return candidates[0]
            if candidates:
                names = ", ".join(sorted(task.name for task in candidates)[:5])
                raise InputError(f"{word[:200]} is ambiguous, {len(candidates)} subjects match: {names}")
        return tasks[0]

    def _order(self, tasks: Sequence[Task], form: str) -> list[list[Task]]:
        """Return the tasks that take the form, in groups of which the first that has any decides."""
        forms = (form, "tests") if form == "patch" else (form,)
        groups = []
        for wanted in forms:
            of_form = [task for task in tasks if verifiers.select_reward(task).submission == wanted]
            groups += [[task for task in of_form if task.kind == kind] for kind in KINDS_OF_FORM[wanted]]
            groups.append(of_form)
        return groups


def _make_prediction(row: JsonRow, subjects: SubjectIndex) -> Prediction:
    """Return the prediction of a row.

    Raises:
        ForeignSubjectError: its subject is not in the set.
        InputError: it has not the fields of a prediction.
        UsageError: its subject takes a submission of another form.
    """
    if row.problem:
        raise InputError(row.problem)
    fields = read_fields(name_review(row.value))
    task = subjects.find(fields.instance, fields.form)
    takes_tests = verifiers.select_reward(task).submission == "tests"
    form = "tests" if fields.form == "patch" and takes_tests else fields.form
    content = {} if fields.content is None else {form: fields.content}
    if form == REVIEW and content:
        content = {form: normalize_review(content[form])}
    return Prediction(
        place=row.place, instance=fields.instance, model=fields.model, submission=make_submission(task, content)
    )


def name_review(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row whose findings stand in a field of their own with them as its review."""
    names = [name for name in FINDING_LISTS if isinstance(row.get(name), list)]
    if any(name in row for name in FORMS) or len(names) != 1:
        return row
    return {**row, REVIEW: row[names[0]]}


def normalize_review(content: bytes) -> bytes:
    """Return a review in mergemill's form: its list of findings, with the fields that others name otherwise.

    Anything else stays as it is; grading explains it.
    """
    try:
        review = json.loads(content)
    except (ValueError, RecursionError):
        return content
    names = [name for name in FINDING_LISTS if isinstance(review, dict) and isinstance(review.get(name), list)]
    findings = review if isinstance(review, list) else review[names[0]] if names else None
    if findings is None:
        return content
    named = [_name_fields(finding) if isinstance(finding, dict) else finding for finding in findings]
    return json.dumps({"findings": named}, ensure_ascii=False).encode(errors="replace")


def _name_fields(finding: Mapping[str, Any]) -> dict[str, Any]:
    fields = dict(finding)
    for field_name, words in FINDING_FIELDS.items():
        value = next((finding[word] for word in words if finding.get(word) is not None), None)
        if value is not None:
            fields[field_name] = value
    return fields
