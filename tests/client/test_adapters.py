"""The adapters, each run by the code of its framework, with real gradings of a real server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client import adapter_programs as programs
from tests.exporters.consumer_programs import TOKENIZER
from tests.exporters.consumers import TRAINER_PACKAGES, TRAINERS, fetch_slime, find_newer_python, install, run_command
from tests.grading_server import TOKEN, serve_answers, serve_gradings
from tests.reviews import ReviewDatabase, make_reviews

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

CLIENT = Path(__file__).parents[2] / "client"
LOST = {"task": "a", "value": None, "resolved": False, "infrastructure_error": "the container was lost"}


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> ReviewDatabase:
    return make_reviews(tmp_path_factory.mktemp("reviews"), changes=2)


@pytest.fixture(scope="module")
def url(reviews: ReviewDatabase) -> Iterator[str]:
    with serve_gradings(reviews.settings) as url:
        yield url


@pytest.fixture
def lost() -> Iterator[str]:
    """Address of a server that scores nothing."""
    with serve_answers((200, {}, LOST)) as server:
        yield server.url


def run(command: Path, program: str, reviews: ReviewDatabase, url: str, lost: str, folder: Path, *paths: Path) -> Any:
    """Run a program of `adapter_programs`; return what it printed."""
    (folder / "gold.json").write_text(json.dumps(reviews.gold))
    words = ("python", "-c", program, folder / "gold.json", folder, lost)
    variables = {"MERGEMILL_GRADER_URL": url, "MERGEMILL_GRADER_TOKEN": TOKEN}
    path = Path(":".join(str(one) for one in (CLIENT, *paths)))
    output = run_command(command, *words, cwd=folder, path=path, **variables)
    return json.loads(next(line for line in reversed(output.splitlines()) if line.startswith("{")))


def install_trainers(folder: Path) -> Path:
    packages = (*TRAINER_PACKAGES, "cloudpathlib", "jaxtyping")
    command = install("torch==2.9.1", find_newer_python(), *packages, bare=TRAINERS)
    run_command(command, "python", "-c", TOKENIZER, folder / "tokenizer", cwd=folder)
    return command


def expect_rewards(reviews: ReviewDatabase) -> dict[str, list[float]]:
    return {task: [1.0, 0.0] for task in reviews.tasks}


def check_advantages(made: dict[str, Any]) -> None:
    """The scored ones are those of the framework without the others, which have 0; so has one that is alone."""
    advantages = made["advantages"]
    assert [advantages[n] for n in (0, 1, 3)] == made["expected"]
    assert made["expected"][0][0] > 0 > made["expected"][1][0]
    assert [advantages[n] for n in (2, 4, 5, 6)] == [[0.0] * 3] * 4


def test_verl_rewards_gold_alone_and_leaves_out_the_unscored(
    reviews: ReviewDatabase, url: str, lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERL_USE_EXTERNAL_MODULES", "mergemill_client.adapters.verl")
    made = run(install_trainers(tmp_path), programs.VERL, reviews, url, lost, tmp_path)
    assert made["found"] == expect_rewards(reviews)
    assert (made["is_nan"], made["raised"]) == (True, "UnscoredError")
    check_advantages(made)
    assert [sum(row) for row in made["mask"]] == [3, 3, 0, 3, 0, 0, 0]


def test_skyrl_rewards_gold_alone_and_leaves_out_the_unscored(
    reviews: ReviewDatabase, url: str, lost: str, tmp_path: Path
) -> None:
    made = run(install_trainers(tmp_path), programs.SKYRL, reviews, url, lost, tmp_path)
    assert made["found"] == expect_rewards(reviews)
    assert (made["is_nan"], made["raised"]) == (True, "UnscoredError")
    check_advantages(made)


def test_slime_rewards_gold_alone_and_leaves_out_the_unscored(
    reviews: ReviewDatabase, url: str, lost: str, tmp_path: Path
) -> None:
    made = run(install_trainers(tmp_path), programs.SLIME, reviews, url, lost, tmp_path, fetch_slime())
    assert made["found"] == expect_rewards(reviews)
    assert (made["is_nan"], made["removed"]) == (True, [False, False, True])
    assert made["shown"] == [1.0, 0.0, 0.5]
    assert made["trained"][0] == pytest.approx(0.5**0.5, abs=1e-4)
    assert made["trained"][1:] == [-made["trained"][0], 0.0]


def test_nemo_gym_rewards_gold_alone_and_fails_the_unscored(
    reviews: ReviewDatabase, url: str, lost: str, tmp_path: Path
) -> None:
    command = install("nemo-gym==0.4.0", find_newer_python())
    made = run(command, programs.NEMO_GYM, reviews, url, lost, tmp_path)
    assert made["found"] == expect_rewards(reviews)
    assert made["status"] == 503


def test_openenv_rewards_gold_alone_and_gives_the_unscored_null(
    reviews: ReviewDatabase, url: str, lost: str, tmp_path: Path
) -> None:
    command = install("openenv-core==0.3.0", sys.executable)
    made = run(command, programs.OPENENV, reviews, url, lost, tmp_path)
    assert made["found"] == expect_rewards(reviews)
    assert (made["unscored"], made["error"]) == (None, "the container was lost")


def test_trl_trains_on_gold_and_not_on_the_unscored(
    reviews: ReviewDatabase, url: str, lost: str, tmp_path: Path
) -> None:
    command = install("trl==1.16.0", find_newer_python(), "torch==2.9.1", "transformers==5.23.0", "datasets==5.2.0")
    run_command(command, "python", "-c", TOKENIZER, tmp_path / "tokenizer", cwd=tmp_path)
    made = run(command, programs.TRL, reviews, url, lost, tmp_path)
    assert made["found"] == {reviews.tasks[0]: [1.0, 0.0]}
    assert (made["moved"], made["logged"]) == (True, [0.5])
    assert (made["lost"], made["moved_without"]) == ([None] * 4, False)


def test_verifiers_loads_the_tasks_of_a_server(reviews: ReviewDatabase, url: str, lost: str, tmp_path: Path) -> None:
    made = run(install("verifiers==0.4.0", sys.executable), programs.VERIFIERS, reviews, url, lost, tmp_path)
    assert len(made["tasks"]) == 2
    assert {tuple(task[1:]) for task in made["tasks"]} == {(False, "review")}
