"""The adapters, each run by the code of its framework, with real gradings of a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mergemill.grading.grading import Submission, TaskGrader, make_unscored
from taskdb.records import Score
from taskdb.store import Store
from tests.backends.llm.server import ScriptedAnswer, run_model_server
from tests.client import adapter_programs as programs
from tests.client.frameworks import install_framework, install_trainers, install_trl
from tests.exporters.consumers import fetch_slime, run_command
from tests.graded_tasks import BUGFIX, GradedTasks, make_bugfix, make_reviews
from tests.grading_server import TOKEN, serve_answers, serve_gradings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

CLIENT = Path(__file__).parents[2] / "client"
LOST = {"task": "a", "value": None, "resolved": False, "infrastructure_error": "the container was lost"}


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> GradedTasks:
    return make_reviews(tmp_path_factory.mktemp("reviews"), changes=2)


@pytest.fixture(scope="module")
def url(reviews: GradedTasks) -> Iterator[str]:
    with serve_gradings(reviews.settings) as url:
        yield url


@pytest.fixture
def lost() -> Iterator[str]:
    """Address of a server that scores nothing."""
    with serve_answers((200, {}, LOST)) as server:
        yield server.url


def run(command: Path, program: str, reviews: GradedTasks, url: str, lost: str, folder: Path, *paths: Path) -> Any:
    """Run a program of `adapter_programs`; return what it printed."""
    (folder / "gold.json").write_text(json.dumps(reviews.gold))
    words = ("python", "-c", program, folder / "gold.json", folder, lost)
    variables = {"MERGEMILL_GRADER_URL": url, "MERGEMILL_GRADER_TOKEN": TOKEN}
    path = Path(":".join(str(path) for path in (CLIENT, *paths)))
    output = run_command(command, *words, cwd=folder, path=path, **variables)
    return json.loads(next(line for line in reversed(output.splitlines()) if line.startswith("{")))


def expect_rewards(reviews: GradedTasks) -> dict[str, list[float]]:
    return {task: [1.0, 0.0] for task in reviews.tasks}


def pad_review(review: str) -> str:
    """Return a review with a finding more, which is wrong."""
    wrong = {"file": "no/such.py", "first_line": 1, "last_line": 1, "claim": "It is wrong."}
    return json.dumps({"findings": [*json.loads(review)["findings"], wrong]})


def expect_padded(reviews: GradedTasks) -> dict[str, list[float]]:
    """Return the graded and the binary reward of padded reviews."""
    expected = {}
    with Store.open(reviews.settings.storage.db) as store:
        grader = TaskGrader(store, reviews.settings)
        for task in reviews.tasks:
            review = pad_review(reviews.gold[task])
            value = grader.grade(Submission(task=grader.find_task(task, "review"), content=review.encode())).value
            assert value is not None
            assert 0 < value < 1
            expected[task] = [value, 0.0]
    return expected


def check_advantages(made: dict[str, Any]) -> None:
    """The scored ones are those of the framework without the others, which have 0; so has one that is alone."""
    advantages = made["advantages"]
    assert [advantages[n] for n in (0, 1, 3)] == made["expected"]
    assert made["expected"][0][0] > 0 > made["expected"][1][0]
    assert [advantages[n] for n in (2, 4, 5, 6)] == [[0.0] * 3] * 4


def test_verl_rewards_gold_alone_and_leaves_out_the_unscored(
    reviews: GradedTasks, url: str, lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERL_USE_EXTERNAL_MODULES", "mergemill_client.adapters.verl")
    made = run(install_trainers(tmp_path), programs.VERL, reviews, url, lost, tmp_path)
    assert (made["found"], made["padded"]) == (expect_rewards(reviews), expect_padded(reviews))
    assert (made["is_nan"], made["raised"]) == (True, "UnscoredError")
    check_advantages(made)
    assert [sum(row) for row in made["mask"]] == [3, 3, 0, 3, 0, 0, 0]


def test_skyrl_rewards_gold_alone_and_leaves_out_the_unscored(
    reviews: GradedTasks, url: str, lost: str, tmp_path: Path
) -> None:
    made = run(install_trainers(tmp_path), programs.SKYRL, reviews, url, lost, tmp_path)
    assert (made["found"], made["padded"]) == (expect_rewards(reviews), expect_padded(reviews))
    assert (made["is_nan"], made["raised"]) == (True, "UnscoredError")
    check_advantages(made)


def test_slime_rewards_gold_alone_and_leaves_out_the_unscored(
    reviews: GradedTasks, url: str, lost: str, tmp_path: Path
) -> None:
    made = run(install_trainers(tmp_path), programs.SLIME, reviews, url, lost, tmp_path, fetch_slime())
    assert (made["found"], made["padded"]) == (expect_rewards(reviews), expect_padded(reviews))
    assert (made["is_nan"], made["early"], made["removed"]) == (True, True, [False, False, True])
    assert made["shown"] == [1.0, 0.0, 0.5]
    assert made["trained"][0] == pytest.approx(0.5**0.5, abs=1e-4)
    assert made["trained"][1:] == [-made["trained"][0], 0.0]


def test_nemo_gym_rewards_gold_alone_and_fails_the_unscored(
    reviews: GradedTasks, url: str, lost: str, tmp_path: Path
) -> None:
    command = install_framework("nemo_gym")
    made = run(command, programs.NEMO_GYM, reviews, url, lost, tmp_path)
    assert (made["found"], made["padded"]) == (expect_rewards(reviews), expect_padded(reviews))
    assert made["status"] == 503


def test_openenv_rewards_gold_alone_and_gives_the_unscored_null(
    reviews: GradedTasks, url: str, lost: str, tmp_path: Path
) -> None:
    command = install_framework("openenv")
    made = run(command, programs.OPENENV, reviews, url, lost, tmp_path)
    assert (made["found"], made["padded"]) == (expect_rewards(reviews), expect_padded(reviews))
    assert (made["unscored"], made["error"]) == (None, "the container was lost")


def test_trl_trains_on_gold_and_not_on_the_unscored(reviews: GradedTasks, url: str, lost: str, tmp_path: Path) -> None:
    made = run(install_trl(tmp_path), programs.TRL, reviews, url, lost, tmp_path)
    task = reviews.tasks[0]
    assert (made["found"], made["padded"]) == ({task: [1.0, 0.0]}, {task: expect_padded(reviews)[task]})
    assert (made["moved"], made["logged"]) == (True, [0.5])
    assert (made["lost"], made["moved_without"]) == ([None] * 4, False)


@dataclass(frozen=True)
class EvalRun:
    """Rewards and errors of the rollouts of one `vf-eval`."""

    rewards: list[dict[str, float | None]]
    errors: list[str]


def run_vf_eval(folder: Path, url: str, answer: str, task: str, shape: str = "graded") -> EvalRun:
    """Run `vf-eval` on one task with a model that gives an answer; `shape`: of the rewards."""
    command = install_framework("verifiers")
    folder.mkdir()
    (folder / "mergemill_tasks.py").write_text(
        "from mergemill_client.adapters.verifiers import MergemillTaskset, __all__\n"
    )
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    with run_model_server([ScriptedAnswer(text=answer, usage=usage)]) as model:
        words = ["vf-eval", "mergemill-tasks", "--env.taskset.filters", json.dumps({"ids": task})]
        words += ["--env.agent.harness.id", "null", "--env.agent.runtime.type", "subprocess", "-m", "scripted"]
        words += ["--client.base-url", model.url, "--no-push", "-o", str(folder / "out")]
        variables = {"MERGEMILL_GRADER_URL": url, "MERGEMILL_GRADER_TOKEN": TOKEN, "OPENAI_API_KEY": "x"}
        variables |= {"PRIME_API_KEY": "x", "MERGEMILL_REWARD": shape}
        run_command(command, *words, cwd=folder, path=Path(f"{CLIENT}:{folder}"), **variables)
    (file,) = (folder / "out").rglob("traces.jsonl")
    traces = [trace for line in file.read_text().splitlines() for trace in json.loads(line)["traces"]]
    return EvalRun(
        [{name: reward and reward["score"] for name, reward in trace["rewards"].items()} for trace in traces],
        [error["message"] for trace in traces for error in trace["errors"]],
    )


def test_verifiers_rewards_gold_alone_and_ends_the_unscored_with_an_error(
    reviews: GradedTasks, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = reviews.tasks[0]
    right = run_vf_eval(tmp_path / "right", url, f"```json\n{reviews.gold[task]}\n```", task)
    assert (right.rewards, right.errors) == ([{"grade_submission": 1.0}], [])
    wrong = run_vf_eval(tmp_path / "wrong", url, "I give up.", task)
    assert (wrong.rewards, wrong.errors) == ([{"grade_submission": 0.0}], [])
    padded = f"```json\n{pad_review(reviews.gold[task])}\n```"
    for shape, reward in zip(("graded", "binary"), expect_padded(reviews)[task], strict=True):
        partly = run_vf_eval(tmp_path / shape, url, padded, task, shape)
        assert (partly.rewards, partly.errors) == ([{"grade_submission": reward}], [])

    def fail(grader: TaskGrader, submission: Submission) -> Score:
        return make_unscored(submission.task.name, "the container was lost")

    monkeypatch.setattr(TaskGrader, "grade_persistently", fail)
    lost = run_vf_eval(tmp_path / "lost", url, "I see nothing else.\n```\n{}\n```", task)
    assert lost.rewards == [{"grade_submission": None}]
    assert "the container was lost" in lost.errors[0]


# ------------------------------------------------------------------------------------- tasks with containers


@pytest.fixture(scope="module")
def fixes(tmp_path_factory: pytest.TempPathFactory) -> GradedTasks:
    return make_bugfix(tmp_path_factory.mktemp("fixes"))


def check_work(made: dict[str, Any]) -> None:
    """Check the rewards of gold and nothing, what a command showed, and that no container is left of two."""
    *rewards, output = made["found"][BUGFIX]
    assert rewards == [1.0, 0.0]
    user, device, *changes = output.splitlines()
    assert (user, device) == ("mergemill", "lo")
    assert " M greet/words.py" in changes
    assert made["containers"] == [2, 0]


@pytest.mark.docker
def test_an_agent_of_openenv_works_in_the_container_of_a_task(fixes: GradedTasks, lost: str, tmp_path: Path) -> None:
    command = install_framework("openenv")
    with serve_gradings(fixes.settings) as url:
        made = run(command, programs.OPENENV, fixes, url, lost, tmp_path)
    check_work(made)


@pytest.mark.docker
def test_an_environment_of_trl_works_in_the_container_of_a_task(fixes: GradedTasks, lost: str, tmp_path: Path) -> None:
    command = install_trl(tmp_path)
    with serve_gradings(fixes.settings) as url:
        made = run(command, programs.TRL_ENVIRONMENT, fixes, url, lost, tmp_path)
    check_work(made)
    assert (made["tools"], made["names"]) == (["bash", "submit"], ["MergemillEnvironment"])


@pytest.mark.docker
def test_verifiers_collects_what_an_agent_left_in_its_container(fixes: GradedTasks, lost: str, tmp_path: Path) -> None:
    command = install_framework("verifiers")
    with serve_gradings(fixes.settings) as url:
        made = run(command, programs.VERIFIERS, fixes, url, lost, tmp_path)
    assert made["found"] == {BUGFIX: [1.0, 0.0]}
