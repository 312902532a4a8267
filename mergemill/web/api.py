"""HTTP API under /api/v1: the data of the pages. Grading is in `grading_api`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from mergemill.execution.run_status import list_runs
from mergemill.web.context import WebContext
from mergemill.web.rendering import DataResponse
from mergemill.web.task_listing import MAX_ROWS, load_listing, read_parameters
from taskdb.queries import tasks as queries
from taskdb.schema.columns import TASK_COLUMNS


class TaskPage(BaseModel):
    """One page of a list of tasks."""

    tasks: list[dict[str, Any]] = Field(description="Rows of the view `tasks`, newest change first.")
    next: str | None = Field(description="Value of `after` for the next page; null on the last one.")


class TaskPrompt(BaseModel):
    """What an agent is given for a task."""

    task: str
    id: str
    kind: str
    submission: str = Field(description="Form of what it hands in: `patch`, `tests`, `review` or `rollout`.")
    messages: list[dict[str, str]] = Field(description="The prompt, as OpenAI messages.")
    image: str | None = Field(description="Image in which it works; null where the prompt holds all material.")
    workdir: str | None
    submission_path: str = Field(description="File in the container where `collect_command` leaves the submission.")
    collect_command: str = Field(description="Command for bash, run as root; does nothing where there is no image.")


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


ERRORS: dict[int | str, dict[str, Any]] = {
    404: {"description": "There is no such record: `error` and `advice`."},
    400: {"description": "A parameter is wrong: `error` and `advice`."},
}


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

    @router.get("/prompts/{name:path}", response_model=TaskPrompt, summary="Show the prompt of a task")
    def show_prompt(name: str) -> DataResponse:
        """Return the text that an agent is given for a task, without anything that it must not see."""
        from mergemill.bundles.task_prompt import build_task_prompt  # noqa: PLC0415 - the pages need no exporters

        task = queries.resolve_task(context.store, name)
        return DataResponse(build_task_prompt(task, context.artifacts))

    @router.get("/funnel", response_model=FunnelCounts, summary="Count changes by stage")
    def count_funnel(
        source: Annotated[list[str] | None, Query()] = None, repo: Annotated[str | None, Query()] = None
    ) -> DataResponse:
        """Return how many changes passed each stage, and why the others did not."""
        return DataResponse({"stages": queries.compute_funnel(context.store, source or (), repo)})

    @router.get("/why/{name:path}", summary="Show a change")
    def explain_change(name: str) -> DataResponse:
        """Return every stage, attempt and rejection of a change, as `mergemill why --json` prints them."""
        _, report = queries.look_up_change(context.store, name)
        return DataResponse(report)

    @router.get("/runs", response_model=RunList, summary="List runs")
    def show_runs() -> DataResponse:
        """Return the progress of running and finished runs, newest first."""
        return DataResponse({"runs": list_runs(context.runs)})

    return router
