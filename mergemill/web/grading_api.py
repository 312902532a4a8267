"""Grading over HTTP: one submission, a batch of them, and the state of the queue."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from core.errors import InputError, MergemillError, UsageError
from mergemill.web.api import ERRORS
from mergemill.web.context import WebContext
from mergemill.web.rendering import DataResponse
from samplers.imports.predictions import encode_submission
from taskdb.records import Score, to_json

if TYPE_CHECKING:
    from mergemill.grading.queue import GradingTicket

log = logging.getLogger(__name__)

BATCH_MEDIA_TYPE = "application/x-ndjson"
"""Media type of a JSON object per line."""


FORMS = ("patch", "tests", "review", "rollout")
"""Forms of submissions: fields of a request, of which it has one."""


class GradeRequest(BaseModel):
    """A submission: the task, and one of patch, tests, review and rollout."""

    model_config = ConfigDict(extra="forbid")
    task: str = Field(min_length=1, description="Name, id or unambiguous beginning of an id; or a change's name.")
    patch: str | None = Field(None, description="A patch; an empty one and null are the no-op.")
    tests: str | None = Field(None, description="A patch of tests, for test-writing tasks; null is the no-op.")
    review: dict[str, Any] | str | None = Field(None, description="Findings, for review tasks; null is the no-op.")
    rollout: dict[str, Any] | str | None = Field(
        None, description="A patch with its conversation, for instruction tasks; null is the no-op."
    )

    @model_validator(mode="after")
    def _check_single_submission(self) -> GradeRequest:
        if len(self._list_given_forms()) != 1:
            raise ValueError("give one of patch, tests, review and rollout")
        return self

    def _list_given_forms(self) -> list[str]:
        """Return the forms that are not null; if there is none, those that are in the request."""
        forms = [form for form in FORMS if form in self.model_fields_set]
        return [form for form in forms if getattr(self, form) is not None] or forms

    @property
    def form(self) -> str:
        """Which of FORMS is given."""
        return self._list_given_forms()[0]

    def encode_submission(self) -> dict[str, bytes]:
        """Return form -> content; empty for the no-op."""
        content = encode_submission(self.form, getattr(self, self.form))
        return {} if content is None else {self.form: content}


class BatchEntry(GradeRequest):
    """A submission of a batch."""

    id: str | None = Field(None, description="Any text; the line of the score repeats it.")


class BatchLine(Score):
    """A line of a batch's answer: a score, or why there is none."""

    index: int = Field(description="Place of the submission in the batch, from 0.")
    id: str | None
    cached: bool = Field(description="Whether an earlier or simultaneous grading of an equal submission gave it.")
    error: str | None = Field(None, description="What is wrong with the submission; then `value` is null.")


class GradingStatus(BaseModel):
    """Numbers of submissions since the server was started."""

    workers: int = Field(description="Gradings that run at the same time.")
    limit: int = Field(description="Submissions that may wait.")
    queued: int
    running: int
    done: int = Field(description="Gradings that have ended.")
    unscored: int = Field(description="Those of them that the infrastructure failed.")
    cached: int = Field(description="Submissions that a grading of an equal one answered.")
    rejected: int = Field(description="Submissions for which there was no place.")


_bearer = HTTPBearer(auto_error=False, description="The token that `mergemill serve --token` was given.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
FULL: dict[int | str, dict[str, Any]] = {429: {"description": "The queue is full; `Retry-After` has seconds."}}


def make_grading_router(context: WebContext) -> APIRouter:
    """Return the routes of grading. A request that waits for a score holds no thread."""
    router = APIRouter(default_response_class=DataResponse, responses=ERRORS)

    @router.post("/grade", response_model=Score, summary="Grade a submission", responses=FULL)
    async def grade(submission: GradeRequest, credentials: Credentials = None) -> DataResponse:
        """Grade a submission in fresh containers, store the score and return it. Needs the token."""
        _require_token(context, credentials)
        (ticket,) = await _submit(context, [submission])
        if isinstance(ticket, UsageError):
            raise HTTPException(400, ticket.format_line()) from ticket
        if isinstance(ticket, InputError):
            raise ticket
        score = await asyncio.wrap_future(ticket.future)
        return DataResponse(to_json(score))

    @router.post(
        "/grade/batch",
        summary="Grade submissions",
        response_class=StreamingResponse,
        responses={**FULL, 200: {"model": BatchLine, "content": {BATCH_MEDIA_TYPE: {}}}},
    )
    async def grade_batch(submissions: list[BatchEntry], credentials: Credentials = None) -> StreamingResponse:
        """Grade submissions, and return a line for each as it is graded. Needs the token."""
        _require_token(context, credentials)
        if len(submissions) > context.grading.limit:
            raise HTTPException(400, f"a batch has at most {context.grading.limit} submissions")
        tickets = await _submit(context, submissions)
        return StreamingResponse(_iterate_lines(submissions, tickets), media_type=BATCH_MEDIA_TYPE)

    @router.get("/grade/status", response_model=GradingStatus, summary="Show the grading queue")
    def show_status() -> DataResponse:
        """Return how many submissions wait, are graded, and were graded."""
        return DataResponse(asdict(context.grading.count()))

    return router


async def _submit(
    context: WebContext, submissions: Sequence[GradeRequest]
) -> list[GradingTicket | InputError | UsageError]:
    """Return the places of submissions in the queue, or why they have none.

    Raises:
        HTTPException: 429 where the queue has no place for all of them.
    """
    from mergemill.grading.queue import QueueFullError  # noqa: PLC0415 - the pages need no verifiers

    given = [(submission.task, submission.form, submission.encode_submission()) for submission in submissions]
    try:
        return await run_in_threadpool(context.grading.submit, given)
    except QueueFullError as full:
        raise HTTPException(429, str(full), {"retry-after": str(full.retry_after)}) from full


async def _iterate_lines(
    submissions: Sequence[BatchEntry], tickets: Sequence[GradingTicket | InputError | UsageError]
) -> AsyncIterator[str]:
    lines = [_make_line(n, *pair) for n, pair in enumerate(zip(submissions, tickets, strict=True))]
    for line in asyncio.as_completed(lines):
        yield json.dumps(await line) + "\n"


async def _make_line(
    index: int, submission: BatchEntry, ticket: GradingTicket | InputError | UsageError
) -> dict[str, Any]:
    """Return the line of a submission of a batch, once it is graded."""
    cached, wrong = False, None
    score = Score(task=submission.task, value=None, resolved=False, f2p_rate=0.0, p2p_rate=0.0)
    if isinstance(ticket, InputError | UsageError):
        wrong = ticket.format_line()
    else:
        cached = ticket.cached
        try:
            score = await asyncio.wrap_future(ticket.future)
        except MergemillError as error:
            score = score.model_copy(update={"infrastructure_error": error.format_line()})
        except Exception:
            log.exception("%s: grading failed through a bug", submission.task)
            score = score.model_copy(update={"infrastructure_error": "grading failed through a bug; see the log"})
    return {"index": index, "id": submission.id, "cached": cached, **to_json(score), "error": wrong}


def _require_token(context: WebContext, credentials: HTTPAuthorizationCredentials | None) -> None:
    """Raise an HTTP error unless the request has the token.

    Raises:
        HTTPException: 403 where the server has none, 401 for a missing or wrong token.
    """
    if context.rules.token is None:
        raise HTTPException(403, "grading needs a server that was started with --token")
    given = f"{credentials.scheme} {credentials.credentials}" if credentials else ""
    if not context.rules.accepts_token(given):
        raise HTTPException(401, "the token is missing or wrong", {"www-authenticate": "Bearer"})
