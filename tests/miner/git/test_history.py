from __future__ import annotations

from pathlib import Path

import pytest

from backends.git import EMPTY_TREE, GitRepository
from miner.git.diffs import read_raw_diffs
from miner.git.history import find_repo_name
from taskdb.records import Candidate, PullRequest, Shape
from tests.helpers import TinyRepo
from tests.miner.conftest import FIX, START, MinerHarness


def mined(harness: MinerHarness, tiny: TinyRepo, **options: object) -> list[PullRequest]:
    return [item.pull_request for item in harness.mine(f"git:{tiny.path}", **options)]


def branch(tiny: TinyRepo, name: str, *commits: tuple[str, dict[str, str]], author: str = "") -> str:
    tiny.git("checkout", "-q", "-b", name)
    for message, files in commits:
        tip = tiny.commit(message, files, author=author or None)
    tiny.git("checkout", "-q", "main")
    return tip


def merge(tiny: TinyRepo, message: str, *names: str) -> str:
    tiny.minute += 1
    tiny.git("merge", "-q", "--no-ff", "-m", message, *names)
    return tiny.git("rev-parse", "HEAD")


def test_a_merged_pull_request_is_one_change_from_the_first_parent(tiny: TinyRepo, harness: MinerHarness) -> None:
    branch(
        tiny, "fix", ("Fix one", {"pkg/core.py": FIX["pkg/core.py"]}), ("Test it", FIX), author="Bob <bob@example.org>"
    )
    base = tiny.commit("Meanwhile on main", {"README": "hello\n"})
    head = merge(tiny, "Merge pull request #7 from bob/fix\n\nMake one() return one\n\nIt returned two.", "fix")
    newest = harness.mine(f"git:{tiny.path}")[0]
    request, candidate = newest.pull_request, newest.result
    assert (request.shape, request.number, request.name) == (Shape.MERGE, 7, "acme__widget-7")
    assert (request.base_commit, request.merge_commit) == (base, head)
    assert (request.title, request.author, request.repo) == ("Make one() return one", "Bob", "acme/widget")
    assert isinstance(candidate, Candidate)
    assert candidate.problem_statement.startswith("Make one() return one\n\nIt returned two.")
    assert candidate.gold_files == ("pkg/core.py",)
    assert candidate.test_files == ("tests/test_core.py",)
    assert (candidate.gold_lines, candidate.test_lines) == (2, 4)
    assert candidate.license == "MIT"


@pytest.mark.parametrize(
    ("message", "number", "shape", "title"),
    [
        ("Make one() return one (#12)\n\nIt was two.", 12, Shape.SQUASH, "Make one() return one"),
        ("Make one() right\n\nSee merge request acme/widget!31", 31, Shape.SQUASH, "Make one() right"),
        ("Merged in fix (pull request #5)\n\nMake one() right", 5, Shape.SQUASH, "Make one() right"),
        ("Make one() right for (#3) and others", None, Shape.COMMIT, "Make one() right for (#3) and others"),
        ("Make one() right\n\nSigned-off-by: A <a@b.c>", None, Shape.COMMIT, "Make one() right"),
        ("Reopen what (#4) did (#9)", 9, Shape.SQUASH, "Reopen what (#4) did"),
    ],
)
def test_number_shape_and_title_come_from_the_message(
    message: str, number: int | None, shape: Shape, title: str, tiny: TinyRepo, harness: MinerHarness
) -> None:
    sha = tiny.commit(message, FIX)
    request = mined(harness, tiny)[0]
    assert (request.number, request.shape, request.title) == (number, shape, title)
    assert request.name == f"acme__widget-{number or sha[:10]}"
    assert "Signed-off" not in request.body
    assert "merge request" not in request.body


def test_a_rebase_merge_is_recognised_by_the_pull_request_ref(tiny: TinyRepo, harness: MinerHarness) -> None:
    tip = branch(tiny, "topic", ("Fix one()", {"pkg/core.py": FIX["pkg/core.py"]}), ("Add a test for one()", FIX))
    tiny.git("update-ref", "refs/pull/21/head", tip)
    base = tiny.commit("Meanwhile on main", {"README": "hello\n"})
    tiny.git("cherry-pick", "main..topic")
    tiny.git("branch", "-q", "-D", "topic")
    tiny.commit("Afterwards", {"README": "bye\n"})
    requests = mined(harness, tiny)
    assert [r.shape for r in requests] == [Shape.COMMIT, Shape.REBASE, Shape.COMMIT, Shape.COMMIT]
    assert (requests[1].number, requests[1].base_commit) == (21, base)
    assert requests[1].merge_commit == tiny.git("rev-parse", "HEAD^")
    assert "Add a test for one()" in requests[1].body


def test_a_commit_of_the_same_title_and_another_patch_is_no_rebase(tiny: TinyRepo, harness: MinerHarness) -> None:
    tip = branch(tiny, "topic", ("Fix one()", {"pkg/core.py": "def one():\n    return 3\n"}))
    tiny.git("update-ref", "refs/pull/21/head", tip)
    tiny.minute -= 1
    tiny.commit("Fix one()", FIX)
    assert mined(harness, tiny)[0].shape is Shape.COMMIT


def test_pull_requests_of_a_merged_branch_are_mined_one_by_one(tiny: TinyRepo, harness: MinerHarness) -> None:
    branch(tiny, "stable", ("Fix what one() returns (#40)", FIX), ("Touch the docs (#41)", {"README": "docs\n"}))
    tiny.commit("Work on main", {"other.py": "x = 1\n"})
    merge(tiny, "Merge branch 'stable' into main", "stable")
    changes = harness.mine(f"git:{tiny.path}")
    assert [item.pull_request.number for item in changes] == [None, 41, 40, None, None]
    assert getattr(changes[0].result, "reason", "") == "branch-merge"
    assert isinstance(changes[2].result, Candidate)


def test_a_merge_that_only_has_a_title_gets_the_text_of_its_commits(tiny: TinyRepo, harness: MinerHarness) -> None:
    branch(tiny, "fix", ("Return one from one()\n\nTwo is wrong because of the name.", FIX))
    merge(tiny, "Merge pull request #3 from a/fix\n\nFix it", "fix")
    assert "Two is wrong because of the name." in mined(harness, tiny)[0].body


def test_an_octopus_merge_is_one_change(tiny: TinyRepo, harness: MinerHarness) -> None:
    branch(tiny, "a", ("Fix one", FIX))
    branch(tiny, "b", ("Write a readme", {"README": "b\n"}))
    merge(tiny, "Take both of these changes in", "a", "b")
    newest = harness.mine(f"git:{tiny.path}")[0]
    assert newest.pull_request.shape is Shape.MERGE
    assert isinstance(newest.result, Candidate)
    assert newest.result.gold_files == ("README", "pkg/core.py")


def test_a_number_that_appears_twice_gives_two_names(tiny: TinyRepo, harness: MinerHarness) -> None:
    old = tiny.commit("An old change of the fork's parent (#5)", FIX)
    tiny.commit("A new change with the number (#5)", {"pkg/core.py": "def one():\n    return 11\n"})
    assert [r.name for r in mined(harness, tiny)][:2] == ["acme__widget-5", f"acme__widget-5-{old[:10]}"]
    # Names do not depend on the requested dates.
    assert [r.name for r in mined(harness, tiny, until="2024-03-01")][:2] == [r.name for r in mined(harness, tiny)][:2]


def test_limit_counts_candidates_only_and_the_newest_come_first(tiny: TinyRepo, harness: MinerHarness) -> None:
    for n in range(3):
        tiny.commit(
            f"Let one() return something else (#{n + 1})",
            {"pkg/core.py": f"def one():\n    return {n + 5}\n", "tests/test_core.py": f"x = {n}\n"},
        )
        tiny.commit("Say more in the readme", {"README": f"{n}\n"})
    changes = harness.mine(f"git:{tiny.path}", limit=2)
    assert [item.pull_request.number for item in changes] == [None, 3, None, 2]


def test_since_and_until_choose_by_day(tiny: TinyRepo, harness: MinerHarness) -> None:
    tiny.commit("Make one() right", FIX)
    assert mined(harness, tiny, since="2024-03-02") == []
    assert mined(harness, tiny, until="2024-02-29") == []
    assert len(mined(harness, tiny, since="2024-03-01", until="2024-03-01")) == 2


def test_mining_twice_gives_the_same_ids(tiny: TinyRepo, harness: MinerHarness) -> None:
    tiny.commit("Make one() right", FIX)
    source = f"git:{tiny.path}"
    assert [m.result.id for m in harness.mine(source)] == [m.result.id for m in harness.mine(source)]


def test_the_work_tree_and_its_attributes_do_not_change_a_patch(tiny: TinyRepo, harness: MinerHarness) -> None:
    tiny.commit("Make one() right", FIX)
    source = f"git:{tiny.path}"
    before = harness.mine(source)[0].result.id
    (tiny.path / ".gitattributes").write_text("*.py -diff\n")
    (tiny.path / ".git" / "info" / "attributes").write_text("*.py -diff\n")
    tiny.git("config", "diff.noprefix", "true")
    assert harness.mine(source)[0].result.id == before


def test_mining_writes_nothing_into_the_repository(tiny: TinyRepo, harness: MinerHarness) -> None:
    tiny.commit("Make one() right", FIX)

    def state() -> dict[str, int]:
        return {str(p): p.stat().st_mtime_ns for p in tiny.path.rglob("*")}

    before = state()
    harness.mine(f"git:{tiny.path}")
    assert state() == before


def test_a_generator_that_is_closed_early_leaves_nothing_behind(tiny: TinyRepo, harness: MinerHarness) -> None:
    from miner.mine import mine  # noqa: PLC0415 - only here

    tiny.commit("Make one() right", FIX)
    changes = mine(f"git:{tiny.path}", harness.open_services())
    next(changes)
    changes.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("folder", "remote", "expected"),
    [
        ("acme__widget", "", "acme/widget"),
        ("x__y", "https://forge.example/acme/widget.git", "x/y"),
        ("here", "https://forge.example/acme/widget.git", "acme/widget"),
        ("here", "git@forge.example:acme/widget", "acme/widget"),
        ("here", "/somewhere/else", "parent/here"),
        ("here", "", "parent/here"),
    ],
)
def test_owner_and_name_come_from_folder_or_remote(tmp_path: Path, folder: str, remote: str, expected: str) -> None:
    repo = TinyRepo(tmp_path / "parent" / folder)
    if remote:
        repo.git("remote", "add", "origin", remote)
    assert find_repo_name(GitRepository(repo.path), str(repo.path)) == expected


def test_raw_diffs_keep_the_order_and_show_empty_changes(tiny: TinyRepo) -> None:
    first = tiny.git("rev-parse", "HEAD")
    empty = tiny.commit("Nothing", {})
    moved = tiny.commit("Move", {"pkg/core.py": None, "pkg/kernel.py": START["pkg/core.py"]})
    groups = list(
        read_raw_diffs(GitRepository(tiny.path), [(moved, empty), (empty, first), (first, EMPTY_TREE), (empty, first)])
    )
    assert [(f.status, f.old_path, f.new_path) for f in groups[0]] == [("R", "pkg/core.py", "pkg/kernel.py")]
    assert groups[1] == groups[3] == ()
    assert {f.new_path for f in groups[2]} == set(START)
