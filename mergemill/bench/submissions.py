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
from mergemill.bench.sets import CHANGED
from mergemill.grading.grading import make_submission
from mergemill.grading.predictions import MalformedRow, Prediction
from samplers.imports.predictions import FORMS, read_fields, read_prediction_rows
from taskdb.queries.bench import SCENARIO, get_family
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
    left_out: list[MalformedRow] = field(default_factory=list)
    """Rows for subjects that have changed and are skipped."""
    repeated: list[MalformedRow] = field(default_factory=list)
    """Further rows for a subject and model."""

    @property
    def has_rows(self) -> bool:
        """Whether the file has any row, malformed ones included."""
        return bool(self.rows or self.malformed or self.foreign or self.left_out)

    @property
    def predictions(self) -> list[Prediction]:
        """All rows that count."""
        return [row for rows in self.rows.values() for row in rows.values()]


class ForeignSubjectError(InputError):
    """A row is for a subject that is not in the set."""


class ChangedSubjectError(InputError):
    """A row is for a subject that has changed since the set was frozen, and is skipped."""


@dataclass(frozen=True, kw_only=True)
class UngradedSubject:
    """A subject of a set for which no row is graded: a scenario, or a task that has changed and is skipped."""

    name: str
    id: str
    """Id in the set."""
    kind: str
    form: str = ""
    """Form of its submissions; empty for a scenario."""
    problem: str = ""
    """Difference from the frozen set; empty for a scenario."""

    def make_error(self) -> InputError:
        """Return the reason that a row for it is not graded."""
        if self.kind == SCENARIO:
            return InputError(f"{self.name} is a scenario, which takes no predictions")
        return ChangedSubjectError(f"{CHANGED}: {self.name} is left out: {self.problem}")


def read_submissions(path: Path, tasks: Sequence[Task], ungraded: Sequence[UngradedSubject] = ()) -> SubmittedFile:
    """Read a file of predictions for the subjects of a set, in any form of `samplers.imports.predictions`.

    Args:
        path: the file.
        tasks: tasks of the set that are graded.
        ungraded: all other subjects of the set.

    Raises:
        InputError: the file cannot be read.
    """
    submitted, subjects = SubmittedFile(), SubjectIndex(tasks, ungraded)
    for row in read_prediction_rows(path):
        try:
            prediction = _make_prediction(row, subjects)
        except ForeignSubjectError as error:
            submitted.foreign.append(MalformedRow(place=row.place, problem=str(error)))
            continue
        except ChangedSubjectError as error:
            submitted.left_out.append(MalformedRow(place=row.place, problem=str(error)))
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
    """Subjects of a set by the words that rows name them with: name, id, or name of the change.

    Those that are not graded are among them: no row for one may be taken for a row of another task of its change.
    """

    def __init__(self, tasks: Sequence[Task], ungraded: Sequence[UngradedSubject] = ()) -> None:
        subjects: list[Task | UngradedSubject] = [*tasks, *ungraded]
        self._own = {word: subject for subject in subjects for word in (subject.id, subject.name)}
        self._of_change: dict[str, list[Task | UngradedSubject]] = {}
        for subject in subjects:
            self._of_change.setdefault(get_family(subject.name), []).append(subject)

    def find(self, word: str, form: str) -> Task:
        """Return the task of a word that takes a form of submission.

        The patches of SWT-Bench are tests: a patch is for the test-writing task of a change that has no other task.

        Raises:
            ForeignSubjectError: the set has none.
            ChangedSubjectError: it has changed, and is skipped.
            InputError: there are several, or it is a scenario.
        """
        subject = self._own[word] if word in self._own else self._find_of_change(word, form)
        if isinstance(subject, UngradedSubject):
            raise subject.make_error()
        return subject

    def _find_of_change(self, word: str, form: str) -> Task | UngradedSubject:
        subjects = self._of_change.get(word, [])
        if not subjects:
            raise ForeignSubjectError(f"{word[:200]} is not in the set")
        for candidates in self._order(subjects, form):
            if len(candidates) == 1:
                return candidates[0]
            if candidates:
                names = ", ".join(sorted(subject.name for subject in candidates)[:5])
                raise InputError(f"{word[:200]} is ambiguous, {len(candidates)} subjects match: {names}")
        return subjects[0]

    def _order(self, subjects: Sequence[Task | UngradedSubject], form: str) -> list[list[Task | UngradedSubject]]:
        """Return the subjects that take the form, in groups of which the first that has any decides."""
        forms = (form, "tests") if form == "patch" else (form,)
        groups: list[list[Task | UngradedSubject]] = []
        for wanted in forms:
            of_form = [subject for subject in subjects if _get_form(subject) == wanted]
            groups += [[subject for subject in of_form if subject.kind == kind] for kind in KINDS_OF_FORM[wanted]]
            groups.append(of_form)
        return groups


def _get_form(subject: Task | UngradedSubject) -> str:
    return subject.form if isinstance(subject, UngradedSubject) else verifiers.select_reward(subject).submission


def _make_prediction(row: JsonRow, subjects: SubjectIndex) -> Prediction:
    """Return the prediction of a row.

    Raises:
        ForeignSubjectError: its subject is not in the set.
        ChangedSubjectError: its subject has changed, and is skipped.
        InputError: it has not the fields of a prediction, or its subject is a scenario.
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
