"""Grading over HTTP: behind the token, bounded, and never a zero for what was not graded."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import verifiers
from backends.services import Services
from core.errors import Transient
from core.settings.group import replace_values
from mergemill.grading.grading import TaskGrader, make_unscored
from mergemill.web.application import make_application
from mergemill.web.request_guard import make_access_rules
from taskdb.records import Score, Task
from taskdb.store import Store
from tests.graded_tasks import NO_FINDINGS, GradedTasks, make_reviews
from tests.web.conftest import HOST, TOKEN, ClientFactory
from tests.web.seed import SeededDatabase

BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def graded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """What was graded; the engine's part is tested with `mergemill grade`."""
    calls: list[tuple[str, bytes]] = []

    def grade(grader: TaskGrader, submission: Any) -> Score:
        calls.append((submission.task.name, submission.content))
        return Score(task=submission.task.name, value=1.0, resolved=True, f2p_rate=1.0, p2p_rate=1.0)

    monkeypatch.setattr(TaskGrader, "grade", grade)
    return calls


@pytest.mark.parametrize(
    ("content", "submission"),
    [
        ("diff", b"diff"),
        ("", b""),
        (" \n", b""),
        ("caf\udce9 and half a character \ud83d", b"caf\xe9 and half a character ?"),
    ],
)
def test_a_submission_is_graded_with_the_token(
    client: TestClient, seeded: SeededDatabase, graded: list[Any], content: str, submission: bytes
) -> None:
    body = json.dumps({"task": seeded.task, "patch": content})
    answer = client.post("/api/v1/grade", content=body, headers={**BEARER, "content-type": "application/json"})
    assert answer.status_code == 200
    assert answer.json()["value"] == 1.0
    assert graded == [(seeded.task, submission)]


@pytest.mark.parametrize("path", ["grade", "grade/batch"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer "},
        {"cookie": f"token={TOKEN}"},
    ],
)
def test_nothing_is_graded_without_the_token(
    client: TestClient, seeded: SeededDatabase, graded: list[Any], headers: dict[str, str], path: str
) -> None:
    submission = {"task": seeded.task, "patch": "x"}
    body = submission if path == "grade" else [submission]
    assert client.post(f"/api/v1/{path}", json=body, headers=headers).status_code == 401
    assert not graded


@pytest.mark.parametrize("path", ["grade", "grade/batch"])
def test_a_server_without_a_token_only_reads(
    make_client: ClientFactory, seeded: SeededDatabase, graded: list[Any], path: str
) -> None:
    submission = {"task": seeded.task, "patch": "x"}
    body = submission if path == "grade" else [submission]
    assert make_client(token=None).post(f"/api/v1/{path}", json=body, headers=BEARER).status_code == 403
    assert not graded


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"task": "a"}, "give one of patch, tests, review and rollout"),
        ({"task": "a", "patch": "x", "tests": "x"}, "give one of patch, tests, review and rollout"),
        ({"task": "a", "patch": None, "tests": None}, "give one of patch, tests, review and rollout"),
        ({"patch": "x"}, "field task is missing"),
        ({"task": "", "patch": "x"}, "field task is empty"),
        ({"task": None, "patch": "x"}, "field task is null"),
        ({"task": "a", "patch": ["x"]}, "field patch is not a text"),
        ({"task": "a", "review": 3}, "field review is not an object"),
        ({"task": "a", "patch": "x", "rollout": {}}, "give one of patch, tests, review and rollout"),
        ({"task": "a", "patch": "x", "y": 1}, "field y is not known"),
        ([], "the body is not an object"),
        (b"{", "the body is not JSON"),
        (b"", "the body is missing"),
    ],
    ids=repr,
)
def test_a_malformed_submission_is_a_400_in_our_words(
    client: TestClient, graded: list[Any], body: object, message: str
) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body)
    headers = {**BEARER, "content-type": "application/json"}
    answer = client.post("/api/v1/grade", content=content, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (400, message)
    assert not graded


def test_a_form_that_the_task_does_not_take_is_a_400(
    client: TestClient, seeded: SeededDatabase, graded: list[Any]
) -> None:
    answer = client.post("/api/v1/grade", json={"task": seeded.task, "tests": "x"}, headers=BEARER)
    assert answer.status_code == 400
    assert not graded


@pytest.mark.parametrize("forms", [{"patch": None}, {"patch": "", "tests": None, "review": None}])
def test_null_is_the_noop(
    client: TestClient, seeded: SeededDatabase, graded: list[tuple[str, bytes]], forms: dict[str, Any]
) -> None:
    answer = client.post("/api/v1/grade", json={"task": seeded.task, **forms}, headers=BEARER)
    assert answer.status_code == 200, answer.json()
    assert [content for _, content in graded] == [b""]


def test_a_large_body_is_not_read(client: TestClient, seeded: SeededDatabase, graded: list[Any]) -> None:
    body = json.dumps({"task": seeded.task, "patch": "x" * (9 << 20)})
    answer = client.post("/api/v1/grade", content=body, headers=BEARER | {"content-type": "application/json"})
    assert answer.status_code == 413
    assert not graded


def test_an_unknown_task_is_a_404(client: TestClient) -> None:
    answer = client.post("/api/v1/grade", json={"task": "nothing", "patch": "x"}, headers=BEARER)
    assert answer.status_code == 404
    assert answer.json()["error"] == "there is no task nothing"


# ------------------------------------------------------------------------------------- real gradings of reviews


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> GradedTasks:
    return make_reviews(tmp_path_factory.mktemp("reviews"))


@pytest.fixture
def server(reviews: GradedTasks, tmp_path: Path) -> Iterator[TestClient]:
    """A server of reviews with two workers and 250 places, whose database has no scores yet."""
    settings = replace_values(reviews.settings, {"workers": 2})
    with Store.open(settings.storage.db) as store:
        with store.write_transaction() as connection:
            connection.exec_driver_sql("DELETE FROM score")
        application = make_application(store, settings, make_access_rules("127.0.0.1", TOKEN), queue_limit=250)
        with TestClient(application, base_url=HOST, headers=BEARER) as client:
            yield client
        application.state.grading.close()


def read_lines(answer: Any) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


def test_200_gradings_at_once_keep_their_verdicts(server: TestClient, reviews: GradedTasks) -> None:
    """Half are right. Each differs from the others, so that none is answered by another one."""
    submissions = []
    for number in range(200):
        task = reviews.tasks[number % len(reviews.tasks)]
        right = number % 4 < 2
        submissions.append(
            {
                "id": f"{'right' if right else 'wrong'}-{number}",
                "task": task,
                "review": (reviews.gold[task] if right else NO_FINDINGS) + " " * number,
            }
        )
    lines = read_lines(server.post("/api/v1/grade/batch", json=submissions))
    assert sorted(line["index"] for line in lines) == list(range(200))
    for line in lines:
        assert line["id"] == submissions[line["index"]]["id"]
        assert line["task"] == submissions[line["index"]]["task"]
        assert line["value"] == (1.0 if line["id"].startswith("right") else 0.0)
    status = server.get("/api/v1/grade/status").json()
    assert (status["done"], status["queued"], status["running"], status["unscored"]) == (200, 0, 0, 0)


def test_200_requests_at_once_keep_their_verdicts(server: TestClient, reviews: GradedTasks) -> None:
    def grade(number: int) -> bool:
        task, right = reviews.tasks[number % len(reviews.tasks)], number % 4 < 2
        review = (reviews.gold[task] if right else NO_FINDINGS) + " " * number
        answer = server.post("/api/v1/grade", json={"task": task, "review": review}).json()
        return bool(answer["value"] == (1.0 if right else 0.0) and answer["task"] == task)

    with ThreadPoolExecutor(200) as pool:
        assert all(pool.map(grade, range(200)))


def test_a_submission_that_was_graded_before_is_answered_from_the_database(
    server: TestClient, reviews: GradedTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = reviews.tasks[0]
    first = server.post("/api/v1/grade", json={"task": task, "review": NO_FINDINGS}).json()
    batch = [{"task": task, "review": NO_FINDINGS}, {"task": task, "review": reviews.gold[task]}]
    lines = sorted(read_lines(server.post("/api/v1/grade/batch", json=batch)), key=lambda line: int(line["index"]))
    assert [line["cached"] for line in lines] == [True, False]
    assert {name: lines[0][name] for name in first} == first
    assert server.get("/api/v1/grade/status").json()["done"] == 2
    monkeypatch.setattr("mergemill.grading.grading.compute_grader_version", lambda: "another")
    server.post("/api/v1/grade", json={"task": task, "review": NO_FINDINGS})
    assert server.get("/api/v1/grade/status").json()["done"] == 3


def test_wrong_entries_of_a_batch_are_named_and_the_others_graded(server: TestClient, reviews: GradedTasks) -> None:
    task = reviews.tasks[0]
    batch = [
        {"task": "nothing", "review": NO_FINDINGS},
        {"task": task, "patch": "diff"},
        {"task": task, "review": json.loads(reviews.gold[task])},
    ]
    lines = sorted(read_lines(server.post("/api/v1/grade/batch", json=batch)), key=lambda line: int(line["index"]))
    assert [line["value"] for line in lines] == [None, None, 1.0]
    assert "there is no task nothing" in lines[0]["error"]
    assert "it takes --review FILE" in lines[1]["error"]
    assert lines[2]["error"] is None


class Gate:
    """Grading that waits until it is let through; used in place of the grader's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started, self.opened = threading.Semaphore(0), threading.Event()
        self.calls: list[str] = []
        real = TaskGrader.grade

        def grade(grader: TaskGrader, submission: Any) -> Score:
            self.calls.append(submission.sha256)
            self.started.release()
            assert self.opened.wait(30)
            return real(grader, submission)

        monkeypatch.setattr(TaskGrader, "grade", grade)


def test_a_full_queue_answers_429_with_the_time_to_come_back(
    reviews: GradedTasks, server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, task = Gate(monkeypatch), reviews.tasks[0]
    with ThreadPoolExecutor(300) as pool:

        def post(number: int) -> Any:
            return server.post("/api/v1/grade", json={"task": task, "review": NO_FINDINGS + " " * number})

        running = [pool.submit(post, number) for number in range(252)]
        for _ in range(2):
            assert gate.started.acquire(timeout=30)
        while server.get("/api/v1/grade/status").json()["queued"] < 250:
            pass
        over = post(1000)
        assert (over.status_code, over.headers["retry-after"]) == (429, "5")
        assert over.json()["error"] == "the grading queue is full; try again later"
        equal = pool.submit(post, 0)
        gate.opened.set()
        assert [answer.result().status_code for answer in [*running, equal]] == [200] * 253
    assert len(gate.calls) == 252
    status = server.get("/api/v1/grade/status").json()
    assert (status["done"], status["cached"], status["rejected"]) == (252, 1, 1)
    assert post_batch(server, task, 251).status_code == 400


def post_batch(server: TestClient, task: str, size: int) -> Any:
    return server.post("/api/v1/grade/batch", json=[{"task": task, "review": NO_FINDINGS}] * size)


def test_equal_submissions_at_the_same_time_are_graded_once(
    reviews: GradedTasks, server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, task = Gate(monkeypatch), reviews.tasks[0]
    gate.opened.set()
    lines = read_lines(post_batch(server, task, 20))
    assert len(gate.calls) == 1
    assert sorted(line["cached"] for line in lines) == [False] + [True] * 19
    assert {line["value"] for line in lines} == {0.0}


def test_a_lost_container_is_null_and_graded_again_when_it_is_sent_again(
    reviews: GradedTasks, server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mergemill.grading.grading.RETRY_POLICY.sleep", lambda _: None)
    task, calls, real = reviews.tasks[0], [], verifiers.grade

    def lose(task: Task, services: Services, content: bytes) -> Score:
        calls.append(content)
        return make_unscored(task.name, "the container was lost")

    monkeypatch.setattr(verifiers, "grade", lose)
    body = {"task": task, "review": reviews.gold[task]}
    lost = server.post("/api/v1/grade", json=body)
    assert lost.status_code == 200
    assert (lost.json()["value"], lost.json()["infrastructure_error"]) == (None, "the container was lost")
    assert len(calls) == 3
    assert server.get("/api/v1/grade/status").json()["unscored"] == 1
    monkeypatch.setattr(verifiers, "grade", real)
    assert server.post("/api/v1/grade", json=body).json()["value"] == 1.0


def test_a_client_that_goes_away_does_not_lose_its_grading(
    reviews: GradedTasks, server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, task = Gate(monkeypatch), reviews.tasks[0]
    application: Any = server.app
    ticket = application.state.grading.submit([(task, "review", {"review": NO_FINDINGS.encode()})])[0]
    assert gate.started.acquire(timeout=30)
    assert not ticket.future.cancel()
    gate.opened.set()
    assert ticket.future.result(30).value == 0.0
    assert server.get("/api/v1/grade/status").json()["done"] == 1


def test_a_server_that_is_stopped_gives_no_zero_to_what_waits(
    reviews: GradedTasks, server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, task = Gate(monkeypatch), reviews.tasks[0]
    application: Any = server.app
    given = [(task, "review", {"review": (NO_FINDINGS + " " * number).encode()}) for number in range(3)]
    tickets = application.state.grading.submit(given)
    for _ in range(2):
        assert gate.started.acquire(timeout=30)
    application.state.grading.close()
    with pytest.raises(Transient, match="being stopped"):
        tickets[2].future.result(30)
    assert server.post("/api/v1/grade", json={"task": task, "review": NO_FINDINGS}).status_code == 503
    gate.opened.set()
    assert [ticket.future.result(30).value for ticket in tickets[:2]] == [0.0, 0.0]


def test_a_bug_of_the_grader_is_a_500_and_no_zero(
    reviews: GradedTasks, server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(grader: TaskGrader, submission: Any) -> Score:
        raise ValueError("oops")

    monkeypatch.setattr(TaskGrader, "grade", fail)
    body = {"task": reviews.tasks[0], "review": NO_FINDINGS}
    assert server.post("/api/v1/grade", json=body).status_code == 500
    (line,) = read_lines(server.post("/api/v1/grade/batch", json=[body]))
    assert (line["value"], line["error"]) == (None, None)
    assert "bug" in line["infrastructure_error"]
