"""The client's grader: scores of a real server, and what it makes of one that fails."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mergemill_client import (
    AsyncGrader,
    ClientError,
    Grader,
    Score,
    TaskEnvironment,
    TaskNotFoundError,
    UnscoredError,
    compute_reward,
    extract_submission,
)

from evaluation.instructions.submission import write_submission
from mergemill.grading.grading import Submission, TaskGrader
from tests.evaluation.instructions.conversations import bash, make_answers
from tests.graded_tasks import NO_FINDINGS, GradedTasks, make_reviews
from tests.grading_server import TOKEN, serve_answers, serve_gradings
from tests.mergemill.bench.octo import import_rows, make_row, make_settings
from tests.mergemill.bench.test_octo_rewards import BINDINGS, DONE, EDIT, GOOD, PATCH

RIGHT = {"task": "a", "value": 1.0, "resolved": True, "f2p_rate": 1.0, "p2p_rate": 1.0, "colour": "blue"}
OK: tuple[int | str, dict[str, str], Any] = (200, {}, RIGHT)


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> GradedTasks:
    return make_reviews(tmp_path_factory.mktemp("reviews"))


@pytest.fixture(scope="module")
def url(reviews: GradedTasks) -> Iterator[str]:
    with serve_gradings(reviews.settings, queue_limit=8) as url:
        yield url


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses between attempts, which are not waited for."""
    made: list[float] = []
    monkeypatch.setattr(time, "sleep", made.append)
    return made


def test_a_submission_is_graded(url: str, reviews: GradedTasks) -> None:
    grader = Grader(url, TOKEN)
    task = reviews.tasks[0]
    for review in (reviews.gold[task], json.loads(reviews.gold[task]), reviews.gold[task].encode()):
        score = grader.grade(task, review=review)
        assert (score.task, score.value, score.resolved, score.is_scored) == (task, 1.0, True, True)
        assert score.parts["recall"] == 1
    assert grader.grade(task, review="").value == 0.0
    assert grader.get_status()["cached"] == 2


def test_many_submissions_are_graded_through_a_small_queue(url: str, reviews: GradedTasks) -> None:
    """The server has 8 places; the client waits for one."""
    submissions = [
        {"task": task, "review": (reviews.gold[task] if right else NO_FINDINGS) + " " * (n + 1)}
        for n in range(10)
        for task in reviews.tasks
        for right in (True, False)
    ]
    scores = dict(Grader(url, TOKEN, concurrency=40).grade_many(submissions))
    assert sorted(scores) == list(range(120))
    assert [scores[n].value for n in range(120)] == [1.0, 0.0] * 60


def test_the_grader_for_asyncio_does_the_same(url: str, reviews: GradedTasks) -> None:
    async def main() -> tuple[Score, dict[int, Score]]:
        grader = AsyncGrader(url, TOKEN)
        task = reviews.tasks[0]
        score = await grader.grade(task, review=reviews.gold[task])
        submissions = [{"task": task, "review": review} for review in (reviews.gold[task], NO_FINDINGS)]
        return score, {number: score async for number, score in grader.grade_many(submissions)}

    score, many = asyncio.run(main())
    assert (score.value, many[0].value, many[1].value) == (1.0, 1.0, 0.0)


def test_wrong_submissions_are_errors_and_in_a_stream_one_score_each(url: str, reviews: GradedTasks) -> None:
    grader, task = Grader(url, TOKEN), reviews.tasks[0]
    with pytest.raises(TaskNotFoundError, match="there is no task nothing"):
        grader.grade("nothing", patch="")
    with pytest.raises(ClientError, match="it takes --review FILE"):
        grader.grade(task, patch="diff")
    with pytest.raises(ClientError, match="the token is missing or wrong"):
        Grader(url, "wrong").grade(task, review=NO_FINDINGS)
    with pytest.raises(ClientError, match="give one of patch, tests, review and rollout"):
        grader.grade(task)
    scores = dict(grader.grade_many([{"task": "nothing", "patch": ""}, {"task": task, "review": reviews.gold[task]}]))
    assert (scores[0].value, scores[1].value) == (None, 1.0)
    assert "there is no task nothing" in str(scores[0].error)


@pytest.fixture
def checklist_url(tmp_path: Path) -> Iterator[str]:
    """A server with one published checklist, both of whose items a program decides."""
    row = make_row()
    row["checklist"] = {name: row["checklist"][name] for name in ("SP", "Agents.md")}
    del row["checklist"]["SP"]["checks"][1]
    assert import_rows(tmp_path, [row], table=BINDINGS).exit_code == 0
    with serve_gradings(make_settings(tmp_path)) as url:
        yield url


def test_a_conversation_is_graded_by_its_checks(checklist_url: str) -> None:
    grader, task = Grader(checklist_url, TOKEN), "md-greet-1.instructions"
    good = write_submission(PATCH, make_answers(*GOOD))
    careless = json.loads(write_submission(PATCH, make_answers([EDIT], [bash("git push")], DONE)))
    assert grader.grade(task, rollout=good).value == 1.0
    score = grader.grade(task, rollout=careless)
    assert (score.value, score.parts["isr"], score.parts["failed_constraints"]) == (0.0, 0.0, 2.0)
    scores = dict(grader.grade_many([{"task": task, "rollout": rollout} for rollout in (good.decode(), careless)]))
    assert [scores[number].value for number in range(2)] == [1.0, 0.0]
    with pytest.raises(ClientError, match="it takes --rollout FILE"):
        grader.grade(task, patch=PATCH)
    environment = TaskEnvironment(checklist_url, TOKEN)
    assert environment.grade(task, "instructions", good).value == 1.0


# ----------------------------------------------------------------------------------------- servers that fail


@pytest.mark.parametrize(
    "failures",
    [
        [("reset", {}, None)] * 3,
        [(503, {}, {"error": "no engine"})],
        [(500, {}, {"error": "a bug"})] * 2,
        [(200, {}, b'{"task": "a", "val')],
        [(200, {"content-length": "1000"}, RIGHT)],
        [(502, {}, b"<html>bad gateway</html>")],
    ],
    ids=["reset", "503", "500", "cut", "short", "502"],
)
def test_a_failing_server_is_tried_again(failures: list[Any], pauses: list[float]) -> None:
    with serve_answers(*failures, OK) as server:
        score = Grader(server.url, timeout=5).grade("a", patch="diff")
    assert (score.value, score.resolved) == (1.0, True)
    assert len(pauses) == len(failures)
    assert server.bodies == [{"task": "a", "patch": "diff"}] * (len(failures) + 1)


def test_a_full_server_is_waited_for_as_long_as_it_is_full(pauses: list[float]) -> None:
    full = (429, {"retry-after": "20"}, {"error": "full"})
    with serve_answers(*[full] * 50, OK) as server:
        assert Grader(server.url, patience=1).grade("a", patch="diff").value == 1.0
    assert len(pauses) == 50
    assert all(10 <= pause <= 30 for pause in pauses)


def test_a_server_that_stays_away_gives_no_score_and_no_zero(pauses: list[float]) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        score = Grader(url, patience=0.1).grade("a", patch="diff")
        assert (score.value, score.is_scored, compute_reward(score)) == (None, False, None)
        assert "refused" in str(score.infrastructure_error)
        with pytest.raises(ClientError):
            Grader(url).get_status()


def test_a_server_that_is_restarted_gives_the_score_after_all(
    reviews: GradedTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first server is stopped in the middle of the grading."""
    begun, real = threading.Event(), TaskGrader.grade

    def hang(grader: TaskGrader, submission: Submission) -> Score:
        begun.set()
        time.sleep(3600)
        return real(grader, submission)

    task = reviews.tasks[1]
    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(TaskGrader, "grade", hang)
        with serve_gradings(reviews.settings) as url:
            waiting = pool.submit(Grader(url, TOKEN).grade, task, review=reviews.gold[task] + "\n\n")
            assert begun.wait(30)
        monkeypatch.setattr(TaskGrader, "grade", real)
        assert not waiting.done()
        with serve_gradings(reviews.settings, port=int(url.rpartition(":")[2])):
            assert waiting.result(60).value == 1.0


def test_a_bug_of_the_server_ends_after_three_attempts(pauses: list[float]) -> None:
    with serve_answers((500, {}, {"error": "the server failed through a bug"})) as server:
        score = Grader(server.url).grade("a", patch="diff")
    assert len(server.bodies) == 3
    assert (score.value, score.infrastructure_error) == (None, "the server failed through a bug")


# ------------------------------------------------------------------------------------------------------ rewards


def make_score(value: float | None, f2p: float = 1.0, p2p: float = 1.0, **fields: Any) -> Score:
    return Score(task="a", value=value, resolved=value == 1, f2p_rate=f2p, p2p_rate=p2p, **fields)


@pytest.mark.parametrize(
    ("score", "graded", "binary", "partial"),
    [
        (make_score(1.0), 1.0, 1.0, 1.0),
        (make_score(0.0, 0.5), 0.0, 0.0, 0.5),
        (make_score(0.0, 0.5, 0.99), 0.0, 0.0, 0.0),
        (make_score(0.0, 0.5, tampering=("control",)), 0.0, 0.0, 0.0),
        (make_score(0.0, 1.0, 1.0), 0.0, 0.0, 0.0),
        (make_score(0.4, 0.4, 0.4, parts={"recall": 0.5}), 0.4, 0.0, 0.4),
        (make_score(None, 0.0, 0.0, infrastructure_error="lost"), None, None, None),
    ],
    ids=["solved", "half", "broken", "tampered", "exposed", "review", "unscored"],
)
def test_a_reward_has_three_shapes(
    score: Score, graded: float | None, binary: float | None, partial: float | None
) -> None:
    shapes = ("graded", "binary", "partial")
    assert [compute_reward(score, shape) for shape in shapes] == [graded, binary, partial]


def test_an_unknown_shape_is_an_error() -> None:
    with pytest.raises(ClientError, match="graded, binary, partial"):
        compute_reward(make_score(1.0), "round")


# -------------------------------------------------------------------------------------------------- environment


def test_an_environment_gives_prompts_without_the_solution_and_rewards_of_answers(
    url: str, reviews: GradedTasks
) -> None:
    environment = TaskEnvironment(url, TOKEN, shape="binary")
    prompts = list(environment.iterate_prompts(limit=2))
    assert len(prompts) == 2
    for prompt in prompts:
        names = {"task", "id", "kind", "submission", "messages", "image", "workdir"}
        assert set(prompt) == names | {"submission_path", "collect_command"}
        assert (prompt["kind"], prompt["submission"], prompt["image"]) == ("review", "review", None)
        assert "return sum(numbers" in prompt["messages"][0]["content"]
        answer = f"<think>\n```\n{{}}\n```\n</think>Here:\n```json\n{reviews.gold[prompt['task']]}\n```\n"
        score = environment.grade_answer(prompt["task"], prompt["kind"], answer)
        assert environment.require_reward(score) == 1.0
    nothing = environment.grade_answer(prompts[0]["task"], "review", "I have found nothing.")
    assert environment.compute_reward(nothing) == 0.0


def test_a_reward_that_is_required_and_missing_is_an_error() -> None:
    environment = TaskEnvironment("http://127.0.0.1:9")
    with pytest.raises(UnscoredError, match="a is unscored: lost"):
        environment.require_reward(make_score(None, infrastructure_error="lost"))


@pytest.mark.parametrize(
    ("answer", "submission"),
    [
        ("```diff\none\n```\nor\n```diff\ntwo\n```", "two\n"),
        ("~~~~\n```\ninner\n```\n~~~~", "```\ninner\n```\n"),
        ("diff --git a/x b/x\n+1", "diff --git a/x b/x\n+1\n"),
        ('{"findings": []}', '{"findings": []}\n'),
        ("I give up.", ""),
        ("<think>\n```\nno\n```\n</think> nothing", ""),
    ],
)
def test_a_submission_is_the_last_fenced_block_as_in_bundles(answer: str, submission: str) -> None:
    from exporters.shipped import mergemill_reward  # noqa: PLC0415 - a file that is shipped, not a module of ours

    assert extract_submission(answer) == submission
    assert mergemill_reward.extract_submission(answer) == submission
