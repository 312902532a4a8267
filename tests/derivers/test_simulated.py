"""Tasks whose tests a model plays: marked, graded by the same play, and never certified."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.git import Repository
from backends.llm.client import ChatModel
from backends.services import Services
from derivers.base import Refusal
from derivers.simulated import simulated
from taskdb.lineage import Lineage
from taskdb.records import Candidate, FailureKind, Rejection, Task
from tests.boxes import make_services
from tests.helpers import TinyRepo
from tests.llm.conftest import client, server
from tests.llm.server import ModelServer, Says
from tests.verifiers.shop import make_shop
from verifiers.certify import certify
from verifiers.rewards import grade

__all__ = ["client", "server"]

Client = Callable[..., ChatModel]
FILE = "tests/test_shop.py"


def unbuilt(repo: TinyRepo, services: Services) -> Lineage:
    """The shop's fix as a candidate for which there is no environment."""
    base, merge = make_shop(repo)
    gold, tests = (
        Repository(repo.path).git("diff-tree", "-p", "--binary", "--full-index", base, merge, "--", path)
        for path in ("shop/__init__.py", FILE)
    )
    candidate = Candidate(
        parent="0" * 64, source=f"git:{repo.path}", repo="ada/greet", name="ada__greet-1", language="python",
        base_commit=base, merge_commit=merge, created_at="2024-03-01T12:00:00+00:00", version="1.0",
        problem_statement="The first price is missing.", hints="", license="MIT",
        gold_patch=services.artifacts.put(gold), test_patch=services.artifacts.put(tests),
        gold_files=("shop/__init__.py",), test_files=(FILE,), gold_lines=2, test_lines=1,
    )  # fmt: skip
    return Lineage(candidate=candidate)


def reads(request: dict[str, Any]) -> Says:
    """An honest player: it looks whether the program adds up all prices."""
    right = "return sum(prices)\n" in request["messages"][1]["content"]
    ends = {"test_nothing_costs_nothing": "passed", "test_one": "passed" if right else "assertion", "test_two": "error"}
    tests = [{"test": f"{FILE}::{name}", "ends": end, "because": "0 != 5"} for name, end in ends.items()]
    return Says(text=json.dumps({"tests": tests}))


def make(tmp_path: Path, client: Client) -> tuple[Services, TinyRepo]:
    return replace(make_services(tmp_path), model=client(store=tmp_path / "store")), TinyRepo(tmp_path / "repo")


def test_a_model_plays_the_runs_and_the_task_says_so(tmp_path: Path, server: ModelServer, client: Client) -> None:
    services, repo = make(tmp_path, client)
    server.script = reads
    lineage = unbuilt(repo, services)
    made = simulated(lineage, services)
    assert isinstance(made, list), made
    (task,) = made
    assert (task.environment, task.image, task.plan, task.eval_script) == ("simulated", "", None, None)
    assert [*task.FAIL_TO_PASS] == [(f"{FILE}::test_one", FailureKind.ASSERTION)]
    assert [*task.PASS_TO_PASS] == [f"{FILE}::test_nothing_costs_nothing"]
    assert task.parent == lineage.candidate.id
    rejection = certify(lineage.then(task), services)
    assert isinstance(rejection, Rejection)
    assert rejection.reason == "simulated"
    assert worth(task, services) == {"gold": 1.0, "nothing": 0.0, "a patch of tests": 0.0, "no patch": 0.0}
    without = grade(task, replace(services, model=None), b"")
    assert (without.value, without.infrastructure_error) == (None, "no model takes part")


def worth(task: Task, services: Services) -> dict[str, float | None]:
    get = services.artifacts.get
    submissions = {
        "gold": get(task.gold_patch), "nothing": b"", "a patch of tests": get(task.test_patch), "no patch": b"no patch",
    }  # fmt: skip
    return {name: grade(task, services, patch).value for name, patch in submissions.items()}


def test_plays_that_disagree_say_nothing(tmp_path: Path, server: ModelServer, client: Client) -> None:
    services, repo = make(tmp_path, client)
    server.script = lambda request: reads(request) if len(server.asked) % 2 else says("passed")
    assert refused(unbuilt(repo, services), services) == "no-fail-to-pass"


@pytest.mark.parametrize("test", [f"{FILE}::test_invented", "tests/test_other.py::test_one", FILE])
def test_a_test_that_stands_nowhere_voids_the_play(
    test: str, tmp_path: Path, server: ModelServer, client: Client
) -> None:
    services, repo = make(tmp_path, client)
    server.says(says("passed", test))
    assert refused(unbuilt(repo, services), services) == "not-played"
    assert len(server.asked) == 2, "it is told once what is wrong"


def test_without_a_model_there_is_none(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    assert refused(unbuilt(TinyRepo(tmp_path / "repo"), services), services) == "no-model"


def says(ends: str, test: str = f"{FILE}::test_one") -> Says:
    return Says(text=json.dumps({"tests": [{"test": test, "ends": ends, "because": "it says so"}]}))


def refused(lineage: Lineage, services: Services) -> str:
    found = simulated(lineage, services)
    assert isinstance(found, Refusal), found
    return str(found.reason)
