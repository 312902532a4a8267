"""Combination of two patches, and isolation of each."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from backends.git import GitError, GitRepository, run_git
from derivers.patch_merge import leave_out_patch, stack_patches
from tests.helpers import TinyRepo

TEXT = "".join(f"line {number}\n" for number in range(1, 21))


def history(tmp_path: Path, *texts: str | None) -> tuple[TinyRepo, list[str], list[bytes]]:
    """Return a repository whose one file had these contents in turn, its commits, and the patches between them."""
    repo = TinyRepo(tmp_path / "repo")
    commits = [repo.commit(str(number), {"other": "x\n", "file": text}) for number, text in enumerate(texts) if text]
    read = GitRepository(repo.path)
    patches = [
        read.run_git("diff-tree", "-p", "--binary", "--full-index", before, after)
        for before, after in itertools.pairwise(commits)
    ]
    return repo, commits, patches


def applied(repo: TinyRepo, base: str, patch: bytes) -> str:
    """Return the file with the patch applied to `base`."""
    repo.git("checkout", "-q", "-f", base)
    run_git("apply", cwd=repo.path, data=patch)
    return (repo.path / "file").read_text()


@pytest.mark.parametrize(
    ("older", "newer", "alone"),
    [
        (("line 3", "three"), ("line 17", "seventeen"), TEXT.replace("line 17", "seventeen")),
        (("line 3", "three"), ("line 4", "four"), TEXT.replace("line 4", "four")),
        (("line 3\n", "three\n"), ("three\n", "new\nthree\n"), TEXT.replace("line 3", "new\nline 3")),
        (("line 3", "three"), ("three", "THREE"), TEXT.replace("line 3", "THREE")),
    ],
    ids=["apart", "next-to-each-other", "inserted-before", "the-same-line"],
)
def test_two_patches_are_combined_and_the_later_is_isolated(
    older: tuple[str, str], newer: tuple[str, str], alone: str, tmp_path: Path
) -> None:
    middle = TEXT.replace(*older)
    end = middle.replace(*newer)
    repo, commits, (first, second) = history(tmp_path, TEXT, middle, end)
    read = GitRepository(repo.path)
    assert applied(repo, commits[0], stack_patches(read, commits[0], first, second)) == end
    patch = leave_out_patch(read, commits[0], (first, second), 0)
    assert patch is not None
    assert applied(repo, commits[0], patch) == alone


def test_intermediate_changes_are_not_included(tmp_path: Path) -> None:
    third = "2nd\n".join(TEXT.split("line 2\n", 1))
    repo, commits, (first, _, last) = history(tmp_path, TEXT, f"top\n{TEXT}", f"top\n{third}", f"top\n{third}end\n")
    read = GitRepository(repo.path)
    assert applied(repo, commits[0], stack_patches(read, commits[0], first, last)) == f"top\n{TEXT}end\n"


def test_a_patch_that_depends_on_an_intermediate_change_does_not_apply(tmp_path: Path) -> None:
    between = TEXT.replace("line 9", "nine")
    repo, commits, (first, _, last) = history(
        tmp_path, TEXT, f"top\n{TEXT}", f"top\n{between}", f"top\n{between}".replace("nine", "NINE")
    )
    before = repo.git("count-objects", "-v")
    with pytest.raises(GitError):
        stack_patches(GitRepository(repo.path), commits[0], first, last)
    assert repo.git("count-objects", "-v") == before, "nothing is written to the clone"


def test_a_patch_to_a_file_of_the_earlier_one_cannot_be_isolated(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"other": "x\n"})
    middle = repo.commit("Add", {"file": TEXT})
    end = repo.commit("Change", {"file": TEXT.replace("line 3", "three")})
    read = GitRepository(repo.path)
    first, second = (
        read.run_git("diff-tree", "-p", "--binary", "--full-index", *pair) for pair in ((base, middle), (middle, end))
    )
    assert applied(repo, base, stack_patches(read, base, first, second)) == TEXT.replace("line 3", "three")
    assert leave_out_patch(read, base, (first, second), 0) is None


def test_each_of_three_patches_can_be_left_out(tmp_path: Path) -> None:
    texts = [TEXT, TEXT.replace("line 3", "three")]
    texts.append(texts[1].replace("line 4", "four"))
    texts.append(texts[2].replace("four", "FOUR"))
    repo, commits, patches = history(tmp_path, *texts)
    read = GitRepository(repo.path)
    reduced = [leave_out_patch(read, commits[0], patches, number) for number in range(3)]
    assert [applied(repo, commits[0], patch or b"").splitlines()[2:4] for patch in reduced] == [
        ["line 3", "FOUR"],
        ["three", "FOUR"],
        ["three", "four"],
    ]
