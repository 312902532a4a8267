"""Facts from GitHub about repositories, through the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli import CommandResult, run_mergemill
from tests.github import GitHub
from tests.github.handmade import RepositoryBuilder
from tests.github.world import World
from tests.miner.repos.test_dumps import build_event, write_dump

TESTED = {"lib.py": "x = 1\n", "tests/test_lib.py": "def test(): pass\n", ".github/workflows/ci.yml": "on: push\n"}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[GitHub]:
    world = World()
    for name, files in (("ada/lib", TESTED), ("ada/bare", {"lib.py": "x = 1\n"})):
        with RepositoryBuilder(world, tmp_path / "hub", name) as shop:
            shop.commit("Begin", files)
            if files is TESTED:
                shop.pull("Fix x", None, {"lib.py": "x = 2\n"}, author="ada")
            shop.publish()
    world.find("ada/bare").fork_of = "ada/lib"  # type: ignore[union-attr]
    with GitHub(world) as server:
        yield server
    assert server.violations == []


def repos(*words: str, hub: GitHub, cwd: Path, token: str = "ghp_reader") -> CommandResult:  # noqa: S107 - of the emulator
    return run_mergemill("repos", *words, cwd=cwd, MERGEMILL_GITHUB_API=hub.url, GITHUB_TOKEN=token)


def by_name(result: CommandResult) -> dict[str, dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return {row["repo"]: row for row in result.lines}


def test_repositories_are_requested_together_and_ranked(hub: GitHub, tmp_path: Path) -> None:
    repositories = by_name(repos("ada/bare", "github:ada/lib", "ada/nowhere", "--json", hub=hub, cwd=tmp_path))
    assert list(repositories) == ["ada/lib", "ada/bare", "ada/nowhere"]
    assert (
        repositories["ada/lib"]["merged"],
        repositories["ada/lib"]["has_tests"],
        repositories["ada/lib"]["has_ci"],
    ) == (1, True, True)
    assert repositories["ada/bare"]["out"] == "a fork of ada/lib"
    assert "no such repository" in repositories["ada/nowhere"]["out"]
    assert [request.kind for request in hub.requests] == ["graphql"]
    assert sum(request.points for request in hub.requests) == 1


def test_a_renamed_repository_of_a_dump_is_one_and_has_its_present_name(hub: GitHub, tmp_path: Path) -> None:
    hub.world.rename("ada/lib", "ada/core")
    path = write_dump(
        tmp_path / "d.json", build_event(1, merged=True, repo="ada/lib"), build_event(1, repo="ada/core", repo_id=8)
    )
    done = repos("--gharchive", str(path), "--out", "list.txt", "--json", hub=hub, cwd=tmp_path)
    assert list(by_name(done)) == ["ada/core"]
    assert "\ngithub:ada/core " in (tmp_path / "list.txt").read_text()


def test_without_a_token_the_error_has_advice_and_no_api_works(hub: GitHub, tmp_path: Path) -> None:
    done = repos("ada/lib", hub=hub, cwd=tmp_path, token="")
    assert (done.exit_code, done.stdout) == (4, "")
    assert "GITHUB_TOKEN" in done.stderr
    path = write_dump(tmp_path / "d.json", build_event(1, merged=True, repo="ada/lib"))
    done = repos("--gharchive", str(path), "--no-api", hub=hub, cwd=tmp_path, token="")
    assert done.exit_code == 0
    assert "github:ada/lib" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "no repository is named"),
        (("pypi:click",), 2, "is no repository"),
        (("git:nowhere",), 3, "nowhere"),
        (("--gharchive", "none.json.gz"), 3, "none.json.gz"),
        (("@none.txt",), 3, "cannot read the list"),
    ],
)
def test_a_mistake_is_one_line_on_standard_error(
    hub: GitHub, tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    done = repos(*words, hub=hub, cwd=tmp_path)
    assert done.exit_code == code
    assert message in done.stderr
    assert len(done.stderr.splitlines()) <= 2
