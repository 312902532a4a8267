from __future__ import annotations

import json
from pathlib import Path

import pytest

from backends.clones import Clones
from backends.git import Repository
from mergemill.errors import InputError, Transient
from miner.mine import Mined, mine
from taskdb.records import Candidate, Shape
from tests.helpers import TinyRepo
from tests.miner.conftest import FIX, Workshop


@pytest.fixture
def row(tiny: TinyRepo, tmp_path: Path) -> dict[str, object]:
    """A published task about `acme/widget`, of which `clones/` holds a clone."""
    base = tiny.git("rev-parse", "HEAD")
    tiny.commit("Make one() return one", FIX)
    folder = tmp_path / "clones"
    tiny.git("clone", "-q", "--bare", str(tiny.path), str(folder / "acme__widget.git"))
    return {
        "instance_id": "acme__widget-1", "repo": "acme/widget", "base_commit": base, "version": "1.0",
        "patch": tiny.git("diff", "HEAD^", "--", "pkg") + "\n", "test_patch": tiny.git("diff", "HEAD^", "--", "tests"),
        "problem_statement": "one() is two\n\nIt should be one.", "hints_text": "look at it",
        "created_at": "2024-03-01T10:00:00Z", "FAIL_TO_PASS": '["tests/test_core.py::test_one"]', "PASS_TO_PASS": [],
    }  # fmt: skip


WRONG = "diff --git a/pkg/core.py b/pkg/core.py\n--- a/pkg/core.py\n+++ b/pkg/core.py\n@@ -1 +1 @@\n-a\n+b\n"


def lines(tmp_path: Path, *rows: object) -> str:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return f"instances:{path}"


def test_a_published_task_becomes_a_candidate(row: dict[str, object], workshop: Workshop, tmp_path: Path) -> None:
    (mined,) = workshop.mine(lines(tmp_path, row), clones=tmp_path / "clones")
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
    assert candidate.published.fail_to_pass == ("tests/test_core.py::test_one",)
    gold, test = workshop.patches(mined)
    assert gold == row["patch"]
    assert test == f"{row['test_patch']}\n"


@pytest.mark.parametrize(("language", "program"), [("c", "src/a.c"), ("go", "a.go"), ("python", "a.jl")])
def test_a_task_of_data_alone_is_in_the_language_of_its_tree(
    language: str, program: str, tiny: TinyRepo, workshop: Workshop, tmp_path: Path
) -> None:
    tiny.git("rm", "-q", "-r", "pkg", "tests")
    base = tiny.commit("Lay it out", {program: "\n", "rules.jq": "def f: 1;\n"})
    tiny.commit("Make it two", {"rules.jq": "def f: 2;\n", "tests/rules.test": "f\n2\n"})
    tiny.git("clone", "-q", "--bare", str(tiny.path), str(tmp_path / "clones/acme__widget.git"))
    patches = {"patch": tiny.git("diff", base, "--", "rules.jq"), "test_patch": tiny.git("diff", base, "--", "tests")}
    task = {
        "instance_id": "acme__widget-2", "repo": "acme/widget", "base_commit": base, "problem_statement": "f is an odd",
        "created_at": "2024-03-01T10:00:00Z", "FAIL_TO_PASS": ["tests/rules"], "PASS_TO_PASS": [], **patches,
    }  # fmt: skip
    (mined,) = workshop.mine(lines(tmp_path, task), clones=tmp_path / "clones")
    assert isinstance(mined.result, Candidate)
    assert mined.result.language == language


def test_each_bad_line_is_named_and_the_others_go_on(
    row: dict[str, object], workshop: Workshop, tmp_path: Path
) -> None:
    bad: list[object] = [
        "{not json", "[1]", {k: v for k, v in row.items() if k != "patch"}, {**row, "FAIL_TO_PASS": 3},
        {**row, "FAIL_TO_PASS": "no list"}, {**row, "repo": "widget"},
        {**row, "instance_id": "x", "base_commit": "0" * 40},
    ]  # fmt: skip
    source = lines(tmp_path, *bad, "", row, row)
    found = list(mine(source, workshop.services(clones=tmp_path / "clones")))
    errors = [str(item) for item in found if isinstance(item, InputError)]
    assert [int(error.split(":")[1]) for error in errors] == [1, 2, 3, 4, 5, 6, 7, 10]
    assert all("\n" not in error for error in errors)
    assert "stands in line 9 already" in errors[-1]
    assert [item.pull_request.name for item in found if isinstance(item, Mined)] == ["acme__widget-1"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"patch": "diff --git a/a.jl b/a.jl\n--- a/a.jl\n+++ b/a.jl\n@@ -1 +1 @@\n-a\n+b\n"},
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
    change: dict[str, str], reason: str, row: dict[str, object], workshop: Workshop, tmp_path: Path
) -> None:
    (mined,) = workshop.mine(lines(tmp_path, {**row, **change}), clones=tmp_path / "clones")
    assert getattr(mined.result, "reason", "candidate") == reason


def test_a_row_of_multi_swe_bench_is_read_in_its_own_fields(
    row: dict[str, object], workshop: Workshop, tmp_path: Path
) -> None:
    theirs = {
        "org": "acme", "repo": "widget", "number": 1, "instance_id": "acme__widget-1", "title": "T", "body": None,
        "base": {"sha": row["base_commit"]}, "fix_patch": row["patch"], "test_patch": row["test_patch"],
        "resolved_issues": [{"number": 3, "title": "one() is two", "body": "It should be one."}],
        "f2p_tests": {"tests/test_core.py::test_one": {}}, "s2p_tests": {}, "n2p_tests": {"new": {}},
        "p2p_tests": {"old": {}},
    }  # fmt: skip
    (mined,) = workshop.mine(lines(tmp_path, theirs), clones=tmp_path / "clones")
    candidate = mined.result
    assert isinstance(candidate, Candidate)
    assert candidate.published is not None
    assert candidate.published.fail_to_pass == ("new", "tests/test_core.py::test_one")
    assert candidate.published.pass_to_pass == ("old",)
    assert candidate.problem_statement == "one() is two\n\nIt should be one."
    assert candidate.created_at.startswith("2024-03-01T12:")  # the base commit's: they tell no date


def test_a_clone_out_of_reach_waits_and_the_others_are_done_first(
    row: dict[str, object], workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backends.clones.GITHUB", "http://127.0.0.1:9/{repo}.git")
    other = {**row, "instance_id": "far__away-1", "repo": "far/away"}
    changes = mine(lines(tmp_path, other, row), workshop.services(clones=tmp_path / "clones"))
    first = next(changes)
    assert isinstance(first, Mined)
    assert first.pull_request.name == "acme__widget-1"
    with pytest.raises(Transient, match=r"lines of .* that wait: 1"):
        next(changes)


def test_only_the_repositories_of_tasks_that_are_meant_are_looked_for(
    row: dict[str, object], workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def open_(self: Clones, source: str, repo: str = "", *, fresh: bool = False) -> Repository:
        asked.append(repo)
        return opened(self, source, repo, fresh=fresh)

    opened = Clones.open
    monkeypatch.setattr(Clones, "open", open_)
    monkeypatch.setattr("backends.clones.GITHUB", "http://127.0.0.1:9/{repo}.git")
    far = {**row, "instance_id": "far__away-1", "repo": "far/away", "created_at": "2023-03-01"}
    source, clones = lines(tmp_path, far, row, {**far, "instance_id": "far__away-2"}), tmp_path / "clones"

    def names(only: list[str], **options: object) -> list[str]:
        found = mine(source, workshop.services(clones=clones, **options), only)
        return [item.pull_request.name for item in found if isinstance(item, Mined)]

    assert names(["acme__widget-1", "other__name-1"]) == ["acme__widget-1"]
    assert names([], since="2024-01-01") == ["acme__widget-1"]
    assert names([], limit=1, since="2024-01-01") == ["acme__widget-1"]
    assert names(["other__name-1"]) == []
    assert set(asked) == {"acme/widget"}
    with pytest.raises(Transient, match="that wait: 2"):
        names(["0123456789ab"])  # an id is known only when the whole task was read
    assert set(asked) == {"acme/widget", "far/away"}


def test_a_missing_file_is_unusable_input(workshop: Workshop, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        workshop.mine(f"instances:{tmp_path / 'none.jsonl'}")
