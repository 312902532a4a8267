"""HTTP API under /api/v1: the data of the pages, and grading."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.exceptions import HTTPException

from core.errors import UsageError
from mergemill.run_status import list_runs
from mergemill.web.context import WebContext
from mergemill.web.rendering import DataResponse
from mergemill.web.task_listing import MAX_ROWS, load_listing, read_parameters
from taskdb import queries
from taskdb.columns import TASK_COLUMNS
from taskdb.records import Score, to_json


class TaskPage(BaseModel):
    """One page of a list of tasks."""

    tasks: list[dict[str, Any]] = Field(description="Rows of the view `tasks`, newest change first.")
    next: str | None = Field(description="Value of `after` for the next page; null on the last one.")


class FunnelStage(BaseModel):
    """What became of the changes in one stage."""

    model_config = ConfigDict(populate_by_name=True)
    stage: str
    n_in: int = Field(alias="in", description="Changes that reached the stage.")
    out: int = Field(description="Changes that passed it.")
    waiting: int
    rejected: dict[str, int] = Field(description="Reason -> number of changes.")


class FunnelCounts(BaseModel):
    """All stages, in the order of the data path."""

    stages: list[FunnelStage]


class RunList(BaseModel):
    """Runs, newest first."""

    runs: list[dict[str, Any]]


class GradeRequest(BaseModel):
    """A submission: the task, and one of patch, tests and review."""

    model_config = ConfigDict(extra="forbid")
    task: str = Field(min_length=1, description="Name, id or unambiguous beginning of an id.")
    patch: str | None = Field(None, description="A patch; an empty one is the no-op.")
    tests: str | None = Field(None, description="A patch of tests, for test-writing tasks.")
    review: dict[str, Any] | str | None = Field(None, description="Findings, for review tasks.")

    @model_validator(mode="after")
    def _check_single_submission(self) -> GradeRequest:
        if sum(form is not None for form in (self.patch, self.tests, self.review)) != 1:
            raise ValueError("give one of patch, tests and review")
        return self

    def encode_submission(self) -> dict[str, bytes]:
        """Return form -> content; empty for the no-op."""
        review = self.review if self.review is None or isinstance(self.review, str) else json.dumps(self.review)
        forms = {"patch": self.patch, "tests": self.tests, "review": review}
        return {form: text.encode(errors="surrogateescape") for form, text in forms.items() if text and text.strip()}


ERRORS: dict[int | str, dict[str, Any]] = {
    404: {"description": "There is no such record: `error` and `advice`."},
    400: {"description": "A parameter is wrong: `error` and `advice`."},
}
_bearer = HTTPBearer(auto_error=False, description="The token that `mergemill serve --token` was given.")


def make_router(context: WebContext) -> APIRouter:
    """Return the routes of the API. Every function runs in a thread of its own."""
    router = APIRouter(default_response_class=DataResponse, responses=ERRORS)

    @router.get("/tasks", response_model=TaskPage, summary="List tasks")
    def list_tasks(
        request: Request,
        limit: Annotated[int, Query(ge=1, le=MAX_ROWS, description="Number of tasks.")] = 100,
        after: Annotated[str | None, Query(description="Continue after the task of this name.")] = None,
        q: Annotated[str | None, Query(description="Words that a task must contain.")] = None,
    ) -> DataResponse:
        """Return tasks, newest change first. Every filter of `mergemill tasks list` is a parameter, too."""
        del after, q  # `load_listing` reads all parameters; here they are for the description of the API
        listing = load_listing(context, read_parameters(request), limit, TASK_COLUMNS)
        return DataResponse({"tasks": listing.rows, "next": listing.next})

    @router.get("/tasks/{name:path}", summary="Show a task")
    def show_task(name: str) -> DataResponse:
        """Return all fields of a task, as `mergemill tasks show --json` prints them."""
        _, details = queries.look_up_task(context.store, context.artifacts, name)
        return DataResponse(details)

    @router.get("/funnel", response_model=FunnelCounts, summary="Count changes by stage")
    def count_funnel(
        source: Annotated[list[str] | None, Query()] = None, repo: Annotated[str | None, Query()] = None
    ) -> DataResponse:
        """Return how many changes passed each stage, and why the others did not."""
        return DataResponse({"stages": queries.compute_funnel(context.store, source or (), repo)})

    @router.get("/why/{name:path}", summary="Show a change")
    def explain_change(name: str) -> DataResponse:
        """Return every stage, attempt and rejection of one change, as `mergemill why --json` prints them."""
        _, report = queries.look_up_change(context.store, name)
        return DataResponse(report)

    @router.get("/runs", response_model=RunList, summary="List runs")
    def show_runs() -> DataResponse:
        """Return the progress of running and finished runs, newest first."""
        return DataResponse({"runs": list_runs(context.runs)})

    router.add_api_route("/grade", _make_grader(context), methods=["POST"], response_model=Score, summary="Grade")
    return router


def _make_grader(context: WebContext) -> Callable[..., DataResponse]:
    def grade(
        submission: GradeRequest, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)] = None
    ) -> DataResponse:
        """Grade one submission in a fresh container, store the score and return it. Needs the token."""
        _require_token(context, credentials)
        from mergemill.grading import grade_submission  # noqa: PLC0415 - the pages need no verifiers

        if not context.grading.acquire(blocking=False):
            raise HTTPException(429, "all grading slots are in use; try again later", {"retry-after": "10"})
        try:
            score = grade_submission(submission.task, submission.encode_submission(), context.settings)
        except UsageError as error:
            raise HTTPException(400, error.format_line()) from error
        finally:
            context.grading.release()
        return DataResponse(to_json(score))

    return grade


def _require_token(context: WebContext, credentials: HTTPAuthorizationCredentials | None) -> None:
    """Raise an HTTP error unless the request has the token.

    Raises:
        HTTPException: 403 where the server has none, 401 for a missing or wrong one.
    """
    if context.rules.token is None:
        raise HTTPException(403, "grading needs a server that was started with --token")
    given = f"{credentials.scheme} {credentials.credentials}" if credentials else ""
    if not context.rules.accepts_token(given):
        raise HTTPException(401, "the token is missing or wrong", {"www-authenticate": "Bearer"})
