"""Tasks outlive the clone that they were mined from, and the folder in which they were made."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.config import Settings
from exporters.manifest import hash_file, list_files
from mergemill.execution.services import make_services
from mergemill.execution.sources import resolve_source
from mergemill.pipeline.base_trees import keep_missing_trees
from taskdb.store import Store
from tests.cli import WITH_KEPT_RUNS, CommandResult, run_mergemill
from tests.helpers import TinyRepo
from tests.sample import make_sample
from tests.taskdb.lineages import add_lineage

NAME = "ada__greet-3.bugfix"


def drop_draws(audited: dict[str, Any]) -> dict[str, Any]:
    """Return an audit without what depends on the tests that were sabotaged in it."""
    probes = [{"name": probe["name"], "value": probe["value"]} for probe in audited["probes"]]
    return audited | {"probes": probes}


def hash_files(folder: Path) -> Mapping[str, str]:
    return {path.as_posix(): hash_file(folder / path) for path in list_files(folder)}


@pytest.mark.docker
def test_tasks_are_exported_graded_and_audited_when_the_clone_is_gone(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    make_sample(home / "ada__greet")
    (home / "work").mkdir()
    made = run_mergemill("run", "git:../ada__greet", "--limit", "1", "--json", cwd=home / "work", **WITH_KEPT_RUNS)
    assert made.lines[-1]["certified"] == 1, made.stderr

    def call(*arguments: str) -> CommandResult:
        variables = {"MERGEMILL_DB": f"sqlite:///{home}/work/mergemill.db", "MERGEMILL_STRENGTH_RUNS": "2"}
        return run_mergemill(*arguments, cwd=elsewhere, **variables)

    assert call("tasks", "show", NAME, "--json").json["source"] == f"git:{home}/ada__greet"
    audited = call("audit", NAME, "--json").json  # first, since bundles name the result of the newest audit
    before = {}
    for form in ("swebench", "harbor"):
        assert call("export", "--format", form, "--out", f"{tmp_path}/before-{form}").exit_code == 0
        before[form] = hash_files(tmp_path / f"before-{form}")
    shutil.rmtree(home / "ada__greet")
    for form in ("swebench", "harbor"):
        done = call("export", "--format", form, "--out", f"{tmp_path}/after-{form}")
        assert done.exit_code == 0, done.stderr
        assert hash_files(tmp_path / f"after-{form}") == before[form]
    assert drop_draws(call("audit", NAME, "--json").json) == drop_draws(audited)
    assert call("grade", NAME, "--gold", "--json").json["value"] == 1.0
    assert call("grade", NAME, "--noop", "--json").json["value"] == 0.0
    again = call("run", f"git:{home}/ada__greet")
    assert again.exit_code == 3
    assert "there is no such folder" in again.stderr
    assert "Traceback" not in again.stderr


def test_trees_of_an_existing_database_are_kept_as_soon_as_there_is_a_clone(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "greet")
    base = repo.commit("One", {"a.py": "x = 1\n"})
    settings = Settings(db=f"sqlite:///{tmp_path}/mergemill.db", store=tmp_path / "store")
    services = make_services(settings, engine=False)
    source = f"git:{repo.path}"
    with Store.open(settings.storage.db) as store:
        add_lineage(store, 1, source=source, base_commit=base)
        add_lineage(store, 2, source=source, base_commit="0" * 40)
        assert keep_missing_trees(store, services, ["git:other"]) == 0
        assert keep_missing_trees(store, services, [source]) == 1
        assert keep_missing_trees(store, services, [source]) == 0
    assert services.clones.trees.find("ada/greet", base) is not None


def test_relative_sources_of_an_existing_database_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(db=f"sqlite:///{tmp_path}/mergemill.db", store=tmp_path / "store")
    monkeypatch.chdir(tmp_path)
    with Store.open(settings.storage.db) as store:
        add_lineage(store, 1)
        assert resolve_source("git:greet", settings.storage, store) == "git:greet"
        assert resolve_source("git:other", settings.storage, store) == f"git:{tmp_path}/other"
        assert resolve_source("pypi:attrs", settings.storage, store) == "pypi:attrs"
        add_lineage(store, 2, source=f"git:{tmp_path}/greet")
        assert resolve_source("git:greet", settings.storage, store) == f"git:{tmp_path}/greet"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("git:../x", "git:{parent}/x"),
        ("git:.", "git:{here}"),
        ("git:sub/../link", "git:{here}/link"),
        ("git:link/../y", "git:{target_parent}/y"),
        ("instances:rows.jsonl", "instances:{here}/rows.jsonl"),
        ("git:https://forge.example/a/b.git", "git:https://forge.example/a/b.git"),
        ("git:user@forge.example:a/b", "git:user@forge.example:a/b"),
    ],
)
def test_sources_do_not_depend_on_the_current_folder(
    word: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, target = tmp_path / "here", tmp_path / "there" / "deep"
    for folder in (here / "sub", target):
        folder.mkdir(parents=True)
    (here / "link").symlink_to(target)
    monkeypatch.chdir(here)
    settings = Settings(db=f"sqlite:///{tmp_path}/mergemill.db", store=tmp_path / "store")
    with Store.open(settings.storage.db) as store:
        source = resolve_source(word, settings.storage, store)
    assert source == expected.format(here=here, parent=tmp_path, target_parent=target.parent)
