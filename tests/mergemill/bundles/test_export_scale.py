"""`mergemill export` of more tasks than memory holds: batches from the database, and progress."""

from __future__ import annotations

import gc
import io
import logging
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

import exporters
from backends.services import Services
from core.config import Settings
from exporters.export_format import ExportFormat
from exporters.item import ExportItem
from mergemill.bundles import export as bundles
from mergemill.bundles.families import FamilyIndex
from mergemill.execution.progress import CountProgress, LiveCountProgress, MessageCountProgress, make_count_progress
from mergemill.execution.services import make_services
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Kind, MirrorOrigin, Task, WrittenTests
from taskdb.store import Store
from tests.exporters.bundles import add_tasks
from tests.exporters.tasks import make_certificate

NUMBER = 9
BATCH = 2


def make_database(folder: Path, n_tasks: int) -> Settings:
    """Return settings of a new database with certified tasks."""
    settings = Settings(db=f"sqlite:///{folder}/m.db", store=folder / "store")
    with Store.open(settings.storage.db) as store:
        add_tasks(store, make_services(settings, engine=False), folder, count=n_tasks)
    return settings


def count_tasks_in_memory() -> int:
    gc.collect()
    return sum(isinstance(item, Task) for item in gc.get_objects())


def test_tasks_are_read_in_batches_and_dropped_when_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_database(tmp_path, NUMBER)
    counts: list[int] = []
    begun = count_tasks_in_memory()

    def write(items: Iterable[ExportItem], folder: Path, _: Services) -> None:
        for item in items:
            (folder / item.folder).write_text(item.task.repo)
            counts.append(count_tasks_in_memory() - begun)

    fake = ExportFormat(write=write, explain_exclusion=lambda _: None)
    monkeypatch.setitem(exporters.FORMATS, "counting", fake)  # type: ignore[arg-type] # a dict
    monkeypatch.setattr(bundles, "BATCH", BATCH)
    [result] = bundles.export_splits("counting", tmp_path / "out", None, TaskFilters(), settings)
    assert len(result.bundle.tasks) == len(counts) == NUMBER
    assert max(counts) <= BATCH + 1


def test_splits_of_a_streamed_export_keep_families_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repos, shares = [f"ada/r{number}" for number in range(8)], [0.5, 0.5]
    sides = {repo: FamilyIndex().choose_side(repo, shares) for repo in repos}
    settings = Settings(db=f"sqlite:///{tmp_path}/m.db", store=tmp_path / "store")
    with Store.open(settings.storage.db) as store:
        tasks = add_tasks(store, make_services(settings, engine=False), tmp_path, count=2 * len(repos), repos=repos)
        exported = tasks[0]
        other = next(task for task in tasks if sides[task.repo] != sides[exported.repo])
        both = {"kind": Kind.COMBINED, "name": f"{exported.name}.combined", "other_candidates": (other.candidate,)}
        combined = Task(**exported.model_dump() | both)
        store.add(combined, make_certificate(combined))

    def write(items: Iterable[ExportItem], folder: Path, _: Services) -> None:
        (folder / "repos").write_text("".join(f"{item.task.repo}\n" for item in items))

    fake = ExportFormat(write=write, explain_exclusion=lambda _: None)
    monkeypatch.setitem(exporters.FORMATS, "listing", fake)  # type: ignore[arg-type] # a dict
    monkeypatch.setattr(bundles, "BATCH", BATCH)
    splits = ["train=0.5", "test=0.5"]
    results = list(bundles.export_splits("listing", tmp_path / "out", splits, TaskFilters(), settings))
    assert sum(len(result.bundle.tasks) for result in results) == len(tasks) + 1
    train, test = ((tmp_path / "out" / name / "repos").read_text().split() for name in ("train", "test"))
    assert (len(train) + len(test), set(train) & set(test)) == (len(tasks) + 1, set())
    assert {exported.repo, other.repo} <= set(train) or {exported.repo, other.repo} <= set(test)
    unmoved = {repo for repo in repos if repo not in (exported.repo, other.repo)}
    assert set(train) & unmoved == {repo for repo in unmoved if sides[repo] == 0}


def test_a_mirrored_task_is_in_no_split_if_the_change_it_mirrors_is_on_another_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repos, shares = [f"ada/r{number}" for number in range(8)], [0.5, 0.5]
    sides = {repo: FamilyIndex().choose_side(repo, shares) for repo in repos}
    settings = Settings(db=f"sqlite:///{tmp_path}/m.db", store=tmp_path / "store")
    written = WrittenTests(
        patch="", files=(), model="m", prompt="p", attempt=1, transcript="", faults=0, faults_detected=0, variants=0
    )
    with Store.open(settings.storage.db) as store:
        tasks = add_tasks(store, make_services(settings, engine=False), tmp_path, count=2 * len(repos), repos=repos)
        first = tasks[0]
        for name, is_torn in (("whole", False), ("torn", True)):
            other = next(task for task in tasks[1:] if (sides[task.repo] != sides[first.repo]) == is_torn)
            mirror = MirrorOrigin(
                candidate=other.candidate, name=other.name, repo=other.repo, license="MIT", written_tests=written
            )
            fields = {"kind": Kind.MIRRORED, "name": f"{first.name}.{name}", "mirror": mirror}
            mirrored = Task(**first.model_dump() | fields)
            store.add(mirrored, make_certificate(mirrored))

    def write(items: Iterable[ExportItem], folder: Path, _: Services) -> None:
        (folder / "names").write_text("".join(f"{item.task.name}\n" for item in items))

    fake = ExportFormat(write=write, explain_exclusion=lambda _: None)
    monkeypatch.setitem(exporters.FORMATS, "listing", fake)  # type: ignore[arg-type] # a dict
    splits = ["train=0.5", "test=0.5"]
    results = list(bundles.export_splits("listing", tmp_path / "out", splits, TaskFilters(), settings))
    names = {name: (tmp_path / "out" / name / "names").read_text().split() for name in ("train", "test")}
    side = ("train", "test")[sides[first.repo]]
    assert f"{first.name}.whole" in names[side]
    assert f"{first.name}.torn" not in names["train"] + names["test"]
    assert sum((result.excluded for result in results), start=Counter()) == {("mirrored", bundles.TORN): 1}
    assert len(names["train"]) + len(names["test"]) == len(tasks) + 1


def test_the_progress_of_an_export_counts_the_tasks_that_are_written(tmp_path: Path) -> None:
    settings = make_database(tmp_path, 3)
    now, err, made = iter(range(0, 10_000, 20)), io.StringIO(), list[CountProgress]()

    def make_progress(noun: str, total: int) -> CountProgress:
        made.append(MessageCountProgress(noun, total, err, lambda: float(next(now))))
        return made[-1]

    splits = ["train=0.5", "test=0.5"]  # all tasks are of one repository, so one of the two is empty
    report = bundles.export_splits(
        "swebench", tmp_path / "out", splits, TaskFilters(), settings, make_progress=make_progress
    )
    assert [len(result.bundle.tasks) for result in report] == [3]
    assert len(list((tmp_path / "out").iterdir())) == 1
    [progress] = made
    assert (progress.n_finished, progress.total) == (3, 3)
    lines = err.getvalue().splitlines()
    assert lines[0] == "mergemill: 1 min 20 s   2 of 3 tasks   about 40 s left"


@pytest.mark.parametrize(
    ("level", "is_terminal", "kind"),
    [
        (logging.ERROR, True, CountProgress),
        (logging.ERROR, False, CountProgress),
        (logging.WARNING, True, LiveCountProgress),
        (logging.WARNING, False, MessageCountProgress),
    ],
)
def test_progress_suits_standard_error(
    monkeypatch: pytest.MonkeyPatch, level: int, is_terminal: bool, kind: type[CountProgress]
) -> None:
    before = logging.getLogger().level
    monkeypatch.setattr("sys.stderr", io.StringIO())
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    logging.getLogger().setLevel(level)
    try:
        assert type(make_count_progress("task", 3)) is kind
    finally:
        logging.getLogger().setLevel(before)
