"""Grading by `mergemill serve`: one submission or many, with threads or asyncio, with the standard library.

A server that is full, restarted or unreachable is tried again. The server grades equal submissions once, so nothing
is graded twice when a connection is lost while it waits for an answer.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import random
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, Callable
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from mergemill_client.answers import SUBMISSION_FORMS, Content, encode_submission
from mergemill_client.errors import ClientError, TaskNotFoundError
from mergemill_client.scores import Score, make_unscored
from mergemill_client.server import read_problem

log = logging.getLogger(__name__)

BUG_ATTEMPTS = 3
"""Attempts at a submission that the server fails to grade through a bug."""
MAX_PAUSE = 30.0
Submission = Mapping[str, Any]
"""`task`, and one of SUBMISSION_FORMS."""


class UnreachableError(Exception):
    """No server answers, or it cannot grade now. `pause`: seconds that it asks to wait, where it is alive and full."""

    def __init__(self, message: str, pause: float | None = None, *, is_bug: bool = False) -> None:
        super().__init__(message)
        self.pause = pause
        self.is_bug = is_bug


class Grader:
    """Client of a grading server. Threads may share it.

    Args:
        url: address of `mergemill serve`.
        token: its token.
        timeout: seconds to wait for one answer, waiting in the server's queue included.
        patience: seconds for which a server that does not answer is tried again. A full one is waited for.
        concurrency: submissions of `grade_many` in progress at a time.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 3600.0,
        patience: float = 600.0,
        concurrency: int = 32,
    ) -> None:
        self.url = url.rstrip("/").removesuffix("/api/v1") + "/api/v1"
        self.concurrency = max(1, concurrency)
        self._token, self._timeout, self._patience = token, timeout, patience

    def grade(
        self,
        task: str,
        *,
        patch: Content | None = None,
        tests: Content | None = None,
        review: Content | None = None,
        rollout: Content | None = None,
    ) -> Score:
        """Return the score of one submission; its value is None where the infrastructure failed or nobody answered.

        Args:
            task: name or id of the task, or the name of its change.
            patch: a diff; an empty one is the no-op.
            tests: a diff of tests, for test-writing tasks.
            review: findings, for review tasks: the object or its JSON.
            rollout: a patch with its conversation, for instruction tasks: the object or its JSON.

        Raises:
            TaskNotFoundError: there is no such task.
            ClientError: the token is wrong, or the task takes another form of submission.
        """
        given = {"patch": patch, "tests": tests, "review": review, "rollout": rollout}
        return self._grade({"task": task, **encode_submission(given)})

    def grade_many(self, submissions: Iterable[Submission]) -> Iterator[tuple[int, Score]]:
        """Yield place and score of each submission, in the order of completion.

        They are read as they are needed. One that cannot be graded has a score with `error`.
        """
        numbered = enumerate(submissions)
        with ThreadPoolExecutor(self.concurrency, thread_name_prefix="grade") as pool:
            running: dict[Future[Score], int] = {}
            while True:
                for number, submission in islice(numbered, self.concurrency - len(running)):
                    running[pool.submit(self._grade_any, submission)] = number
                if not running:
                    return
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(done), done.result()

    def get_status(self) -> dict[str, int]:
        """Return the numbers of the server's queue: queued, running, done, unscored, cached, rejected, workers, limit.

        Raises:
            ClientError: no server answers.
        """
        try:
            return dict(self.request("/grade/status"))
        except UnreachableError as error:
            raise ClientError(f"{self.url}: {error}") from error

    def _grade_any(self, submission: Submission) -> Score:
        given = {name: submission.get(name) for name in SUBMISSION_FORMS}
        try:
            return self.grade(str(submission["task"]), **given)
        except ClientError as error:
            return make_unscored(str(submission["task"]), error=str(error))

    def _grade(self, body: Mapping[str, Any]) -> Score:
        """Return the score of a request's body, tried again until the patience ends."""
        failing_since: float | None = None
        n_bugs = n_failures = 0
        while True:
            try:
                return Score.from_json(self.request("/grade", body))
            except UnreachableError as error:
                now = time.monotonic()
                n_bugs += error.is_bug
                if error.pause is not None:
                    failing_since, n_failures = None, 0
                    pause = error.pause * random.uniform(0.5, 1.5)  # noqa: S311 - so that not all come back at once
                else:
                    failing_since = now if failing_since is None else failing_since
                    pause = min(MAX_PAUSE, 0.25 * 2**n_failures) * random.uniform(0.5, 1)  # noqa: S311
                    n_failures += 1
                    if n_bugs >= BUG_ATTEMPTS or now - failing_since + pause > self._patience:
                        return make_unscored(str(body["task"]), infrastructure_error=str(error))
                    log.warning("%s: %s; trying again", self.url, error)
            time.sleep(pause)

    def request(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of one answer of the API: to a POST where there is a body.

        Raises:
            UnreachableError: no server answers, or it cannot do it now.
            TaskNotFoundError: there is no such task.
            ClientError: the request or the token is wrong.
        """
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(Request(self.url + path, data, headers), timeout=self._timeout) as answer:  # noqa: S310
                return json.loads(answer.read())
        except HTTPError as error:
            with error:
                problem = read_problem(error)
            raise self._make_error(error, problem) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise UnreachableError(str(getattr(error, "reason", None) or error)) from error

    def _make_error(self, error: HTTPError, problem: str) -> Exception:
        if error.code == 429:
            pause = error.headers.get("Retry-After", "")
            return UnreachableError(problem, float(pause) if pause.isdigit() else 1.0)
        if error.code >= 500:
            return UnreachableError(problem, is_bug=error.code == 500)
        kind = TaskNotFoundError if error.code == 404 else ClientError
        return kind(f"{self.url}: {problem}")


class AsyncGrader:
    """`Grader` for asyncio; it waits in threads of its own. Arguments as there."""

    def __init__(self, url: str, token: str | None = None, **options: Any) -> None:
        self.grader = Grader(url, token, **options)
        self._pool = ThreadPoolExecutor(self.grader.concurrency, thread_name_prefix="grade")

    async def grade(self, task: str, **submission: Content | None) -> Score:
        """Return the score of one submission, as `Grader.grade`."""
        score: Score = await self._run(lambda: self.grader.grade(task, **submission))
        return score

    async def grade_many(self, submissions: Iterable[Submission]) -> AsyncIterator[tuple[int, Score]]:
        """Yield place and score of each submission, in the order of completion, as `Grader.grade_many`."""
        scores = self.grader.grade_many(submissions)
        while (graded := await self._run(lambda: next(scores, None))) is not None:
            yield graded

    async def _run(self, call: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)
