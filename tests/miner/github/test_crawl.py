"""Crawling pull requests: what is stored, in what order, and at what cost."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backends.git import GitRepository
from miner.changes import Reason
from taskdb.records import Shape
from taskdb.records.discussion import AuthorKind, LinkOrigin
from tests.github import GitHub, World
from tests.github.generate import make_world
from tests.github.handmade import RepositoryBuilder
from tests.helpers import TinyRepo
from tests.miner.github.emulator_miner import EmulatorMiner, dump_changes

CODE = {"a.py": "a = 1\n", "CHANGES.md": "# Changes\n"}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def shop(world: World, tmp_path: Path) -> RepositoryBuilder:
    """Create `ada/lib`, still empty."""
    shop = RepositoryBuilder(world, tmp_path / "there", "ada/lib")
    shop.commit("Begin", CODE)
    return shop


@pytest.fixture
def miner(world: World, tmp_path: Path) -> Iterator[EmulatorMiner]:
    with GitHub(world) as hub:
        yield EmulatorMiner(hub, tmp_path / "here")
    assert hub.violations == []


@pytest.mark.parametrize(("how", "shape"), [("merge", Shape.MERGE), ("squash", Shape.SQUASH), ("rebase", Shape.REBASE)])
def test_the_base_is_the_parent_of_the_whole_change(
    shop: RepositoryBuilder, miner: EmulatorMiner, how: str, shape: Shape
) -> None:
    base = shop.code.git("rev-parse", "main")
    made = shop.pull("Two steps", None, [{"a.py": "a = 2\n"}, {"b.py": "b = 1\n"}], how=how)
    shop.publish()
    (change,) = miner.read_changes()
    assert (change.pull_request.shape, change.pull_request.base_commit) == (shape, base)
    assert (change.pull_request.merge_commit, change.pull_request.head_commit) == (made.merge_commit, made.head_sha)
    assert change.paths == ("a.py", "b.py")
    assert change.source_rejection is None


def test_a_pull_request_is_stored_with_its_discussion(shop: RepositoryBuilder, miner: EmulatorMiner) -> None:
    wrong = shop.issue("It is wrong", "By one.\r\nAlways.", comments=["I see it, too."], labels=["bug"])
    pull = shop.pull(
        "Put it right",
        "Text",
        {"a.py": "a = 2\n"},
        closes=[wrong.number],
        labels=["fix", "bug"],
        checks="FAILURE",
        author="helper[bot]",
    )
    shop.issue("Later", "Said later")
    wrong.comments += [type(wrong.comments[0])(9, None, "Solved by a = 2.", "2030-01-01T00:00:00Z")]
    shop.review(pull, "a.py", 1, "Why 2?", "Because.", hunk="@@ -1 +1 @@\n-a = 1\n+a = 2")
    shop.publish()
    (mined,) = miner.read_pulls()
    assert (mined.source, mined.repo, mined.name) == ("github:ada/lib", "ada/lib", f"ada__lib-{pull.number}")
    assert (mined.title, mined.body, mined.labels) == ("Put it right", "Text", ("bug", "fix"))
    assert (mined.author, mined.author_kind, mined.checks) == ("helper[bot]", AuthorKind.BOT, "failure")
    assert (mined.problem_statement, mined.hints) == ("It is wrong\n\nBy one.\nAlways.", "I see it, too.")
    assert [(link.issue, link.origin) for link in mined.links] == [("ada/lib#1", LinkOrigin.FORGE)]
    discussion = miner.read_discussion(mined)
    assert [remark.text for remark in discussion.issues[0].before] == ["I see it, too."]
    assert [(remark.text, remark.author_kind) for remark in discussion.issues[0].after] == [
        ("Solved by a = 2.", AuthorKind.DELETED)
    ]
    (thread,) = discussion.threads
    assert (thread.path, thread.side, thread.line, thread.diff_hunk[:2]) == ("a.py", "right", 1, "@@")
    assert [remark.text for remark in thread.remarks] == ["Why 2?", "Because."]


def test_links_are_found_wherever_a_person_wrote_them(shop: RepositoryBuilder, miner: EmulatorMiner) -> None:
    numbers = [shop.issue(f"Fault {n}", f"Body {n}").number for n in range(4)]
    other = shop.pull("Another", None, {"b.py": ""})
    files = [{"a.py": "a = 3\n"}, {"CHANGES.md": f"# Changes\n\n- Add that (#{numbers[3]}, #{other.number})\n"}]
    shop.pull(f"Fix #{numbers[0]}", f"Closes #{numbers[1]}, #99.\n\n> fixes #{numbers[2]}", files)
    shop.code.minute += 1
    shop.publish()
    pull = miner.read_pulls()[0]
    links = [(link.issue.partition("#")[2], link.origin.value, link.closes) for link in pull.links]
    assert links == [
        ("1", "title", True),
        ("2", "body", True),
        ("99", "body", True),
        ("1", "commit", True),
        ("4", "changelog", False),
        (str(other.number), "changelog", False),
    ]
    assert pull.problem_statement == "Fault 0\n\nBody 0\n\nFault 1\n\nBody 1"
    issues = {issue.issue: issue.is_pull_request for issue in miner.read_discussion(pull).issues}
    assert issues == {"ada/lib#1": False, "ada/lib#2": False, "ada/lib#4": False, f"ada/lib#{other.number}": True}


def test_a_change_that_is_not_on_the_default_branch_is_rejected(shop: RepositoryBuilder, miner: EmulatorMiner) -> None:
    shop.code.git("branch", "1.x")
    shop.pull("For the old ones", None, {"a.py": "a = 0\n"}, base="1.x")
    shop.publish()
    (change,) = miner.read_changes()
    assert change.source_rejection
    assert change.source_rejection[0] is Reason.NOT_ON_DEFAULT_BRANCH


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_an_unnamed_merge_commit_is_found_in_the_clone(shop: RepositoryBuilder, miner: EmulatorMiner, how: str) -> None:
    pull = shop.pull("Step", None, [{"a.py": "a = 2\n"}, {"a.py": "a = 3\n"}], how=how)
    pull.merged_at, named, pull.merge_commit = "2024-03-01T13:00:00Z", pull.merge_commit, None
    shop.publish()
    (mined,) = miner.read_pulls()
    assert mined.merge_commit == named


def test_a_pull_request_without_a_merge_commit_is_rejected(shop: RepositoryBuilder, miner: EmulatorMiner) -> None:
    pull = shop.pull("Step", None, {"a.py": "a = 2\n"}, how="squash")
    shop.code.git("reset", "-q", "--hard", "HEAD~1")
    pull.merge_commit = None
    shop.publish()
    (change,) = miner.read_changes()
    assert change.source_rejection
    assert change.source_rejection[0] is Reason.NO_MERGE_COMMIT


def test_long_lists_are_read_to_their_end(shop: RepositoryBuilder, miner: EmulatorMiner) -> None:
    issues = [shop.issue(f"Issue {n}", "Text") for n in range(60)]
    issues[0].comments = [
        type(shop.issue("x", "", comments=["y"]).comments[0])(n, None, f"Me, too ({n}).", "2020-01-01T00:00:00Z")
        for n in range(230)
    ]
    pull = shop.pull("All", None, {"a.py": "a = 2\n"}, closes=[issue.number for issue in issues])
    for n in range(130):
        shop.review(pull, "a.py", 1, f"Remark {n}")
    shop.review(pull, "a.py", 1, *(f"Reply {n}" for n in range(120)))
    shop.publish()
    discussion = miner.read_discussion(miner.read_pulls()[0])
    assert [len(discussion.issues), len(discussion.issues[0].before), len(discussion.threads)] == [60, 230, 131]
    assert len(discussion.threads[-1].remarks) == 120


def test_a_second_crawl_requests_only_what_is_new(shop: RepositoryBuilder, miner: EmulatorMiner) -> None:
    for n in range(20):
        shop.pull(f"Step {n}", None, {"a.py": f"a = {n + 10}\n"}, how="squash")
    shop.publish()
    first = dump_changes(miner.read_changes())
    miner.count_requests()
    assert dump_changes(miner.read_changes()) == first
    nothing_new = miner.count_requests()
    assert (nothing_new["graphql"] + nothing_new["rest"], nothing_new["git"]) == (1, 0)
    newest = shop.pull("One more", None, {"a.py": "a = 99\n"})
    shop.publish()
    again = miner.read_pulls()
    assert [pull.number for pull in again[:2]] == [newest.number, 20]
    assert dump_changes(miner.read_changes())[1:] == first
    one_new = miner.count_requests()
    assert one_new["graphql"] + one_new["rest"] <= 3


def test_an_unchanged_repository_is_not_requested_again(shop: RepositoryBuilder, miner: EmulatorMiner) -> None:
    shop.pull("One", None, {"a.py": "a = 2\n"})
    before = shop.publish()
    dates = before.pushed_at, before.updated_at
    miner.read_pulls()
    shop.pull("Two", None, {"a.py": "a = 3\n"})
    shop.publish().pushed_at, before.updated_at = dates
    miner.hub.requests.clear()
    assert [pull.title for pull in miner.read_pulls()] == ["Two", "One"]
    assert [request.status for request in miner.hub.requests if request.kind in ("rest", "free")] == [304]


def test_the_first_answer_about_a_pull_request_is_kept(shop: RepositoryBuilder, miner: EmulatorMiner) -> None:
    pull = shop.pull("As it was", "Text", {"a.py": "a = 2\n"})
    shop.publish()
    miner.read_pulls()
    pull.title, pull.updated_at = "As it became", "2031-01-01T00:00:00Z"
    assert [pull.title for pull in miner.read_pulls()] == ["As it was"]


def test_an_interrupted_second_crawl_leaves_no_hole(tmp_path: Path) -> None:
    world = make_world(tmp_path, seed=3, pull_requests=300)
    with GitHub(world) as hub:
        undisturbed = dump_changes(EmulatorMiner(hub, tmp_path / "undisturbed").read_changes())
        everything = world.find("ada/lib")
        assert everything
        pulls = dict(everything.pulls)
        merged = sorted((p for p in pulls.values() if p.merged_at), key=lambda p: p.updated_at)
        miner = EmulatorMiner(hub, tmp_path / "here")
        everything.pulls = {p.number: p for p in merged[:100]}
        miner.read_pulls()
        everything.pulls = {p.number: p for p in merged[:240]}
        assert len(miner.read_pulls(most=5)) == 5  # stopped after the first of three pages of new ones
        everything.pulls = pulls
        assert dump_changes(miner.read_changes()) == undisturbed


def test_a_stale_cursor_costs_the_pages_above_it(tmp_path: Path) -> None:
    with GitHub(make_world(tmp_path, seed=3, pull_requests=300)) as hub:
        undisturbed = dump_changes(EmulatorMiner(hub, tmp_path / "undisturbed").read_changes())
        miner = EmulatorMiner(hub, tmp_path / "here")
        miner.read_pulls(most=60)
        [path] = (tmp_path / "here").rglob("journal.sqlite")
        with sqlite3.connect(path) as journal:
            changed = journal.execute("UPDATE spans SET cursor = 'b2xk' WHERE cursor IS NOT NULL")
            assert changed.rowcount == 1
        journal.close()
        assert dump_changes(miner.read_changes()) == undisturbed
        assert hub.violations == []


def test_a_limit_requests_few_pages_and_the_newest(tmp_path: Path) -> None:
    with GitHub(make_world(tmp_path, seed=5, pull_requests=500)) as hub:
        whole = dump_changes(EmulatorMiner(hub, tmp_path / "whole").read_changes())
        miner = EmulatorMiner(hub, tmp_path / "few")
        hub.requests.clear()
        assert dump_changes(miner.read_changes(most=10)) == whole[:10]
        few = miner.count_requests()
        assert few["graphql"] <= 4
        assert dump_changes(miner.read_changes(most=10)) == whole[:10]
        assert miner.count_requests()["graphql"] == 1
        assert dump_changes(miner.read_changes()) == whole


def test_since_ends_the_crawl_and_bounds_the_changes(tmp_path: Path) -> None:
    with GitHub(make_world(tmp_path, seed=5, pull_requests=500)) as hub:
        whole = EmulatorMiner(hub, tmp_path / "whole").read_pulls()
        dates = sorted({pull.merged_at[:10] for pull in whole})
        since, until = dates[-8], dates[-3]
        hub.requests.clear()
        miner = EmulatorMiner(hub, tmp_path / "part")
        part = miner.read_pulls(since=since, until=until)
        assert part == [pull for pull in whole if since <= pull.merged_at[:10] <= until] != []
        assert miner.count_requests()["graphql"] < 10


def test_a_thousand_pull_requests_cost_at_most_forty_requests_and_sixty_points(tmp_path: Path) -> None:
    with GitHub(make_world(tmp_path, seed=7, pull_requests=1000)) as hub:
        miner = EmulatorMiner(hub, tmp_path / "here")
        count = len(miner.read_changes())
        cost = miner.count_requests()
    assert count > 750
    assert (cost["graphql"] + cost["rest"]) * 1000 / count <= 40
    assert cost["points"] * 1000 / count <= 60


def test_every_base_is_the_one_that_the_history_was_made_with(tmp_path: Path) -> None:
    world = make_world(tmp_path, seed=11, pull_requests=400)
    with GitHub(world) as hub:
        changes = EmulatorMiner(hub, tmp_path / "here").read_changes()
    about = world.find("ada/lib")
    assert about
    assert about.git_dir
    git = GitRepository(about.git_dir)
    for change in changes:
        request = change.pull_request
        if change.source_rejection is None and request.head_commit:
            ours = git.run_git("diff", "--no-renames", "--name-only", request.base_commit, request.merge_commit).split()
            api = about.pulls[request.number or 0]
            assert len(ours) == api.changed_files, request.name


def test_a_local_clone_is_read_and_never_written(shop: RepositoryBuilder, miner: EmulatorMiner, tmp_path: Path) -> None:
    shop.pull("Step", None, {"a.py": "a = 2\n"})
    shop.publish()
    local = tmp_path / "clones" / "ada__lib.git"
    shutil.copytree(shop.git_dir, local)
    before = sorted((path, path.stat().st_mtime_ns) for path in local.rglob("*"))
    assert [pull.title for pull in miner.read_pulls(clones=tmp_path / "clones")] == ["Step"]
    assert sorted((path, path.stat().st_mtime_ns) for path in local.rglob("*")) == before
    assert miner.count_requests()["git"] == 0


def test_a_repository_that_is_renamed_stays_one(shop: RepositoryBuilder, miner: EmulatorMiner, world: World) -> None:
    shop.pull("Before", None, {"a.py": "a = 2\n"})
    shop.publish()
    before = dump_changes(miner.read_changes())
    world.rename("ada/lib", "ada/core")
    shop.pull("After", "Fixes ada/core#1", {"a.py": "a = 3\n"})
    shop.publish()
    for word in ("github:ada/core", "github:ada/lib", "github:ADA/Core"):
        changes = miner.read_changes(word)
        assert dump_changes(changes[1:]) == before
        assert changes[0].pull_request.source == "github:ada/lib"
        assert any("is now called ada/core" in line for line in miner.messages)
    assert changes[0].pull_request.links[0].issue == "ada/lib#1"


def test_first_commits_are_dated_by_their_author(shop: RepositoryBuilder, miner: EmulatorMiner) -> None:
    shop.pull("Two", None, [{"a.py": "a = 2\n"}, {"a.py": "a = 3\n"}], how="squash")
    shop.publish()
    (mined,) = miner.read_pulls()
    first = shop.code.git("log", "-1", "--format=%at", f"{mined.head_commit}~1")
    assert mined.first_commit_at == datetime.fromtimestamp(int(first), UTC).isoformat(timespec="seconds")


def test_a_history_that_was_pushed_by_hand_is_read_as_well(world: World, miner: EmulatorMiner, tmp_path: Path) -> None:
    shop = RepositoryBuilder(world, tmp_path / "there", "ada/lib")
    assert isinstance(shop.code, TinyRepo)
    base = shop.commit("Begin", CODE)
    pull = shop.pull("Two", None, [{"a.py": "a = 2\n"}, {"a.py": "a = 3\n"}], how="open")
    shop.code.git("merge", "-q", "--ff-only", f"change-{pull.number}")
    pull.merge_commit, pull.merged_at, pull.closed_at = pull.head_sha, pull.updated_at, pull.updated_at
    shop.publish()
    (mined,) = miner.read_pulls()
    assert (mined.base_commit, mined.shape) == (base, Shape.REBASE)


def test_later_stages_find_the_clone_by_the_records_source(shop: RepositoryBuilder, miner: EmulatorMiner) -> None:
    made = shop.pull("Step", None, {"a.py": "a = 2\n"})
    shop.publish()
    (mined,) = miner.read_pulls("github:ADA/lib")
    clone = miner.open_services().clones.open(mined.source, mined.repo)
    assert made.merge_commit
    assert clone.has_commit(made.merge_commit)
    assert clone.resolve("HEAD") == made.merge_commit
