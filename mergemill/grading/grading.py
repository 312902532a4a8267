"""Grading of submissions to tasks of the database."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

import verifiers
from backends.services import Services
from core.config import Settings
from core.errors import InputError, MachineError, Transient, UsageError, as_disk_error
from core.settings.models import OFF
from evaluation.instructions.checklist import VOID_PART
from evaluation.instructions.submission import NO_LOG
from mergemill.execution.grader_version import compute_grader_version
from mergemill.execution.images.fetch import enable_fetching
from mergemill.execution.services import make_services
from taskdb.queries import scores as score_queries
from taskdb.records import Score, Task
from taskdb.store import Store

log = logging.getLogger(__name__)

ROLLOUT = "rollout"
"""Form of submissions that have the answers of their rollout."""
ATTEMPTS = 3
"""Gradings of a submission whose engine, disk or network fails, before it stays unscored."""


class UnscoredError(Exception):
    """A grading that ended with an infrastructure error."""

    def __init__(self, score: Score) -> None:
        super().__init__(score.infrastructure_error)
        self.score = score


RETRY_POLICY = Retrying(
    retry=retry_if_exception_type((Transient, MachineError, UnscoredError)),
    stop=stop_after_attempt(ATTEMPTS),
    wait=wait_exponential(multiplier=1, max=10),
    reraise=True,
)
"""Pauses between the attempts of a grading."""


@dataclass(frozen=True, kw_only=True)
class Submission:
    """Submission that an agent hands in for a task. An empty content is the no-op."""

    task: Task
    content: bytes

    @cached_property
    def sha256(self) -> str:
        """Hash of the content."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def key(self) -> tuple[str, str]:
        """Id of the task and hash of the content: equal submissions earn the same."""
        return self.task.id, self.sha256


def make_submission(task: Task, forms: Mapping[str, bytes]) -> Submission:
    """Return a submission to a task; `forms`: form (patch, tests, review, rollout) -> content, empty for the no-op.

    Raises:
        UsageError: the task takes a submission of another form.
    """
    expected = verifiers.select_reward(task).submission
    if forms and expected not in forms:
        problem = f"{task.name} is a {task.kind} task"
        if expected == ROLLOUT:
            problem = f"{NO_LOG}: a submission to {task.name} needs the requests of its rollout"
        raise UsageError(problem, advice=f"it takes --{expected} FILE")
    return Submission(task=task, content=b"".join(forms.values()))


class TaskGrader:
    """Grader of the tasks of a database, whose services are made once. Threads may share it.

    `is_writer`: whether it stores scores; in a worker process of a cluster it does not.
    """

    def __init__(self, store: Store, settings: Settings, *, is_writer: bool = True) -> None:
        self.store = store
        self.settings = settings
        self.is_writer = is_writer
        self._services: Services | None = None
        self._lock = threading.Lock()
        if store.is_read_only:
            log.warning("scores are not stored: %s is read-only", settings.storage.db)

    def find_task(self, word: str, form: str | None) -> Task:
        """Return the task that a word names: name or id of it, or the name of its change.

        Args:
            word: the name or id.
            form: `patch`, `tests`, `review` or `rollout`, which selects among the tasks of a change; None for nothing.

        Raises:
            InputError: there is no such task, or several.
        """
        return score_queries.resolve_instance(self.store, word, form)

    def make_gold(self, task: Task) -> Submission:
        """Return the task's own solution as a submission."""
        content = verifiers.select_reward(task).make_gold(task, self.open_services(task))
        return Submission(task=task, content=content)

    def find_score(self, submission: Submission) -> Score | None:
        """Return the stored score of an equal submission that this version of the grader gave, or None.

        A score with void items was perhaps given without a model, and is none where there is one now.
        """
        score = score_queries.find_score(self.store, *submission.key, compute_grader_version())
        return None if score is not None and self.may_decide(score) else score

    def may_decide(self, score: Score) -> bool:
        """Return whether a model may decide items that are void in a score."""
        return bool(score.parts.get(VOID_PART)) and self.settings.llm.url != OFF

    def grade(self, submission: Submission) -> Score:
        """Grade a submission, store the score where the database can be written, and return it.

        Raises:
            InputError: the image of the task is missing.
            MachineError: no engine answers.
            Transient: engine, disk or network failed.
        """
        task = submission.task
        services = self.open_services(task)
        # The image must not be removed while the grading runs.
        with services.images.hold():
            if task.image and services.images.inspect(task.image) is None:
                advice = "run `mergemill images push` on the machine that built it"
                raise InputError(f"the image {task.image} is neither here nor in a registry", advice=advice)
            score = grade_content(task, services, submission.content)
        self.keep(submission, score)
        return score

    def keep(self, submission: Submission, score: Score) -> None:
        """Store a score, where the database can be written and this is its writer."""
        if self.is_writer and not self.store.is_read_only:
            self.store.add_score(score, *submission.key)

    def grade_persistently(self, submission: Submission) -> Score:
        """Grade a submission up to ATTEMPTS times, until it is scored; the value is None where it never was.

        Raises:
            InputError: the image of the task is missing.
        """
        try:
            # The policy holds the state of its attempts, and several threads share this object.
            return RETRY_POLICY.copy()(self._grade_scored, submission)
        except UnscoredError as unscored:
            return unscored.score
        except (MachineError, Transient) as error:
            return make_unscored(submission.task.name, error.format_line())

    def _grade_scored(self, submission: Submission) -> Score:
        try:
            score = self.grade(submission)
        except OSError as error:
            raise as_disk_error(error) or error from error
        if score.value is None:
            raise UnscoredError(score)
        return score

    def open_services(self, task: Task) -> Services:
        """Return the services for a task, with an engine where it needs an engine; they pull missing images.

        Raises:
            MachineError: no engine answers.
        """
        if not task.image:
            return make_services(self.settings, engine=False)
        with self._lock:
            if self._services is None:
                self._services = make_services(self.settings, engine=True)
        return enable_fetching(self._services, self.store)

    def stop(self) -> None:
        """End the containers that gradings wait for."""
        with self._lock:
            if self._services is not None:
                self._services.sandbox.stop()


def grade_content(task: Task, services: Services, content: bytes) -> Score:
    """Return the score of a submission with the version of the code that graded it; empty is the no-op.

    `value` is None after an infrastructure error.

    Raises:
        Transient: engine, disk or network failed.
    """
    score = verifiers.grade(task, services, content)
    return score.model_copy(update={"grader": compute_grader_version()})


def make_unscored(task: str, error: str) -> Score:
    """Return the score of a submission that the infrastructure failed to grade."""
    return Score(task=task, value=None, resolved=False, f2p_rate=0.0, p2p_rate=0.0, infrastructure_error=error)


def grade_submission(word: str, submission: Mapping[str, bytes], settings: Settings, *, gold: bool = False) -> Score:
    """Grade a submission, store the score where the database can be written, and return it.

    Args:
        word: the task's name, id or unambiguous beginning of an id, or its change's name.
        submission: form (patch, tests, review, rollout) -> content; empty for the no-op, or for gold.
        settings: database, store and limits.
        gold: whether to grade the task's own solution.

    Raises:
        InputError: there is no such task, or no image of it.
        UsageError: the task takes a submission of another form.
        MachineError: no engine answers.
    """
    with Store.open(settings.storage.db, create=False) as store:
        grader = TaskGrader(store, settings)
        task = grader.find_task(word, next(iter(submission), None))
        return grader.grade(grader.make_gold(task) if gold else make_submission(task, submission))
