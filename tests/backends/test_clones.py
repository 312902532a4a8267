from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from backends.clones import Clones, is_url, repo_of_url
from backends.git import Repository
from mergemill.errors import InputError, Transient
from tests.helpers import TinyRepo


@pytest.fixture
def origin(tmp_path: Path) -> TinyRepo:
    repo = TinyRepo(tmp_path / "forge" / "acme" / "widget")
    repo.commit("One", {"a.py": "x = 1\n"})
    repo.commit("Two", {"a.py": "x = 2\n"})
    return repo


@pytest.fixture
def clones(tmp_path: Path) -> Clones:
    return Clones(tmp_path / "store", attempts=2, first_wait=0.01)


def test_a_path_is_read_where_it_is(origin: TinyRepo, clones: Clones) -> None:
    assert clones.open(f"git:{origin.path}").path == origin.path
    assert not clones.store.exists()


def test_a_url_is_cloned_once_and_fetched_when_asked(origin: TinyRepo, clones: Clones) -> None:
    source = f"git:{origin.path.as_uri()}"
    origin.git("update-ref", "refs/pull/1/head", "HEAD")
    first = clones.open(source)
    assert first.has_commit("refs/pull/1/head")
    newest = origin.commit("Three", {"a.py": "x = 3\n"})
    assert not clones.open(source).has_commit(newest)
    assert clones.open(source, fresh=True).resolve("HEAD") == newest
    assert [p.name for p in first.path.parent.iterdir()] == [first.path.name]


@pytest.mark.parametrize("forge", [True, False])
def test_a_branch_below_the_name_of_one_that_is_gone_is_fetched(
    origin: TinyRepo, clones: Clones, tmp_path: Path, *, forge: bool
) -> None:
    source, url = f"git:{origin.path.as_uri()}", origin.path.as_uri()

    def fetched() -> Repository:
        if not forge:
            return clones.open(source, fresh=True)
        clones.fetch_forge(tmp_path / "forged.git", url, head="main")
        return Repository(tmp_path / "forged.git")

    origin.git("branch", "next")
    origin.git("branch", "kept")
    fetched()
    origin.git("branch", "-D", "next", "kept")
    origin.git("branch", "next/one")
    newest = origin.commit("Three", {"a.py": "x = 3\n"})
    repository = fetched()
    assert repository.resolve("HEAD") == newest
    assert repository.has_commit("refs/heads/next/one")


def test_a_clone_that_fails_leaves_nothing_half_made(clones: Clones, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot clone"):
        clones.open(f"git:{(tmp_path / 'nowhere').as_uri()}")
    assert list((clones.store / "git").iterdir()) == []


def test_no_network_is_transient_and_tried_again(clones: Clones) -> None:
    with pytest.raises(Transient, match="cannot reach"):
        clones.open("git:http://127.0.0.1:9/acme/widget.git")


def test_a_local_clone_comes_before_cloning(origin: TinyRepo, tmp_path: Path) -> None:
    folder = tmp_path / "clones"
    bare = folder / "acme__widget.git"
    origin.git("clone", "-q", "--bare", str(origin.path), str(bare))
    clones = Clones(tmp_path / "store", folder)
    assert clones.open("git:https://forge.invalid/acme/widget.git").path == bare
    assert clones.open("instances:tasks.jsonl", "acme/widget").path == bare


@pytest.mark.parametrize("kind", ["missing", "file", "folder", "inside", "empty", "shallow", "partial"])
def test_what_cannot_be_read_whole_is_told_in_one_line(
    kind: str, origin: TinyRepo, clones: Clones, tmp_path: Path
) -> None:
    path = tmp_path / kind
    words = {"empty": "empty", "shallow": "shallow", "partial": "partial"}.get(kind, "not a git repository")
    if kind == "file":
        path.write_text("x")
    elif kind == "folder":
        path.mkdir()
    elif kind == "inside":
        path = origin.path / "sub"
        path.mkdir()
    elif kind == "empty":
        TinyRepo(path)
    elif kind == "shallow":
        origin.git("clone", "-q", "--depth=1", origin.path.as_uri(), str(path))
    elif kind == "partial":
        origin.git("config", "uploadpack.allowFilter", "true")
        origin.git("clone", "-q", "--filter=blob:none", "--no-checkout", origin.path.as_uri(), str(path))
    with pytest.raises(InputError, match=words) as error:
        clones.open(f"git:{path}")
    assert "\n" not in error.value.line()
    assert str(path) in error.value.line()


def test_a_linked_work_tree_is_a_repository(origin: TinyRepo, clones: Clones, tmp_path: Path) -> None:
    origin.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    assert clones.open(f"git:{tmp_path / 'linked'}").resolve("HEAD") == origin.git("rev-parse", "HEAD")


def test_a_package_has_one_place_whatever_its_spelling(clones: Clones) -> None:
    assert clones.package("Foo.Bar_baz") == clones.package("foo-bar-baz")
    with pytest.raises(InputError):
        clones.open("pypi:never-mined")


def test_urls_and_paths_are_told_apart() -> None:
    assert [is_url(x) for x in ("https://a/b", "git@a.b:c/d", "/a/b", "./a:b", "file:///a")] == [
        True, True, False, False, True]  # fmt: skip
    assert repo_of_url("git@forge.example:acme/widget.git") == "acme/widget"
    assert repo_of_url("https://forge.example/acme/widget/") == "acme/widget"


def test_two_urls_never_share_a_clone(origin: TinyRepo, clones: Clones) -> None:
    url = origin.path.as_uri()
    path = clones.open(f"git:{url}").path
    assert path.name == f"acme__widget-{hashlib.sha256(url.encode()).hexdigest()[:8]}.git"
