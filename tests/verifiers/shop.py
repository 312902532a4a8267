"""A tiny package with one bug, its fix and its hidden tests, for grading submissions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.services import Services
from mergemill.pipeline.kinds import derive
from taskdb.records import Candidate, Environment, Kind, Rejection, Task, Verification
from taskdb.records.lineage import Lineage
from tests.containers import make_lineage, make_services
from tests.helpers import TinyRepo
from tests.shared_folders import copy_shared_folder
from verifiers.verify import verify

SHOP = '''"""Prices."""


def total(prices):
    """Sum of the prices."""
    return sum(prices[1:])


def label(price):
    """A price tag."""
    return "EUR %s" % price
'''
SHOP_RIGHT = SHOP.replace("prices[1:]", "prices")
TESTS = """from shop import label, total


def test_nothing_costs_nothing():
    assert total([]) == 0


def test_label():
    assert label(3) == "EUR 3"
"""
HIDDEN = (
    TESTS
    + """

def test_one():
    assert total([15, 26]) == 41


def test_two():
    expected = 73
    assert total([34, 39]) == expected


class TestMore:
    def test_it_is_a_number(self):
        assert isinstance(total([1]), int)
        assert total([1])
"""
)
PYPROJECT = '[project]\nname = "shop"\nversion = "1.0"\n'


def make_shop(repo: TinyRepo) -> tuple[str, str]:
    """Commit the bug, and its fix with tests; return (base, merge)."""
    base = repo.commit("Start", {"shop/__init__.py": SHOP, "tests/test_shop.py": TESTS, "pyproject.toml": PYPROJECT})
    merge = repo.commit("Count the first price", {"shop/__init__.py": SHOP_RIGHT, "tests/test_shop.py": HIDDEN})
    return base, merge


@dataclass(frozen=True)
class ShopTask:
    """The bug fix, verified and derived. `lineage` ends with its verification."""

    services: Services
    repo: TinyRepo
    base: str
    lineage: Lineage
    task: Task


def open_shop_task(factory: pytest.TempPathFactory, **settings: object) -> ShopTask:
    """Return the task of the bug fix, with a repository and artifacts of its own; it is made once in a test run."""
    folder = copy_shared_folder(factory, "shop-task", _make_shop_task)
    records = json.loads((folder / "records.json").read_text())
    candidate = Candidate.model_validate(records["candidate"])
    lineage = Lineage(
        candidate=candidate,
        environment=Environment.model_validate(records["environment"]),
        verification=Verification.model_validate(records["verification"]),
        kinds=(Kind.BUGFIX,),
    )
    services = make_services(folder, repeats=1, **settings)
    task = Task.model_validate(records["task"])
    return ShopTask(services, TinyRepo(folder / "repo"), candidate.base_commit, lineage, task)


def set_evaluations(task: Task, services: Services, number: int) -> Task:
    """Return the task with another number of evaluations in each grading, all alike."""
    document = json.loads(services.artifacts.get(task.blind_controls or "")) | {"evaluations": number}
    put = services.artifacts.put(json.dumps(document).encode())
    return task.model_copy(update={"blind_controls": put, "evaluations": number})


def _make_shop_task(folder: Path) -> None:
    """Write the task's repository, artifacts and records."""
    services = make_services(folder, repeats=1)
    repo = TinyRepo(folder / "repo")
    lineage = make_lineage(repo, services, *make_shop(repo))
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    made = derive(lineage.with_record(verification), services)
    assert not isinstance(made, Rejection)
    (task,) = made
    records = {
        "candidate": lineage.candidate,
        "environment": lineage.require_environment(),
        "verification": verification,
        "task": task,
    }
    dumped = {name: record.model_dump(mode="json") for name, record in records.items()}
    (folder / "records.json").write_text(json.dumps(dumped))
