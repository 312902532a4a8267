"""`mergemill bundle import --format`: rows of task sets of others become changes."""

from __future__ import annotations

import fcntl
import json
import select
from pathlib import Path

import pytest

from backends.clones import CloneStore
from taskdb.artifacts import Artifacts
from taskdb.records import Candidate
from taskdb.store import Store
from tests.cli import CommandResult, open_mergemill, run_mergemill
from tests.helpers import TinyRepo

START = {"pkg.py": "def one():\n    return 2\n", "tests/test_pkg.py": "from pkg import one\n"}
FIX = {
    "pkg.py": "def one():\n    return 1\n",
    "tests/test_pkg.py": "from pkg import one\n\n\ndef test_one():\n    assert one() == 1\n",
}


@pytest.fixture
def repo(tmp_path: Path) -> TinyRepo:
    """A clone of acme/widget in the folder `clones`."""
    made = TinyRepo(tmp_path / "clones" / "acme__widget")
    made.commit("Begin", START)
    made.commit("Fix", FIX)
    return made


@pytest.fixture
def row(repo: TinyRepo) -> dict[str, object]:
    return {
        "instance_id": "acme__widget-1",
        "repo": "acme/widget",
        "base_commit": repo.git("rev-parse", "HEAD^"),
        "patch": repo.git("diff", "HEAD^", "--", "pkg.py") + "\n",
        "test_patch": repo.git("diff", "HEAD^", "--", "tests") + "\n",
        "problem_statement": "one() is two\n\nIt should return one, as its name says.",
        "FAIL_TO_PASS": ["tests/test_pkg.py::test_one"],
        "PASS_TO_PASS": [],
        "created_at": "2024-03-01T10:00:00Z",
    }


def import_rows(folder: Path, format_name: str, *rows: object, name: str = "rows.jsonl") -> CommandResult:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run_mergemill("bundle", "import", name, "--format", format_name, "--clones", "clones", "--json", cwd=folder)


def load_candidates(folder: Path) -> list[Candidate]:
    with Store.open(f"sqlite:///{folder}/mergemill.db") as store:
        return store.load_all(Candidate)


def test_rows_become_changes_bad_ones_are_named_and_duplicates_fall_together(
    row: dict[str, object], tmp_path: Path
) -> None:
    other_name = row | {"instance_id": "widget-again"}
    other_patch = row | {"patch": str(row["patch"]).replace("return 1", "return 3")}
    done = import_rows(tmp_path, "swe-rebench", row, {"instance_id": "x"}, other_name, other_patch)
    assert done.exit_code == 3
    results = [line for line in done.lines if "place" in line]
    assert [(line["new"], line["duplicate_of"], line["problem"] is None) for line in results] == [
        (True, None, True),
        (False, None, False),
        (False, "acme__widget-1", True),
        (False, None, False),
    ]
    assert "rows.jsonl:2: " in results[1]["problem"]
    assert "another task is named" in results[3]["problem"]
    (candidate,) = load_candidates(tmp_path)
    assert candidate.name == "acme__widget-1"
    again = import_rows(tmp_path, "swe-rebench", row)
    assert (again.exit_code, again.lines[-1]["new"]) == (0, 0)
    multi = {
        "org": "acme",
        "repo": "widget",
        "instance_id": "acme__widget-pr",
        "base": {"sha": row["base_commit"]},
        "title": "one() is two",
        "fix_patch": row["patch"],
        "test_patch": row["test_patch"],
        "f2p_tests": {"tests/test_pkg.py::test_one": {}},
    }
    met = import_rows(tmp_path, "multi-swe-bench", multi, name="multi.jsonl")
    assert met.lines[0]["duplicate_of"] == "acme__widget-1"
    assert len(load_candidates(tmp_path)) == 1


def test_a_killed_import_is_continued(row: dict[str, object], tmp_path: Path) -> None:
    assert import_rows(tmp_path, "swebench", row).exit_code == 0
    imports = tmp_path / "mergemill-store" / "imports" / "tasks.jsonl"
    imports.write_text(imports.read_text() + '{"instance_id": "acme__wid')
    other = row | {"instance_id": "acme__widget-2", "patch": str(row["patch"]).replace("return 1", "return 1.0")}
    assert import_rows(tmp_path, "swebench", other).exit_code == 0
    assert sorted(candidate.name for candidate in load_candidates(tmp_path)) == ["acme__widget-1", "acme__widget-2"]


def test_an_import_reports_that_it_waits_for_another_one(row: dict[str, object], tmp_path: Path) -> None:
    assert "waiting" not in import_rows(tmp_path, "swebench", row).stderr
    imports = tmp_path / "mergemill-store" / "imports" / "tasks.jsonl"
    words = ("bundle", "import", "rows.jsonl", "--format", "swebench", "--clones", "clones")
    with imports.with_suffix(".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as another import holds it
        with open_mergemill(*words, cwd=tmp_path) as waiting:
            select.select([waiting.stderr], [], [], 30)
            assert waiting.process.poll() is None
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert waiting.stderr.readline() == f"mergemill: waiting for another import into {imports}\n"
            waiting.stderr.read()
            assert waiting.process.wait() == 0


def test_a_bug_of_swe_smith_is_a_commit_from_which_its_tests_are_missing(repo: TinyRepo, tmp_path: Path) -> None:
    fixed = repo.git("rev-parse", "HEAD")
    smith = {
        "instance_id": "acme__widget.x.lm_rewrite__1",
        "repo": f"swesmith/acme__widget.{fixed[:8]}",
        "patch": repo.git("diff", "HEAD", "HEAD^", "--", "pkg.py") + "\n",
        "FAIL_TO_PASS": ["tests/test_pkg.py::test_one"],
        "PASS_TO_PASS": [],
        "problem_statement": "one() is two\n\nIt should return one, as its name says.",
        "image_name": "x",
    }
    done = import_rows(tmp_path, "swe-smith", smith)
    assert done.exit_code == 0, done
    (candidate,) = load_candidates(tmp_path)
    tree = CloneStore(tmp_path / "mergemill-store" / "clones").open_tree(
        "instances:", "acme/widget", candidate.base_commit
    )
    assert tree.read_file(candidate.base_commit, "pkg.py") == START["pkg.py"].encode()
    assert tree.read_file(candidate.base_commit, "tests/test_pkg.py") is None
    artifacts = Artifacts(tmp_path / "mergemill-store" / "artifacts")
    assert "+    return 1" in artifacts.get_text(candidate.gold_patch)
    assert "+def test_one():" in artifacts.get_text(candidate.test_patch)
    assert candidate.test_files == ("tests/test_pkg.py",)
    assert repo.git("status", "--porcelain") == ""
    again = import_rows(tmp_path, "swe-smith", smith)
    assert (again.exit_code, again.lines[0]["new"], again.lines[-1]["new"]) == (0, False, 0)


def test_an_abbreviated_base_commit_and_a_parent_are_resolved(
    row: dict[str, object], repo: TinyRepo, tmp_path: Path
) -> None:
    fixed, parent = repo.git("rev-parse", "HEAD"), str(row["base_commit"])
    other = row | {"instance_id": "acme__widget-2", "base_commit": parent[:9], "patch": f"{row['patch']}\n"}
    bad = [
        row | {"instance_id": "bad", "base_commit": commit, "patch": "x"}
        for commit in ("--git-dir=/etc", "HEAD", f"{fixed}^2", f"{'1' * 40}^", "main@{1}")
    ]
    done = import_rows(tmp_path, "swebench", row | {"base_commit": f"{fixed}^"}, other, *bad)
    assert done.exit_code == 3
    results = [line for line in done.lines if "place" in line]
    assert [(line["new"], line["duplicate_of"], line["problem"] is None) for line in results[:2]] == [
        (True, None, True),
        (False, "acme__widget-1", True),
    ]
    assert all("base_commit" in line["problem"] for line in results[2:]), results
    (candidate,) = load_candidates(tmp_path)
    assert candidate.base_commit == parent


def test_a_foreign_set_needs_its_format(row: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    done = run_mergemill("bundle", "import", "rows.jsonl", cwd=tmp_path)
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    unknown = run_mergemill("bundle", "import", "rows.jsonl", "--format", "csv", cwd=tmp_path)
    assert unknown.exit_code == 2
    assert "swe-smith" in unknown.stderr
