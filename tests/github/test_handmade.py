from __future__ import annotations

import subprocess
from pathlib import Path

from tests.github import GitHub, World
from tests.github.handmade import RepositoryBuilder, make_sample_world


def test_the_sample_projects_clone_has_every_head_and_no_work_branches(tmp_path: Path) -> None:
    world = make_sample_world(tmp_path)
    with GitHub(world) as hub:
        subprocess.run(["git", "clone", "-q", "--mirror", f"{hub.url}/ada/greet.git", tmp_path / "copy"], check=True)
    listed = subprocess.run(
        ["git", "for-each-ref", "--format=%(refname)"],
        cwd=tmp_path / "copy",
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert listed == ["refs/heads/main", "refs/pull/2/head", "refs/pull/3/head", "refs/pull/5/head"]


def test_a_merged_pull_request_closes_its_issue_and_lists_its_files(tmp_path: Path) -> None:
    repository = make_sample_world(tmp_path).find("ada/greet")
    assert repository
    assert [issue.state for issue in repository.issues.values()] == ["CLOSED", "CLOSED"]
    assert [(p.changed_files, p.additions, p.deletions) for p in repository.pulls.values()] == [
        (2, 5, 1),
        (1, 2, 0),
        (2, 5, 1),
    ]


def test_rebase_merges_have_new_commits_and_closed_ones_none(tmp_path: Path) -> None:
    with RepositoryBuilder(World(), tmp_path) as shop:
        shop.commit("Begin", {"a.py": "a = 1\n"})
        rebased = shop.pull("Two steps", None, [{"a.py": "a = 2\n"}, {"b.py": "b = 1\n"}], how="rebase")
        closed = shop.pull("No", "", {"a.py": "a = 9\n"}, how="closed", author="dependabot[bot]")
    assert rebased.merge_commit
    assert rebased.merge_commit != rebased.head_sha
    assert (rebased.commits, rebased.changed_files) == (2, 2)
    assert closed.merge_commit is None
    assert closed.author
    assert closed.author.rest_login == "dependabot[bot]"
    assert shop.code.git("show", "main:a.py") == "a = 2"
