from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from backends.clones import CloneStore, is_url, parse_repo_name
from backends.git import GitRepository
from core.errors import InputError, Transient
from tests.helpers import TinyRepo


@pytest.fixture
def origin(tmp_path: Path) -> TinyRepo:
    repo = TinyRepo(tmp_path / "forge" / "acme" / "widget")
    repo.commit("One", {"a.py": "x = 1\n"})
    repo.commit("Two", {"a.py": "x = 2\n"})
    return repo


@pytest.fixture
def clones(tmp_path: Path) -> CloneStore:
    return CloneStore(tmp_path / "store", attempts=2, first_wait=0.01)


def test_a_path_is_read_in_place(origin: TinyRepo, clones: CloneStore) -> None:
    assert clones.open(f"git:{origin.path}").path == origin.path
    assert not clones.folder.exists()


def test_a_url_is_cloned_once_and_fetched_on_request(origin: TinyRepo, clones: CloneStore) -> None:
    source = f"git:{origin.path.as_uri()}"
    origin.git("update-ref", "refs/pull/1/head", "HEAD")
    first = clones.open(source)
    assert first.has_commit("refs/pull/1/head")
    newest = origin.commit("Three", {"a.py": "x = 3\n"})
    assert not clones.open(source).has_commit(newest)
    assert clones.open(source, fresh=True).resolve("HEAD") == newest
    assert [p.name for p in first.path.parent.iterdir()] == [first.path.name]


@pytest.mark.parametrize("forge", [True, False])
def test_a_branch_below_the_name_of_a_deleted_one_is_fetched(
    origin: TinyRepo, clones: CloneStore, tmp_path: Path, *, forge: bool
) -> None:
    source, url = f"git:{origin.path.as_uri()}", origin.path.as_uri()

    def fetched() -> GitRepository:
        if not forge:
            return clones.open(source, fresh=True)
        clones.fetch_forge(tmp_path / "forged.git", url, head="main")
        return GitRepository(tmp_path / "forged.git")

    origin.git("branch", "next")
    origin.git("branch", "kept")
    fetched()
    origin.git("branch", "-D", "next", "kept")
    origin.git("branch", "next/one")
    newest = origin.commit("Three", {"a.py": "x = 3\n"})
    repository = fetched()
    assert repository.resolve("HEAD") == newest
    assert repository.has_commit("refs/heads/next/one")


def test_a_failed_clone_leaves_no_folder(clones: CloneStore, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot clone"):
        clones.open(f"git:{(tmp_path / 'nowhere').as_uri()}")
    assert list((clones.folder / "git").iterdir()) == []


def test_a_network_failure_is_transient_and_retried(clones: CloneStore) -> None:
    with pytest.raises(Transient, match="cannot reach"):
        clones.open("git:http://127.0.0.1:9/acme/widget.git")


def test_a_local_clone_takes_precedence_over_cloning(origin: TinyRepo, tmp_path: Path) -> None:
    folder = tmp_path / "clones"
    bare = folder / "acme__widget.git"
    origin.git("clone", "-q", "--bare", str(origin.path), str(bare))
    clones = CloneStore(tmp_path / "store", folder)
    assert clones.open("git:https://forge.invalid/acme/widget.git").path == bare
    assert clones.open("instances:tasks.jsonl", "acme/widget").path == bare


@pytest.mark.parametrize("kind", ["missing", "file", "folder", "inside", "empty", "shallow", "partial"])
def test_an_incomplete_repository_is_a_one_line_error(
    kind: str, origin: TinyRepo, clones: CloneStore, tmp_path: Path
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
    assert "\n" not in error.value.format_line()
    assert str(path) in error.value.format_line()


def test_a_linked_work_tree_is_a_repository(origin: TinyRepo, clones: CloneStore, tmp_path: Path) -> None:
    origin.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    assert clones.open(f"git:{tmp_path / 'linked'}").resolve("HEAD") == origin.git("rev-parse", "HEAD")


def test_a_linked_work_tree_of_a_partial_clone_is_partial(origin: TinyRepo, clones: CloneStore, tmp_path: Path) -> None:
    origin.git("config", "extensions.partialClone", "origin")
    origin.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    with pytest.raises(InputError, match="linked is a partial clone"):
        clones.open(f"git:{tmp_path / 'linked'}")


def test_a_package_has_one_folder_for_all_spellings(clones: CloneStore) -> None:
    assert clones.find_package("Foo.Bar_baz") == clones.find_package("foo-bar-baz")
    with pytest.raises(InputError):
        clones.open("pypi:never-mined")


def test_urls_and_paths_are_distinguished() -> None:
    assert [is_url(x) for x in ("https://a/b", "git@a.b:c/d", "/a/b", "./a:b", "file:///a")] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert parse_repo_name("git@forge.example:acme/widget.git") == "acme/widget"
    assert parse_repo_name("https://forge.example/acme/widget/") == "acme/widget"


def test_two_urls_never_share_a_clone(origin: TinyRepo, clones: CloneStore) -> None:
    url = origin.path.as_uri()
    path = clones.open(f"git:{url}").path
    assert path.name == f"acme__widget-{hashlib.sha256(url.encode()).hexdigest()[:8]}.git"
