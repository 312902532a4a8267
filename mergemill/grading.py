"""Grading of one submission to a task of the database."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping

import verifiers
from core.config import Settings
from core.errors import InputError, UsageError
from mergemill.images.fetch import enable_fetching
from mergemill.services import make_services
from taskdb import queries
from taskdb.records import Score
from taskdb.store import Store

log = logging.getLogger(__name__)


def grade_submission(word: str, submission: Mapping[str, bytes], settings: Settings, *, gold: bool = False) -> Score:
    """Grade a submission, store the score where the database can be written, and return it.

    Args:
        word: the task's name, id or unambiguous beginning of one.
        submission: form (patch, tests, review) -> content; empty for the no-op or, with `gold`, the gold patch.
        settings: database, store and limits.
        gold: whether to grade the task's own solution.

    Raises:
        InputError: there is no such task, or no image of it.
        UsageError: the task takes a submission of another form.
        MachineError: no engine answers.
    """
    with Store.open(settings.db, create=False) as store:
        task = queries.resolve_task(store, word)
        reward = verifiers.select_reward(task)
        if submission and reward.submission not in submission:
            raise UsageError(f"{task.name} is a {task.kind} task", advice=f"it takes --{reward.submission} FILE")
        services = enable_fetching(make_services(settings, engine=bool(task.image)), store)
        content = reward.make_gold(task, services) if gold else b"".join(submission.values())
        with services.images.hold():
            if task.image and services.images.inspect(task.image) is None:
                advice = "run `mergemill images push` on the machine that built it"
                raise InputError(f"the image {task.image} is neither here nor in a registry", advice=advice)
            score = verifiers.grade(task, services, content)
        if store.is_read_only:
            log.warning("the score is not stored: %s is read-only", settings.db)
        else:
            store.add_score(score, task.id, hashlib.sha256(content).hexdigest())
    return score
