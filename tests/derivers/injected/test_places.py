"""Where bugs are put, and the patches they become."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from backends.git import GitError, Repository
from derivers.injected import places
from derivers.injected.patches import patches
from derivers.mutation import patch_of
from tests.helpers import TinyRepo
from tests.records import candidate, pull_request

CODE = "def f(a):\n    if a < 1:\n        return 2\n    return a + 3\n"


def history(path: Path) -> tuple[TinyRepo, str]:
    repo = TinyRepo(path)
    files: dict[str, str | bytes | None] = {
        "greet.py": CODE, "other.py": CODE, "words.py": CODE, "docs/conf.py": CODE, "tests/helper.py": CODE,
        "tests/test_words.py": "def test_f(): pass\n", "data.json": "{}", "setup.py": CODE,
    }  # fmt: skip
    return repo, repo.commit("Start", files)


def test_bugs_lie_in_program_files_that_tests_run_those_of_the_change_first(tmp_path: Path) -> None:
    repo, base = history(tmp_path)
    change = candidate(pull_request(), base_commit=base)
    found = places.files(change, Repository(repo.path), None, ["tests/test_words.py::test_f"])
    assert list(found) == ["greet.py", "words.py", "other.py"]
    covered = {"other.py": frozenset({2}), "tests/helper.py": frozenset({1})}
    found = places.files(change, Repository(repo.path), covered, [])
    assert list(found) == ["other.py"]
    assert {bug.line for bug in places.bugs(change, found, covered)} == {2}


def test_the_order_is_the_changes_own(tmp_path: Path) -> None:
    contents = {"greet.py": CODE.encode()}
    orders = [places.bugs(candidate(pull_request(number)), contents, None) for number in (1, 1, 2, 3)]
    assert orders[0] == orders[1]
    assert {bug.after for bug in orders[0]} == {bug.after for bug in orders[2]}
    assert orders[0] != orders[2] or orders[0] != orders[3]


def test_the_three_patches_lead_from_tree_to_tree(tmp_path: Path) -> None:
    repo, base = history(tmp_path / "repo")
    bugs = [
        patch_of("words.py", CODE.encode(), CODE.replace("a < 1", "a > 1").encode()),
        patch_of("words.py", CODE.encode(), CODE.replace("a + 3", "a - 3").encode()),
    ]
    subprocess.run(["git", "clone", "-q", "--bare", repo.path, tmp_path / "bare"], check=True)
    given = patches(Repository(tmp_path / "bare"), base, bugs, ["tests/test_words.py"])
    apply(repo, given.setup)
    assert not (repo.path / "tests/test_words.py").exists()
    assert (repo.path / "words.py").read_text() == CODE.replace("a < 1", "a > 1").replace("a + 3", "a - 3")
    apply(repo, given.tests)
    apply(repo, given.gold)
    assert repo.git("status", "--porcelain") == ""
    assert b"test_words" not in given.gold
    assert b"words.py" not in given.tests.replace(b"test_words.py", b"")


def test_bugs_at_the_same_place_do_not_combine(tmp_path: Path) -> None:
    repo, base = history(tmp_path / "repo")
    bugs = [patch_of("words.py", CODE.encode(), CODE.replace("a < 1", f"a {sign} 1").encode()) for sign in (">", "==")]
    with pytest.raises(GitError):
        patches(Repository(repo.path), base, bugs, [])


def apply(repo: TinyRepo, patch: bytes) -> None:
    subprocess.run(["git", "apply"], cwd=repo.path, input=patch, check=True)
