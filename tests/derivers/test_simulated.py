"""Tasks whose test outcomes a model predicts: marked, graded by simulation, never certified."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.git import GitRepository
from backends.llm.client import ChatModel
from backends.services import Services
from derivers.base import KindRejection
from derivers.simulated import derive_simulated
from taskdb.records import Candidate, FailureKind, Rejection, Task
from taskdb.records.lineage import Lineage
from tests.backends.llm.conftest import client, server
from tests.backends.llm.server import ModelServer, ScriptedAnswer
from tests.containers import make_services
from tests.helpers import TinyRepo
from tests.verifiers.shop import make_shop
from verifiers.certify import certify
from verifiers.rewards import grade

__all__ = ["client", "server"]

Client = Callable[..., ChatModel]
FILE = "tests/test_shop.py"


def create_lineage(repo: TinyRepo, services: Services) -> Lineage:
    """Return the shop's fix as a candidate without an environment."""
    base, merge = make_shop(repo)
    gold, tests = (
        GitRepository(repo.path).run_git("diff-tree", "-p", "--binary", "--full-index", base, merge, "--", path)
        for path in ("shop/__init__.py", FILE)
    )
    candidate = Candidate(
        parent="0" * 64,
        source=f"git:{repo.path}",
        repo="ada/greet",
        name="ada__greet-1",
        language="python",
        base_commit=base,
        merge_commit=merge,
        created_at="2024-03-01T12:00:00+00:00",
        version="1.0",
        problem_statement="The first price is missing.",
        hints="",
        license="MIT",
        gold_patch=services.artifacts.put(gold),
        test_patch=services.artifacts.put(tests),
        gold_files=("shop/__init__.py",),
        test_files=(FILE,),
        gold_lines=2,
        test_lines=1,
    )
    return Lineage(candidate=candidate)


def predict(request: Mapping[str, Any]) -> ScriptedAnswer:
    """Return the answer of a correct model: it checks whether the program sums all prices."""
    right = "return sum(prices)\n" in request["messages"][1]["content"]
    ends = {"test_nothing_costs_nothing": "passed", "test_one": "passed" if right else "assertion", "test_two": "error"}
    tests = [{"test": f"{FILE}::{name}", "outcome": end, "reason": "0 != 5"} for name, end in ends.items()]
    return ScriptedAnswer(text=json.dumps({"tests": tests}))


def make(tmp_path: Path, client: Client) -> tuple[Services, TinyRepo]:
    return replace(make_services(tmp_path), model=client(store=tmp_path / "store")), TinyRepo(tmp_path / "repo")


def test_a_model_predicts_the_runs_and_the_task_is_marked_as_simulated(
    tmp_path: Path, server: ModelServer, client: Client
) -> None:
    services, repo = make(tmp_path, client)
    server.script = predict
    lineage = create_lineage(repo, services)
    made = derive_simulated(lineage, services)
    assert isinstance(made, list), made
    (task,) = made
    assert (task.environment, task.image, task.plan, task.eval_script) == ("simulated", "", None, None)
    assert [*task.FAIL_TO_PASS] == [(f"{FILE}::test_one", FailureKind.ASSERTION)]
    assert [*task.PASS_TO_PASS] == [f"{FILE}::test_nothing_costs_nothing"]
    assert task.parent == lineage.candidate.id
    rejection = certify(lineage.with_record(task), services)
    assert isinstance(rejection, Rejection)
    assert rejection.reason == "simulated"
    assert grade_submissions(task, services) == {"gold": 1.0, "nothing": 0.0, "a patch of tests": 0.0, "no patch": 0.0}
    without = grade(task, replace(services, model=None), b"")
    assert (without.value, without.infrastructure_error) == (None, "no model is configured")


def grade_submissions(task: Task, services: Services) -> dict[str, float | None]:
    get = services.artifacts.get
    submissions = {
        "gold": get(task.gold_patch),
        "nothing": b"",
        "a patch of tests": get(task.test_patch),
        "no patch": b"no patch",
    }
    return {name: grade(task, services, patch).value for name, patch in submissions.items()}


def test_tests_with_different_predictions_are_excluded(tmp_path: Path, server: ModelServer, client: Client) -> None:
    services, repo = make(tmp_path, client)
    server.script = lambda request: predict(request) if len(server.requests) % 2 else make_answer("passed")
    assert get_rejection(create_lineage(repo, services), services) == "no-fail-to-pass"


@pytest.mark.parametrize("test", [f"{FILE}::test_invented", "tests/test_other.py::test_one", FILE])
def test_an_answer_with_an_unknown_test_is_rejected(
    test: str, tmp_path: Path, server: ModelServer, client: Client
) -> None:
    services, repo = make(tmp_path, client)
    server.set_answers(make_answer("passed", test))
    assert get_rejection(create_lineage(repo, services), services) == "not-simulated"
    assert len(server.requests) == 2, "it is told once what is wrong"


def test_without_a_model_there_is_no_simulated_task(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    assert get_rejection(create_lineage(TinyRepo(tmp_path / "repo"), services), services) == "no-model"


def make_answer(ends: str, test: str = f"{FILE}::test_one") -> ScriptedAnswer:
    return ScriptedAnswer(text=json.dumps({"tests": [{"test": test, "outcome": ends, "reason": "predicted"}]}))


def get_rejection(lineage: Lineage, services: Services) -> str:
    derived = derive_simulated(lineage, services)
    assert isinstance(derived, KindRejection), derived
    return str(derived.reason)
