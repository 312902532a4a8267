"""Files and lines into which bugs are injected, and their patches."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from backends.git import GitError, GitRepository
from derivers.injected import bug_sites
from derivers.injected.patches import build_injection_patches
from mutation import build_patch
from tests.helpers import TinyRepo
from tests.records import make_candidate, make_pull_request

CODE = "def f(a):\n    if a < 1:\n        return 2\n    return a + 3\n"


def history(path: Path) -> tuple[TinyRepo, str]:
    repo = TinyRepo(path)
    files: dict[str, str | bytes | None] = {
        "greet.py": CODE,
        "other.py": CODE,
        "words.py": CODE,
        "docs/conf.py": CODE,
        "tests/helper.py": CODE,
        "tests/test_words.py": "def test_f(): pass\n",
        "data.json": "{}",
        "setup.py": CODE,
    }
    return repo, repo.commit("Start", files)


def test_bugs_are_injected_into_covered_source_files_those_of_the_change_first(tmp_path: Path) -> None:
    repo, base = history(tmp_path)
    change = make_candidate(make_pull_request(), base_commit=base)
    files = bug_sites.select_files(change, GitRepository(repo.path), None, ["tests/test_words.py::test_f"])
    assert list(files) == ["greet.py", "words.py", "other.py"]
    covered = {"other.py": frozenset({2}), "tests/helper.py": frozenset({1})}
    files = bug_sites.select_files(change, GitRepository(repo.path), covered, [])
    assert list(files) == ["other.py"]
    assert {bug.line for bug in bug_sites.list_mutants(change, files, covered)} == {2}


def test_functions_of_different_files_take_turns(tmp_path: Path) -> None:
    change = make_candidate(make_pull_request())
    code = (CODE + "\n\n" + CODE.replace("def f", "def g") + "\n\ndef unused():\n    return 1\n").encode()
    contents = {"greet.py": code, "words.py": code}
    covered = {path: frozenset({1, 2, 7, 8, 13}) for path in contents}
    functions = bug_sites.FunctionMap(contents)
    sites = [(path, part.name) for path, part in bug_sites.list_functions(change, contents, covered, functions)]
    assert [path for path, _ in sites] == ["greet.py", "words.py"] * 2
    assert set(sites) == {(path, name) for path in contents for name in ("f", "g")}, "a first line alone is no call"


def test_more_tasks_have_more_files_and_lines(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path)
    base = repo.commit("Start", {f"pkg/m{number}.py": CODE * 40 for number in range(30)})
    change = make_candidate(make_pull_request(), base_commit=base)
    counts = []
    for limits in (bug_sites.SiteLimits(), bug_sites.SiteLimits.for_tasks(20)):
        files = bug_sites.select_files(change, GitRepository(repo.path), None, [], limits)
        path, content = next(iter(files.items()))
        counts.append((len(files), len(bug_sites.select_lines(change, path, content, None, limits))))
    assert counts == [(6, 100), (20, 161)]


def test_each_file_has_a_share_of_the_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bug_sites, "MIN_MUTANTS_PER_FILE", 2)
    change = make_candidate(make_pull_request())
    contents = {"greet.py": (CODE * 9).encode(), "words.py": CODE.encode()}
    mutants = bug_sites.list_mutants(change, contents, None, bug_sites.SiteLimits(mutants=8))
    assert Counter(mutant.path for mutant in mutants) == {"greet.py": 4, "words.py": 4}
    assert len({mutant.operator for mutant in mutants if mutant.path == "greet.py"}) == 4
    assert len(bug_sites.list_mutants(change, contents, None, bug_sites.SiteLimits(mutants=1))) == 4


def test_the_order_depends_on_the_change(tmp_path: Path) -> None:
    contents = {"greet.py": CODE.encode()}
    orders = [
        bug_sites.list_mutants(make_candidate(make_pull_request(number)), contents, None) for number in (1, 1, 2, 3)
    ]
    assert orders[0] == orders[1]
    assert {bug.after for bug in orders[0]} == {bug.after for bug in orders[2]}
    assert orders[0] != orders[2] or orders[0] != orders[3]


def test_the_three_patches_apply_to_their_trees(tmp_path: Path) -> None:
    repo, base = history(tmp_path / "repo")
    bugs = [
        build_patch("words.py", CODE.encode(), CODE.replace("a < 1", "a > 1").encode()),
        build_patch("words.py", CODE.encode(), CODE.replace("a + 3", "a - 3").encode()),
    ]
    subprocess.run(["git", "clone", "-q", "--bare", repo.path, tmp_path / "bare"], check=True)
    given = build_injection_patches(GitRepository(tmp_path / "bare"), base, bugs, ["tests/test_words.py"])
    apply(repo, given.setup_patch)
    assert not (repo.path / "tests/test_words.py").exists()
    assert (repo.path / "words.py").read_text() == CODE.replace("a < 1", "a > 1").replace("a + 3", "a - 3")
    apply(repo, given.test_patch)
    apply(repo, given.gold_patch)
    assert repo.git("status", "--porcelain") == ""
    assert b"test_words" not in given.gold_patch
    assert b"words.py" not in given.test_patch.replace(b"test_words.py", b"")


def test_bugs_in_the_same_line_do_not_combine(tmp_path: Path) -> None:
    repo, base = history(tmp_path / "repo")
    bugs = [
        build_patch("words.py", CODE.encode(), CODE.replace("a < 1", f"a {sign} 1").encode()) for sign in (">", "==")
    ]
    with pytest.raises(GitError):
        build_injection_patches(GitRepository(repo.path), base, bugs, [])


def apply(repo: TinyRepo, patch: bytes) -> None:
    subprocess.run(["git", "apply"], cwd=repo.path, input=patch, check=True)


def test_a_generated_file_leaves_its_place_to_another_one(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path)
    generated = "# This file was generated by a tool. Do not edit.\n" + CODE
    files: dict[str, str | bytes | None] = {f"pkg/made{number}.py": generated for number in range(9)}
    base = repo.commit("Start", {**files, "pkg/made_pb2.py": CODE, "pkg/a.py": CODE, "pkg/b.py": CODE})
    change = make_candidate(make_pull_request(), base_commit=base)
    limits = bug_sites.SiteLimits(files=2)
    selected = bug_sites.select_files(change, GitRepository(repo.path), None, [], limits)
    assert sorted(selected) == ["pkg/a.py", "pkg/b.py"]
