"""Imported rows are tasks at once, as they were published, whether their repositories can be cloned or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tenacity import wait_none

from backends.clones import CloneStore
from benchmarks.foreign_import import make_rows
from core.config import Settings
from core.errors import Transient
from core.settings.group import replace_values
from mergemill.bundles.foreign_import import import_rows
from mergemill.execution.services import make_services
from miner.instances import MAX_UNREACHABLE, PublishedClones
from tests.cli import CommandResult, run_mergemill
from tests.helpers import TinyRepo

N_FAR, N_REPOSITORIES = 30, 6


def run(folder: Path, *words: str, db: str = "m.db") -> CommandResult:
    """Run a command to which no forge answers, wherever the tests run."""
    return run_mergemill(*words, cwd=folder, MERGEMILL_DB=f"sqlite:///{folder}/{db}", https_proxy="http://127.0.0.1:9")


def make_row(folder: Path) -> dict[str, Any]:
    """Return a row whose repository has a clone in the folder `clones`."""
    repo = TinyRepo(folder / "clones" / "acme__widget")
    base = repo.commit("Begin", {"pkg.py": "a = 1\n", "tests/test_pkg.py": "import pkg\n"})
    repo.commit(
        "Fix", {"pkg.py": "a = 2\n", "tests/test_pkg.py": "import pkg\n\n\ndef test_a():\n    assert pkg.a == 2\n"}
    )
    return {
        "instance_id": "acme__widget-1",
        "repo": "acme/widget",
        "base_commit": base,
        "patch": repo.git("diff", base, "--", "pkg.py") + "\n",
        "test_patch": repo.git("diff", base, "--", "tests") + "\n",
        "problem_statement": "The gadget is one and should be two, by its name.",
        "FAIL_TO_PASS": "['tests/test_pkg.py::test_a']",
        "created_at": "2024-03-01T10:00:00Z",
    }


def test_rows_stand_in_the_database_without_a_forge(tmp_path: Path) -> None:
    rows = [*make_rows(N_FAR, N_REPOSITORIES), make_row(tmp_path)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("bundle", "import", "rows.jsonl", "--format", "swebench", "--clones", "clones", "--json")
    done = run(tmp_path, *words)
    assert done.exit_code == 0, done.stderr
    waiting = {line["repo"]: line["rows"] for line in done.lines if line.get("event") == "waiting"}
    assert (len(waiting), sum(waiting.values())) == (N_REPOSITORIES, N_FAR)

    listed = {line["name"]: line for line in run(tmp_path, "tasks", "list", "--json").lines}
    assert set(listed) == {row["instance_id"] for row in rows}
    assert {line["status"] for line in listed.values()} == {"imported"}
    assert (listed["owner1__project1-1"]["n_fail_to_pass"], listed["owner1__project1-1"]["n_pass_to_pass"]) == (1, 20)
    assert [line["name"] for line in run(tmp_path, "tasks", "search", "gadget", "--json").lines] == ["acme__widget-1"]
    why = run(tmp_path, "why", "owner1__project1-1", "--json").json
    assert [(event["stage"], event["reason"]) for event in why["events"]] == [("mine", "awaits-clone")]
    assert "no clone of owner1/project1" in why["events"][0]["detail"]

    refused = run(tmp_path, "grade", "owner1__project1-1", "--noop")
    assert (refused.exit_code, len(refused.stderr.splitlines())) == (3, 1)
    assert "is imported and was not verified (mergemill run instances:" in refused.stderr
    harbor = run(tmp_path, "export", "--format", "harbor", "--status", "imported", "--out", "harbor")
    assert "harbor can carry none of the tasks: tasks as they were published" in harbor.stderr

    exported = run(tmp_path, "export", "--format", "swebench", "--status", "imported", "--out", "bundle")
    assert exported.exit_code == 0, exported.stderr
    lines = (tmp_path / "bundle" / "tasks.jsonl").read_text().splitlines()
    again = {row["instance_id"]: row for row in map(json.loads, lines)}
    for row in rows[:-1]:
        fields = {name: value for name, value in row.items() if name != "created_at"}
        assert again[row["instance_id"]] | fields == again[row["instance_id"]]
    assert again["acme__widget-1"]["patch"].strip() == rows[-1]["patch"].strip()
    assert json.loads(again["acme__widget-1"]["FAIL_TO_PASS"]) == ["tests/test_pkg.py::test_a"]
    assert run(tmp_path, "bundle", "verify", "bundle").exit_code == 0
    other = run(tmp_path, "bundle", "import", "bundle", "--store", "other", db="other.db")
    assert other.exit_code == 0, other.stderr
    counted = run(tmp_path, "tasks", "stats", "--json", db="other.db").json
    assert counted["status"] == {"imported": N_FAR + 1}


def test_no_forge_is_asked_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    def fail(_: CloneStore, url: str, __: Path) -> None:
        asked.append(url)
        raise Transient(f"cannot reach {url}")

    monkeypatch.setattr(CloneStore, "_clone", fail)
    monkeypatch.setattr("backends.clones.wait_exponential", lambda **_: wait_none())
    settings = replace_values(Settings(), {"store": tmp_path / "store", "clones": tmp_path / "clones"})
    clones = PublishedClones(make_services(settings, engine=False))
    make_row(tmp_path)
    for number in range(20):
        with pytest.raises(Transient):
            clones.open(f"far/away-{number % 10}")
    assert len(set(asked)) == MAX_UNREACHABLE
    assert clones.open("acme/widget").has_commit("HEAD")

    short = [row | {"base_commit": row["base_commit"][:10]} for row in make_rows(30, 10)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in short))
    results = list(import_rows(tmp_path / "rows.jsonl", "swebench", settings))
    assert all(result.waits and not result.new for result in results)
