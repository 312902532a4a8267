"""What can be wrong with a `github:` source, each told in one line with its exit code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli import Said, mergemill
from tests.github import GitHub, Token, World
from tests.github.handmade import Workshop, sample_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return sample_world(tmp_path / "there")


@pytest.fixture
def hub(world: World) -> Iterator[GitHub]:
    with GitHub(world, tokens=["ghp_reader", Token("ghp_owner", private=frozenset({"ada/secret"}))]) as hub:
        yield hub


@dataclass
class Ask:
    """`mergemill mine` against the emulator, with this token."""

    hub: GitHub
    folder: Path
    token: str | None = "ghp_reader"

    def __call__(self, *words: str) -> Said:
        token = {"MERGEMILL_GITHUB_TOKENS": self.token} if self.token else {}
        return mergemill("mine", *words, "--json", cwd=self.folder, MERGEMILL_GITHUB_API=self.hub.url, **token)


@pytest.fixture
def ask(hub: GitHub, tmp_path: Path) -> Ask:
    (tmp_path / "here").mkdir()
    return Ask(hub, tmp_path / "here")


def names(done: Said) -> list[str]:
    return [line["name"] for line in done.lines if line["event"] == "record"]


def test_a_repository_is_mined(ask: Ask) -> None:
    done = ask("github:ada/greet")
    assert done.code == 0, done.err
    assert names(done) == ["ada__greet-5", "ada__greet-3", "ada__greet-2"]
    assert "3 merged pull requests known" in done.err


def test_an_unknown_repository_is_named_and_the_others_are_mined(ask: Ask) -> None:
    done = ask("github:ada/nothing", "github:ada/greet")
    assert done.code == 3
    assert "github:ada/nothing" in done.err
    assert len(names(done)) == 3


def test_a_private_repository_is_mined_by_who_may_see_it(ask: Ask, world: World, tmp_path: Path) -> None:
    sample_world(tmp_path / "private", "ada/secret", world)
    secret = world.find("ada/secret")
    assert secret
    secret.private = True
    assert ask("github:ada/secret").code == 3
    ask.token = "ghp_owner"
    done = ask("github:ada/secret")
    assert (done.code, len(names(done))) == (0, 3), done.err
    kept = [path for path in (tmp_path / "here").rglob("*") if path.is_file()]
    assert not any(b"ghp_owner" in path.read_bytes() for path in kept)


def test_without_a_token_nothing_is_asked_and_the_fix_is_told(ask: Ask, hub: GitHub) -> None:
    ask.token = None
    done = ask("github:ada/greet")
    assert done.code == 4
    assert "set GITHUB_TOKEN" in done.err
    assert not hub.asked()


def test_a_wrong_token_is_unusable_input(ask: Ask) -> None:
    ask.token = "ghp_forged_token"
    done = ask("github:ada/greet")
    assert done.code == 3
    assert "ghp_forged_token" not in done.err


def test_a_repository_that_vanished_keeps_its_records(ask: Ask, world: World, tmp_path: Path) -> None:
    ask("github:ada/greet")
    world.remove("ada/greet")
    done = ask("github:ada/greet")
    assert done.code == 3
    assert "github:ada/greet" in done.err
    assert done.lines[-1]["mined"] == 3


def test_a_repository_without_pull_requests_says_so(ask: Ask, world: World, tmp_path: Path) -> None:
    with Workshop(world, tmp_path / "there", "ada/empty") as shop:
        shop.commit("Begin", {"a.py": "a = 1\n"})
    done = ask("github:ada/empty")
    assert (done.code, names(done)) == (0, [])
    assert "github:ada/empty has no merged pull requests" in done.err


def test_archived_repositories_and_forks_are_mined_and_named(ask: Ask, world: World) -> None:
    greet = world.find("ada/greet")
    assert greet
    greet.archived, greet.fork_of = True, "bob/greet"
    done = ask("github:ada/greet")
    assert (done.code, len(names(done))) == (0, 3)
    assert "github:ada/greet is archived" in done.err


def test_another_spelling_finds_the_same_records(ask: Ask, world: World, tmp_path: Path) -> None:
    first = ask("github:ada/greet")
    world.rename("ada/greet", "ada/hello")
    again = ask("github:ADA/Hello")
    assert (again.code, again.lines[-1]["new"]) == (0, 0), again.err
    assert again.lines[-1]["mined"] == first.lines[-1]["mined"] == 3
    funnel = mergemill("funnel", "github:ada/hello", "--json", cwd=tmp_path / "here")
    assert funnel.lines[0]["in"] == 3


def test_a_list_is_crawled_ahead_and_told_in_its_order(ask: Ask, world: World, hub: GitHub, tmp_path: Path) -> None:
    for n in range(5):
        sample_world(tmp_path / f"more-{n}", f"ada/more-{n}", world)
    listed = tmp_path / "list.txt"
    listed.write_text("".join(f"github:ada/more-{n}  # number {n}\n" for n in (3, 0, 4)) + "github:ada/gone\n")
    done = ask(f"@{listed}")
    assert done.code == 3
    assert list(dict.fromkeys(name.rpartition("-")[0] for name in names(done))) == [
        "ada__more-3", "ada__more-0", "ada__more-4",
    ]  # fmt: skip
    assert hub.account("ghp_reader").most_at_once <= 4
    assert hub.violations == []


def test_a_typo_in_a_list_is_told_with_its_line(ask: Ask, tmp_path: Path) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text("# ours\ngithub:ada/greet\ngithub:https://github.com/ada/greet\n")
    done = ask(f"@{listed}")
    assert done.code == 2
    assert "list.txt:3:" in done.err
    assert "use github:ada/greet" in done.err
