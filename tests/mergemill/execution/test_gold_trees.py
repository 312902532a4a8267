"""Gold trees: which tasks share gradings of gold, and which have all of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.git import GitRepository
from builders.layers import LAYER_LABEL
from core.config import Settings
from core.settings.group import replace_values
from derivers.injected.patches import build_injection_patches
from mergemill.execution.gold_trees import compute_gold_key, select_gradings
from mutation import build_patch
from taskdb.artifacts import Artifacts
from taskdb.records import FailureKind, Task
from taskdb.records.lineage import GoldGradings, RepositoryHistory
from tests.exporters.tasks import BASE, TEST, WORDS, make_task
from tests.helpers import TinyRepo
from tests.mergemill.execution.test_environment_families import LabelledImages

LAYERS = ("base", "packages", "tree")
GRADINGS = GoldGradings(task="0" * 64, name="first", values=(1.0, 1.0), conditions=("at noon", "at night"))


@dataclass
class InjectedTasks:
    """Tasks with bugs in the same tree."""

    services: Any
    repo: TinyRepo
    task: Task

    def make(self, bug: str, *hidden: str) -> Task:
        """Return a task. `bug`: content of the file with the bug; `hidden`: test files that the agent does not see."""
        patch = build_patch("words.py", WORDS.encode(), bug.encode())
        patches = build_injection_patches(GitRepository(self.repo.path), self.task.base_commit, [patch], hidden)
        put = self.services.artifacts.put
        changes: dict[str, Any] = {
            "setup_patch": put(patches.setup_patch),
            "gold_patch": put(patches.gold_patch),
            "test_patch": put(patches.test_patch),
            "FAIL_TO_PASS": (("tests/test_words.py::test_two", FailureKind.ASSERTION),),
            "PASS_TO_PASS": ("tests/test_more.py::test_three",),
        }
        return Task(**self.task.model_dump() | changes)

    def compute(self, task: Task, *, family: str = "family", **services: Any) -> str:
        """Return the key of a task. `services`: services in place of those of the tasks."""
        typed: Any = SimpleNamespace(**vars(self.services) | services)
        return compute_gold_key(task, typed, family)


@pytest.fixture
def tasks(tmp_path: Path) -> InjectedTasks:
    services: Any = SimpleNamespace(
        artifacts=Artifacts(tmp_path / "artifacts"),
        images=LabelledImages(labels={LAYER_LABEL: "source"}, layers=LAYERS),
        settings=Settings(),
    )
    task = make_task(services, tmp_path)
    repo = TinyRepo(tmp_path / task.name.partition(".")[0])
    base = repo.commit("More", {**BASE, "tests/test_more.py": TEST.replace("two", "three")})
    services.clones = SimpleNamespace(open_tree=lambda *_: GitRepository(repo.path))
    return InjectedTasks(services, repo, task.model_copy(update={"base_commit": base}))


def test_tasks_with_other_bugs_and_hidden_files_share_a_gold_tree(tasks: InjectedTasks) -> None:
    first = tasks.make(WORDS.replace("len", "max"), "tests/test_words.py")
    second = tasks.make(WORDS.replace("' '", "','"), "tests/test_words.py", "tests/test_more.py")
    assert first.setup_patch != second.setup_patch
    assert tasks.compute(first) == tasks.compute(second) != ""
    swapped = second.model_copy(
        update={
            "FAIL_TO_PASS": (("tests/test_more.py::test_three", FailureKind.ERROR),),
            "PASS_TO_PASS": ("tests/test_words.py::test_two",),
        }
    )
    assert tasks.compute(swapped) == tasks.compute(first), "gold has to pass the same tests"
    image = LabelledImages(tasks.services.images.labels, "sha256:2", (*LAYERS[:2], "another tree"))
    assert tasks.compute(first, images=image) == tasks.compute(first)


def test_other_tests_trees_packages_and_conditions_are_not_shared(tasks: InjectedTasks) -> None:
    task = tasks.make(WORDS.replace("len", "max"), "tests/test_words.py")
    settings = replace_values(Settings(), {"certify_runs": 5})
    image = LabelledImages(tasks.services.images.labels, layers=("base", "other packages", "tree"))
    rest = tasks.services.artifacts.put(b"")
    keys = [
        tasks.compute(task),
        tasks.compute(task, family="another"),
        tasks.compute(task, images=image),
        tasks.compute(task, settings=settings),
        tasks.compute(task.model_copy(update={"PASS_TO_PASS": ()})),
        tasks.compute(task.model_copy(update={"gold_patch": rest}), family="family"),
    ]
    assert len(set(keys)) == len(keys)
    assert all(keys)


def test_a_task_of_which_too_little_is_known_shares_nothing(tasks: InjectedTasks) -> None:
    task = tasks.make(WORDS.replace("len", "max"), "tests/test_words.py")
    assert tasks.compute(task, family="") == ""
    assert tasks.compute(task, images=LabelledImages(layers=LAYERS)) == "", "its packages are in no layer of their own"
    damaged = tasks.services.artifacts.put(WORDS.encode())
    assert tasks.compute(task.model_copy(update={"gold_patch": damaged})) == ""


def test_gradings_of_another_task_count_where_no_test_was_ever_flaky(tasks: InjectedTasks) -> None:
    steady = RepositoryHistory(gold_gradings={"key": GRADINGS, "": GRADINGS}, is_steady=True)
    assert select_gradings(tasks.task, "key", steady, 0.0) == GRADINGS
    assert select_gradings(tasks.task, "other", steady, 0.0) is None
    assert select_gradings(tasks.task, "", steady, 0.0) is None
    assert select_gradings(tasks.task, "key", steady, 1.0) is None, "it was drawn"
    assert select_gradings(tasks.task, "key", steady, None) is None, "all tasks have their own"
    flaky = RepositoryHistory(gold_gradings={"key": GRADINGS})
    assert select_gradings(tasks.task, "key", flaky, 0.0) is None
    own = RepositoryHistory(
        gold_gradings={"key": GoldGradings(task=tasks.task.id, name="", values=(), conditions=())}, is_steady=True
    )
    assert select_gradings(tasks.task, "key", own, 0.0) is None
