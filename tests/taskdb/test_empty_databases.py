"""New databases in which nothing was stored are removed after a failure, and no others."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from core.errors import InputError
from taskdb.records import PullRequest
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.helpers import TinyRepo
from tests.records import make_pull_request
from tests.taskdb.lineages import make_url


def fail(url: str, work: Callable[[Store], object] = lambda _: None) -> None:
    """Open a database, work with it, and fail."""
    with suppress(InputError), Store.open(url) as store:
        work(store)
        raise InputError("no such source")


def list_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("m.db"))


def test_a_failure_leaves_no_new_database(tmp_path: Path) -> None:
    fail(make_url(tmp_path))
    assert list_files(tmp_path) == []


def test_a_new_database_stays_with_a_record_or_without_a_failure(tmp_path: Path) -> None:
    fail(make_url(tmp_path), lambda store: store.add(make_pull_request()))
    with Store.open(make_url(tmp_path)) as store:
        assert len(store.get_many(PullRequest, [make_pull_request().id])) == 1
    (tmp_path / "other").mkdir()
    Store.open(make_url(tmp_path / "other")).close()
    fail(make_url(tmp_path / "other"))  # it is not this command's
    assert list_files(tmp_path / "other") == ["m.db"]


def test_a_new_database_that_another_process_has_open_stays(tmp_path: Path) -> None:
    others = list[Store]()

    def open_other(_: Store) -> None:
        others.append(Store.open(make_url(tmp_path)))
        others[0].load_all(PullRequest)

    fail(make_url(tmp_path), open_other)
    with others[0] as other:
        other.add(make_pull_request())
    with Store.open(make_url(tmp_path), create=False) as store:
        assert len(store.load_all(PullRequest)) == 1


def test_a_process_that_opens_a_database_during_its_removal_writes_nothing_into_the_void(tmp_path: Path) -> None:
    store = Store.open(make_url(tmp_path))
    with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as late:  # has read nothing yet
        store.discard_if_empty()
        store.close()
        assert list_files(tmp_path) == []
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            late.execute("PRAGMA journal_mode=WAL")


SOURCES = ("git:nowhere", "head:nowhere", "instances:nowhere.jsonl", "instances:.", "git:folder")


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_that_does_not_exist_leaves_no_database(source: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    done = run_mergemill("mine", source, cwd=tmp_path)
    assert done.exit_code == 3, done.stderr
    assert not list(tmp_path.glob("mergemill.db*"))


def test_a_repository_without_changes_leaves_a_database(tmp_path: Path) -> None:
    TinyRepo(tmp_path / "greet").commit("Begin", {"greet.py": "x = 1\n"})
    assert run_mergemill("mine", "git:greet", cwd=tmp_path).exit_code == 0
    assert run_mergemill("mine", "git:nowhere", cwd=tmp_path).exit_code == 3
    assert (tmp_path / "mergemill.db").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("bench", "import", "nowhere.json", "--format", "swe-prbench"),
        ("bench", "import", "empty.json", "--format", "swe-prbench"),
        ("bundle", "import", "nowhere"),
        ("worlds", "import", "nowhere.json"),
        ("trajectories", "import", "nowhere.json"),
        ("worlds", "make", "nowhere.json"),
        ("build", "git:nowhere"),
        ("mine", "@nowhere"),
    ],
)
def test_a_command_without_its_input_leaves_no_database(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("[]")
    done = run_mergemill(*command, cwd=tmp_path)
    assert done.exit_code in (2, 3), done.stderr
    assert not list(tmp_path.glob("mergemill.db*"))
