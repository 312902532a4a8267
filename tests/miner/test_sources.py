from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import InputError, UsageError
from miner.sources import expand_sources, parse_source


def test_a_list_is_opened_and_each_source_comes_once(tmp_path: Path) -> None:
    inner = tmp_path / "inner.txt"
    inner.write_text("pypi:click\n")
    outer = tmp_path / "outer.txt"
    outer.write_text(f"# the small ones\n\ngit:/a/b#c   # a path with a hash\npypi:click\n@{inner}\n")
    assert expand_sources(["pypi:attrs", f"@{outer}", "pypi:attrs"]) == ["pypi:attrs", "git:/a/b#c", "pypi:click"]


@pytest.mark.parametrize(
    "word", ["svn:x", "click", "git:", "pypi:", "pypi:../x", "/some/path", "github:a", "github:a/b/c", ""]
)
def test_what_is_no_source_is_a_usage_error(word: str) -> None:
    with pytest.raises(UsageError):
        parse_source(word)


def test_an_error_in_a_list_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("pypi:click\n\nftp:x\n")
    with pytest.raises(UsageError, match=r"list\.txt:3: 'ftp:x' is not a source"):
        expand_sources([f"@{path}"])


def test_a_list_that_lists_itself_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text(f"@{path}\n")
    with pytest.raises(UsageError, match="lists itself"):
        expand_sources([f"@{path}"])


def test_a_missing_list_is_unusable_input(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        expand_sources([f"@{tmp_path / 'none'}"])


@pytest.mark.parametrize(
    "pasted",
    [
        "https://github.com/a/b",
        "https://github.com/a/b.git",
        "git@github.com:a/b.git",
        "github.com/a/b/pulls",
        "https://github.com/a/b/pull/3#x",
    ],
)
def test_a_pasted_address_is_answered_with_its_source_word(pasted: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_source(f"github:{pasted}")
    assert caught.value.advice == "use github:a/b"


@pytest.mark.parametrize("place", ["a/..", "a/.", "-a/b", "a b/c", "a/b.git", "ä/b", "a/"])
def test_a_name_that_no_repository_can_have_is_a_usage_error(place: str) -> None:
    with pytest.raises(UsageError, match="is not the name of a repository"):
        parse_source(f"github:{place}")
