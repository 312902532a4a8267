from __future__ import annotations

import json
from pathlib import Path

import pytest

from backends.clones import CloneStore
from backends.git import GitRepository
from core.errors import InputError, Transient
from miner.mine import MinedChange, mine
from taskdb.records import Candidate, Shape
from tests.helpers import TinyRepo
from tests.miner.conftest import FIX, MinerHarness


@pytest.fixture
def row(tiny: TinyRepo, tmp_path: Path) -> dict[str, object]:
    """A published task about `acme/widget`, whose clone is in `clones/`."""
    base = tiny.git("rev-parse", "HEAD")
    tiny.commit("Make one() return one", FIX)
    folder = tmp_path / "clones"
    tiny.git("clone", "-q", "--bare", str(tiny.path), str(folder / "acme__widget.git"))
    return {
        "instance_id": "acme__widget-1",
        "repo": "acme/widget",
        "base_commit": base,
        "version": "1.0",
        "patch": tiny.git("diff", "HEAD^", "--", "pkg") + "\n",
        "test_patch": tiny.git("diff", "HEAD^", "--", "tests"),
        "problem_statement": "one() is two\n\nIt should be one.",
        "hints_text": "look at it",
        "created_at": "2024-03-01T10:00:00Z",
        "FAIL_TO_PASS": '["tests/test_core.py::test_one"]',
        "PASS_TO_PASS": [],
    }


WRONG = "diff --git a/pkg/core.py b/pkg/core.py\n--- a/pkg/core.py\n+++ b/pkg/core.py\n@@ -1 +1 @@\n-a\n+b\n"


def write_rows(tmp_path: Path, *rows: object) -> str:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return f"instances:{path}"


def test_a_published_task_becomes_a_candidate(row: dict[str, object], harness: MinerHarness, tmp_path: Path) -> None:
    (mined,) = harness.mine(write_rows(tmp_path, row), clones=tmp_path / "clones")
    request, candidate = mined.pull_request, mined.result
    assert isinstance(candidate, Candidate)
    assert (candidate.name, request.shape, candidate.repo) == ("acme__widget-1", Shape.INSTANCE, "acme/widget")
    assert candidate.base_commit == candidate.merge_commit == row["base_commit"]
    assert candidate.problem_statement == "one() is two\n\nIt should be one."
    assert (candidate.hints, candidate.version, candidate.created_at) == (
        "look at it",
        "1.0",
        "2024-03-01T10:00:00+00:00",
    )
    assert candidate.published is not None
    assert candidate.published.FAIL_TO_PASS == ("tests/test_core.py::test_one",)
    gold, test = harness.read_patches(mined)
    assert gold == row["patch"]
    assert test == f"{row['test_patch']}\n"


@pytest.mark.parametrize(("language", "program"), [("c", "src/a.c"), ("go", "a.go"), ("python", "a.zig")])
def test_a_task_of_data_alone_is_in_the_language_of_its_tree(
    language: str, program: str, tiny: TinyRepo, harness: MinerHarness, tmp_path: Path
) -> None:
    tiny.git("rm", "-q", "-r", "pkg", "tests")
    base = tiny.commit("Lay it out", {program: "\n", "rules.jq": "def f: 1;\n"})
    tiny.commit("Make it two", {"rules.jq": "def f: 2;\n", "tests/rules.test": "f\n2\n"})
    tiny.git("clone", "-q", "--bare", str(tiny.path), str(tmp_path / "clones/acme__widget.git"))
    patches = {"patch": tiny.git("diff", base, "--", "rules.jq"), "test_patch": tiny.git("diff", base, "--", "tests")}
    task = {
        "instance_id": "acme__widget-2",
        "repo": "acme/widget",
        "base_commit": base,
        "problem_statement": "f is an odd",
        "created_at": "2024-03-01T10:00:00Z",
        "FAIL_TO_PASS": ["tests/rules"],
        "PASS_TO_PASS": [],
        **patches,
    }
    (mined,) = harness.mine(write_rows(tmp_path, task), clones=tmp_path / "clones")
    assert isinstance(mined.result, Candidate)
    assert mined.result.language == language


def test_each_bad_line_is_reported_and_the_others_are_mined(
    row: dict[str, object], harness: MinerHarness, tmp_path: Path
) -> None:
    bad: list[object] = [
        "{not json",
        "[1]",
        {k: v for k, v in row.items() if k != "patch"},
        {**row, "FAIL_TO_PASS": 3},
        {**row, "FAIL_TO_PASS": "no list"},
        {**row, "repo": "widget"},
        {**row, "instance_id": "x", "base_commit": "0" * 40},
    ]
    source = write_rows(tmp_path, *bad, "", row, row)
    changes = list(mine(source, harness.open_services(clones=tmp_path / "clones")))
    errors = [str(item) for item in changes if isinstance(item, InputError)]
    assert [int(error.split(":")[1]) for error in errors] == [1, 2, 3, 4, 5, 6, 7, 10]
    assert all("\n" not in error for error in errors)
    assert "is also in line 9" in errors[-1]
    assert [item.pull_request.name for item in changes if isinstance(item, MinedChange)] == ["acme__widget-1"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"patch": "diff --git a/a.zig b/a.zig\n--- a/a.zig\n+++ b/a.zig\n@@ -1 +1 @@\n-a\n+b\n"},
            "language-not-supported",
        ),
        ({"patch": "gibberish"}, "unparsable-patch"),
        ({"test_patch": ""}, "no-tests"),
        ({"problem_statement": ""}, "no-statement"),
        (
            {"patch": WRONG},
            "round-trip",
        ),
    ],
)
def test_what_cannot_be_a_task_is_rejected(
    change: dict[str, str], reason: str, row: dict[str, object], harness: MinerHarness, tmp_path: Path
) -> None:
    (mined,) = harness.mine(write_rows(tmp_path, {**row, **change}), clones=tmp_path / "clones")
    assert getattr(mined.result, "reason", "candidate") == reason


def test_a_row_of_multi_swe_bench_is_read_in_its_own_fields(
    row: dict[str, object], harness: MinerHarness, tmp_path: Path
) -> None:
    theirs = {
        "org": "acme",
        "repo": "widget",
        "number": 1,
        "instance_id": "acme__widget-1",
        "title": "T",
        "body": None,
        "base": {"sha": row["base_commit"]},
        "fix_patch": row["patch"],
        "test_patch": row["test_patch"],
        "resolved_issues": [{"number": 3, "title": "one() is two", "body": "It should be one."}],
        "f2p_tests": {"tests/test_core.py::test_one": {}},
        "s2p_tests": {},
        "n2p_tests": {"new": {}},
        "p2p_tests": {"old": {}},
    }
    (mined,) = harness.mine(write_rows(tmp_path, theirs), clones=tmp_path / "clones")
    candidate = mined.result
    assert isinstance(candidate, Candidate)
    assert candidate.published is not None
    assert candidate.published.FAIL_TO_PASS == ("new", "tests/test_core.py::test_one")
    assert candidate.published.PASS_TO_PASS == ("old",)
    assert candidate.problem_statement == "one() is two\n\nIt should be one."
    assert candidate.created_at.startswith("2024-03-01T12:")  # the base commit's: they tell no date


def test_an_unreachable_clone_is_reported_after_the_other_tasks(
    row: dict[str, object], harness: MinerHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backends.clones.GITHUB", "http://127.0.0.1:9/{repo}.git")
    other = {**row, "instance_id": "far__away-1", "repo": "far/away"}
    changes = mine(write_rows(tmp_path, other, row), harness.open_services(clones=tmp_path / "clones"))
    first = next(changes)
    assert isinstance(first, MinedChange)
    assert first.pull_request.name == "acme__widget-1"
    with pytest.raises(Transient, match=r"lines of .* not read: 1"):
        next(changes)


def test_only_repositories_of_selected_tasks_are_opened(
    row: dict[str, object], harness: MinerHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_repos: list[str] = []

    def record_and_open(self: CloneStore, source: str, repo: str = "", *, fresh: bool = False) -> GitRepository:
        opened_repos.append(repo)
        return open_clone(self, source, repo, fresh=fresh)

    open_clone = CloneStore.open
    monkeypatch.setattr(CloneStore, "open", record_and_open)
    monkeypatch.setattr("backends.clones.GITHUB", "http://127.0.0.1:9/{repo}.git")
    far = {**row, "instance_id": "far__away-1", "repo": "far/away", "created_at": "2023-03-01"}
    source, clones = write_rows(tmp_path, far, row, {**far, "instance_id": "far__away-2"}), tmp_path / "clones"

    def names(only: list[str], **options: object) -> list[str]:
        changes = mine(source, harness.open_services(clones=clones, **options), only)
        return [item.pull_request.name for item in changes if isinstance(item, MinedChange)]

    assert names(["acme__widget-1", "other__name-1"]) == ["acme__widget-1"]
    assert names([], since="2024-01-01") == ["acme__widget-1"]
    assert names([], limit=1, since="2024-01-01") == ["acme__widget-1"]
    assert names(["other__name-1"]) == []
    assert set(opened_repos) == {"acme/widget"}
    with pytest.raises(Transient, match="not read: 2"):
        names(["0123456789ab"])  # an id is computed from the whole task
    assert set(opened_repos) == {"acme/widget", "far/away"}


@pytest.mark.parametrize(
    "change",
    [
        {"FAIL_TO_PASS": "['tests/test_core.py::test_one']", "PASS_TO_PASS": "['tests/test_core.py::test_two']"},
        {"FAIL_TO_PASS": ..., "fail_to_pass": "['tests/test_core.py::test_one']", "PASS_TO_PASS": ..., "p2p": ""},
        {"PASS_TO_PASS": None},
        {"PASS_TO_PASS": ""},
        {"PASS_TO_PASS": ...},
    ],
    ids=repr,
)
def test_a_row_in_any_spelling_of_its_lists_is_a_candidate(
    change: dict[str, object], row: dict[str, object], harness: MinerHarness, tmp_path: Path
) -> None:
    task = {name: value for name, value in {**row, **change}.items() if value is not ...}
    (mined,) = harness.mine(write_rows(tmp_path, json.dumps(task, indent=1)), clones=tmp_path / "clones")
    assert isinstance(mined.result, Candidate)
    assert mined.result.published is not None
    assert mined.result.published.FAIL_TO_PASS == ("tests/test_core.py::test_one",)


def test_a_missing_file_is_unusable_input(harness: MinerHarness, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        harness.mine(f"instances:{tmp_path / 'none.jsonl'}")
