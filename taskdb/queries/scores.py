"""Queries of gradings: tasks by the names that submissions use, and stored scores."""

from __future__ import annotations

from itertools import chain

from sqlalchemy import text

from core.errors import InputError
from taskdb.queries import tasks as queries
from taskdb.records import Kind, Score, Task
from taskdb.schema.stored_records import unpack_bodies
from taskdb.store import Store

KINDS_OF_FORM = {
    "patch": (Kind.BUGFIX, Kind.FEATURE),
    "tests": (Kind.TEST_WRITING,),
    "review": (Kind.REVIEW,),
    "rollout": (Kind.INSTRUCTIONS,),
}
"""Form of a submission -> kinds of tasks that a change's own name stands for, the first of them that it has."""
_TASKS_OF_CHANGE = text("SELECT id, name, kind FROM tasks WHERE change_name = :name")
_SCORES = text("SELECT body FROM score WHERE task = :task AND submission = :submission AND value IS NOT NULL")


def resolve_instance(store: Store, word: str, form: str | None) -> Task:
    """Return the task of an instance: of a task's name or id, or the task of a change's name that takes the form.

    A change of published tasks has the published `instance_id` as its name.

    Args:
        store: the database.
        word: the name or id.
        form: `patch`, `tests`, `review` or `rollout`; None where nothing is handed in: the first of them that a task
            of the change takes.

    Raises:
        InputError: there is none, or several.
    """
    with store.read_transaction() as connection:
        rows = connection.execute(_TASKS_OF_CHANGE, {"name": word}).all()
    for kind in KINDS_OF_FORM[form] if form else chain.from_iterable(KINDS_OF_FORM.values()):
        matching = [row for row in rows if row.kind == kind]
        if len(matching) == 1:
            return store.get(Task, matching[0].id)
        if matching:
            names = ", ".join(sorted(f"{row.id[:16]} ({row.name})" for row in matching)[:5])
            raise InputError(f"{word} is ambiguous, {len(matching)} tasks match: {names}")
    return queries.resolve_task(store, word)


def find_score(store: Store, task: str, submission: str, grader: str) -> Score | None:
    """Return a stored score of a submission that was not an infrastructure error, or None.

    Args:
        store: the database.
        task: id of the task.
        submission: sha256 of the submission.
        grader: version of the grading code that gave it.
    """
    with store.read_transaction() as connection:
        bodies = connection.execute(_SCORES, {"task": task, "submission": submission}).scalars().all()
        scores = [Score.model_validate(body) for body in unpack_bodies(connection, bodies)]
    return next((score for score in scores if score.grader == grader), None)
