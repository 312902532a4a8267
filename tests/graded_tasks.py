"""Databases of tasks to grade: reviews, which need no engine, and a bug fix, which does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from core.config import Settings
from mergemill.grading.grading import TaskGrader
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import TaskFilters
from taskdb.store import Store
from tests.cli import WITH_KEPT_RUNS, WITHOUT_CONTROLS, run_mergemill
from tests.history import make_history
from tests.sample import make_sample
from tests.taskdb.lineages import make_url

BUGFIX = "ada__greet-3.bugfix"
NO_FINDINGS = json.dumps({"findings": []})


@dataclass(frozen=True)
class GradedTasks:
    """Folder of a database with tasks. `gold`: task -> the submission that earns 1."""

    folder: Path
    gold: dict[str, str]

    @property
    def settings(self) -> Settings:
        """Settings that name the database."""
        return Settings(db=make_url(self.folder), store=self.folder / "mergemill-store")

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks."""
        return sorted(self.gold)


def make_reviews(folder: Path, changes: int = 3) -> GradedTasks:
    """Make a database of review tasks from a small repository in a folder."""
    make_history(folder / "ada__sums", changes)
    done = run_mergemill("run", "git:ada__sums", "--kind", "review", "--db", make_url(folder), cwd=folder)
    assert done.exit_code == 0, done.stderr
    empty = GradedTasks(folder, {})
    with Store.open(empty.settings.storage.db) as store:
        grader = TaskGrader(store, empty.settings)
        names = [row["name"] for row in queries.list_tasks(store, TaskFilters())]
        gold = {name: grader.make_gold(grader.find_task(name, "review")).content.decode() for name in names}
    return GradedTasks(folder, gold)


def make_bugfix(folder: Path) -> GradedTasks:
    """Make a database with one certified bug fix, BUGFIX, in a folder; needs an engine."""
    make_sample(folder / "ada" / "greet")
    database = GradedTasks(folder / "ada", {})
    words = ("--db", database.settings.storage.db)
    variables = WITHOUT_CONTROLS | WITH_KEPT_RUNS
    done = run_mergemill("run", "git:greet", "--limit", "1", *words, cwd=database.folder, **variables)
    assert done.exit_code == 0, done.stderr
    shown = run_mergemill("tasks", "show", BUGFIX, "--json", *words, cwd=database.folder).json
    return GradedTasks(database.folder, {BUGFIX: shown["patch"]})
