"""The HTTP API: the same data as the command line."""

from __future__ import annotations

import json

import pytest
from starlette.testclient import TestClient

from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import TaskFilters
from taskdb.store import Store
from tests.web.seed import SeededDatabase

GRADING = {"grade", "grade/batch", "grade/status"}


def test_tasks_are_listed_in_pages(client: TestClient, seeded: SeededDatabase) -> None:
    names, after = [], ""
    while True:
        page = client.get(
            "/api/v1/tasks", params={"limit": "7", "kind": "bugfix", **({"after": after} if after else {})}
        )
        names += [row["name"] for row in page.json()["tasks"]]
        after = page.json()["next"]
        if after is None:
            break
    with Store.open(seeded.settings.storage.db) as store:
        assert names == [row["name"] for row in queries.list_tasks(store, TaskFilters(kind="bugfix"))]


def test_a_task_has_the_fields_of_the_command_line(client: TestClient, seeded: SeededDatabase) -> None:
    task = client.get(f"/api/v1/tasks/{seeded.task}").json()
    assert task["name"] == seeded.task
    assert task["FAIL_TO_PASS"] == ["tests/test_greet.py::test_new[empty]", "tests/test_greet.py::test_calm"]
    assert "DEFAULT_NAME" in task["patch"]


def test_funnel_why_and_runs(client: TestClient, seeded: SeededDatabase) -> None:
    stages = client.get("/api/v1/funnel").json()["stages"]
    assert [row["stage"] for row in stages] == ["mine", "build", "verify", "judge", "derive", "certify"]
    assert stages[0]["rejected"] == {"no-tests": 6, "too-large": 3}
    only = client.get("/api/v1/funnel", params={"repo": "spf13/cobra"}).json()["stages"]
    assert only[0]["in"] == 15
    why = client.get(f"/api/v1/why/{seeded.rejected}").json()
    assert [event["reason"] for event in why["events"]] == [None, "tests-not-collected"]
    (run,) = client.get("/api/v1/runs").json()["runs"]
    assert run["done"] == 128
    assert run["seconds_left"] > 0


@pytest.mark.parametrize(
    "path", ["tasks/nothing", "why/nothing", "nothing", "tasks?limit=0", "tasks?limit=5000", "tasks?colour=1"]
)
def test_errors_are_json(client: TestClient, path: str) -> None:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code in (400, 404)
    assert set(answer.json()) == {"error", "advice"}


def test_the_description_names_every_route(client: TestClient) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    assert set(paths) == {
        f"/api/v1/{route}"
        for route in GRADING | {"tasks", "tasks/{name}", "prompts/{name}", "funnel", "why/{name}", "runs"}
    }
    for route in ("grade", "grade/batch"):
        assert paths[f"/api/v1/{route}"]["post"]["security"] == [{"HTTPBearer": []}]
        assert "429" in paths[f"/api/v1/{route}"]["post"]["responses"]


def test_a_prompt_has_what_an_agent_may_know_and_no_more(client: TestClient, seeded: SeededDatabase) -> None:
    prompt = client.get(f"/api/v1/prompts/{seeded.task}").json()
    assert (prompt["task"], prompt["kind"], prompt["submission"]) == (seeded.task, "bugfix", "patch")
    task = client.get(f"/api/v1/tasks/{seeded.task}").json()
    (message,) = prompt["messages"]
    assert task["problem_statement"].strip() in message["content"]
    assert prompt["image"] == task["image"]
    for hidden in ("DEFAULT_NAME", *task["FAIL_TO_PASS"]):
        assert hidden in json.dumps(task)
        assert hidden not in json.dumps(prompt)


def test_a_simulated_task_has_no_prompt(
    client: TestClient, seeded: SeededDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(seeded.settings.storage.db) as store:
        task = queries.resolve_task(store, seeded.task)
    played = task.model_copy(update={"name": "ada__greet-1.simulated", "environment": "simulated", "plan": None})
    monkeypatch.setattr(queries, "resolve_task", lambda *_: played)
    answer = client.get("/api/v1/prompts/ada__greet-1.simulated")
    assert (answer.status_code, answer.json()["error"]) == (
        404,
        "ada__greet-1.simulated has no prompt: simulated tasks have no image",
    )
