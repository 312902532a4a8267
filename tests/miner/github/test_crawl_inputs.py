"""Errors of `github:` sources: one line each, and the exit code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli import CommandResult, run_mergemill
from tests.github import AccessToken, GitHub, World
from tests.github.handmade import RepositoryBuilder, make_sample_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_sample_world(tmp_path / "there")


@pytest.fixture
def hub(world: World) -> Iterator[GitHub]:
    with GitHub(world, tokens=["ghp_reader", AccessToken("ghp_owner", private=frozenset({"ada/secret"}))]) as hub:
        yield hub


@dataclass
class MineCommand:
    """Run `mergemill mine` against the emulator with this token."""

    hub: GitHub
    folder: Path
    token: str | None = "ghp_reader"

    def __call__(self, *words: str) -> CommandResult:
        token = {"MERGEMILL_GITHUB_TOKENS": self.token} if self.token else {}
        return run_mergemill("mine", *words, "--json", cwd=self.folder, MERGEMILL_GITHUB_API=self.hub.url, **token)


@pytest.fixture
def ask(hub: GitHub, tmp_path: Path) -> MineCommand:
    (tmp_path / "here").mkdir()
    return MineCommand(hub, tmp_path / "here")


def names(result: CommandResult) -> list[str]:
    return [line["name"] for line in result.lines if line["event"] == "record"]


def test_a_repository_is_mined(ask: MineCommand) -> None:
    result = ask("github:ada/greet")
    assert result.exit_code == 0, result.stderr
    assert names(result) == ["ada__greet-5", "ada__greet-3", "ada__greet-2"]
    assert "3 merged pull requests known" in result.stderr


def test_an_unknown_repository_is_named_and_the_others_are_mined(ask: MineCommand) -> None:
    result = ask("github:ada/nothing", "github:ada/greet")
    assert result.exit_code == 3
    assert "github:ada/nothing" in result.stderr
    assert len(names(result)) == 3


def test_a_private_repository_is_mined_with_a_token_that_can_read_it(
    ask: MineCommand, world: World, tmp_path: Path
) -> None:
    make_sample_world(tmp_path / "private", "ada/secret", world)
    secret = world.find("ada/secret")
    assert secret
    secret.private = True
    assert ask("github:ada/secret").exit_code == 3
    ask.token = "ghp_owner"
    result = ask("github:ada/secret")
    assert (result.exit_code, len(names(result))) == (0, 3), result.stderr
    kept = [path for path in (tmp_path / "here").rglob("*") if path.is_file()]
    assert not any(b"ghp_owner" in path.read_bytes() for path in kept)


def test_without_a_token_nothing_is_requested_and_the_error_has_advice(ask: MineCommand, hub: GitHub) -> None:
    ask.token = None
    result = ask("github:ada/greet")
    assert result.exit_code == 4
    assert "set GITHUB_TOKEN" in result.stderr
    assert not hub.list_requests()


def test_a_wrong_token_is_unusable_input(ask: MineCommand) -> None:
    ask.token = "ghp_forged_token"
    result = ask("github:ada/greet")
    assert result.exit_code == 3
    assert "ghp_forged_token" not in result.stderr


def test_a_repository_that_vanished_keeps_its_records(ask: MineCommand, world: World, tmp_path: Path) -> None:
    ask("github:ada/greet")
    world.remove("ada/greet")
    result = ask("github:ada/greet")
    assert result.exit_code == 3
    assert "github:ada/greet" in result.stderr
    assert result.lines[-1]["mined"] == 3


def test_a_repository_without_pull_requests_is_reported(ask: MineCommand, world: World, tmp_path: Path) -> None:
    with RepositoryBuilder(world, tmp_path / "there", "ada/empty") as shop:
        shop.commit("Begin", {"a.py": "a = 1\n"})
    result = ask("github:ada/empty")
    assert (result.exit_code, names(result)) == (0, [])
    assert "github:ada/empty has no merged pull requests" in result.stderr


def test_archived_repositories_and_forks_are_mined_and_reported(ask: MineCommand, world: World) -> None:
    greet = world.find("ada/greet")
    assert greet
    greet.archived, greet.fork_of = True, "bob/greet"
    result = ask("github:ada/greet")
    assert (result.exit_code, len(names(result))) == (0, 3)
    assert "github:ada/greet is archived" in result.stderr


def test_another_spelling_finds_the_same_records(ask: MineCommand, world: World, tmp_path: Path) -> None:
    first = ask("github:ada/greet")
    world.rename("ada/greet", "ada/hello")
    again = ask("github:ADA/Hello")
    assert (again.exit_code, again.lines[-1]["new"]) == (0, 0), again.stderr
    assert again.lines[-1]["mined"] == first.lines[-1]["mined"] == 3
    funnel = run_mergemill("funnel", "github:ada/hello", "--json", cwd=tmp_path / "here")
    assert funnel.lines[0]["in"] == 3


def test_a_list_is_crawled_ahead_and_mined_in_its_order(
    ask: MineCommand, world: World, hub: GitHub, tmp_path: Path
) -> None:
    for n in range(5):
        make_sample_world(tmp_path / f"more-{n}", f"ada/more-{n}", world)
    listed = tmp_path / "list.txt"
    listed.write_text("".join(f"github:ada/more-{n}  # number {n}\n" for n in (3, 0, 4)) + "github:ada/gone\n")
    result = ask(f"@{listed}")
    assert result.exit_code == 3
    assert list(dict.fromkeys(name.rpartition("-")[0] for name in names(result))) == [
        "ada__more-3",
        "ada__more-0",
        "ada__more-4",
    ]
    assert hub.account("ghp_reader").most_at_once <= 4
    assert hub.violations == []


def test_a_typo_in_a_list_is_reported_with_its_line(ask: MineCommand, tmp_path: Path) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text("# ours\ngithub:ada/greet\ngithub:https://github.com/ada/greet\n")
    result = ask(f"@{listed}")
    assert result.exit_code == 2
    assert "list.txt:3:" in result.stderr
    assert "use github:ada/greet" in result.stderr
