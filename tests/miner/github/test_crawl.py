"""From GitHub to pull requests: what is kept, in what order, and at what cost."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backends.git import Repository
from miner.changes import Reason
from taskdb.discussion import AuthorKind, LinkOrigin
from taskdb.records import Shape
from tests.github import GitHub, World
from tests.github.generate import make_world
from tests.github.handmade import Workshop
from tests.helpers import TinyRepo
from tests.miner.github.crawling import Miner, dumped

CODE = {"a.py": "a = 1\n", "CHANGES.md": "# Changes\n"}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def shop(world: World, tmp_path: Path) -> Workshop:
    """`ada/lib`, to be filled."""
    shop = Workshop(world, tmp_path / "there", "ada/lib")
    shop.commit("Begin", CODE)
    return shop


@pytest.fixture
def miner(world: World, tmp_path: Path) -> Iterator[Miner]:
    with GitHub(world) as hub:
        yield Miner(hub, tmp_path / "here")
    assert hub.violations == []


@pytest.mark.parametrize(("how", "shape"), [("merge", Shape.MERGE), ("squash", Shape.SQUASH), ("rebase", Shape.REBASE)])
def test_the_base_is_what_the_whole_change_stands_on(shop: Workshop, miner: Miner, how: str, shape: Shape) -> None:
    base = shop.code.git("rev-parse", "main")
    made = shop.pull("Two steps", None, [{"a.py": "a = 2\n"}, {"b.py": "b = 1\n"}], how=how)
    shop.publish()
    (found,) = miner.changes()
    assert (found.pull_request.shape, found.pull_request.base_commit) == (shape, base)
    assert (found.pull_request.merge_commit, found.pull_request.head_commit) == (made.merge_commit, made.head_sha)
    assert found.paths == ("a.py", "b.py")
    assert found.settled is None


def test_a_pull_request_is_kept_with_all_that_was_said_of_it(shop: Workshop, miner: Miner) -> None:
    wrong = shop.issue("It is wrong", "By one.\r\nAlways.", comments=["I see it, too."], labels=["bug"])
    pull = shop.pull(
        "Put it right", "Text", {"a.py": "a = 2\n"}, closes=[wrong.number], labels=["fix", "bug"], checks="FAILURE",
        author="helper[bot]",
    )  # fmt: skip
    shop.issue("Later", "Said later")
    wrong.comments += [type(wrong.comments[0])(9, None, "Solved by a = 2.", "2030-01-01T00:00:00Z")]
    shop.review(pull, "a.py", 1, "Why 2?", "Because.", hunk="@@ -1 +1 @@\n-a = 1\n+a = 2")
    shop.publish()
    (found,) = miner.pulls()
    assert (found.source, found.repo, found.name) == ("github:ada/lib", "ada/lib", f"ada__lib-{pull.number}")
    assert (found.title, found.body, found.labels) == ("Put it right", "Text", ("bug", "fix"))
    assert (found.author, found.author_kind, found.checks) == ("helper[bot]", AuthorKind.BOT, "failure")
    assert (found.problem_statement, found.hints) == ("It is wrong\n\nBy one.\nAlways.", "I see it, too.")
    assert [(link.issue, link.origin) for link in found.links] == [("ada/lib#1", LinkOrigin.FORGE)]
    said = miner.discussion(found)
    assert [remark.text for remark in said.issues[0].before] == ["I see it, too."]
    assert [(remark.text, remark.author_kind) for remark in said.issues[0].after] == [
        ("Solved by a = 2.", AuthorKind.DELETED)
    ]
    (thread,) = said.threads
    assert (thread.path, thread.side, thread.line, thread.diff_hunk[:2]) == ("a.py", "right", 1, "@@")
    assert [remark.text for remark in thread.remarks] == ["Why 2?", "Because."]


def test_links_are_found_wherever_a_person_wrote_them(shop: Workshop, miner: Miner) -> None:
    numbers = [shop.issue(f"Fault {n}", f"Body {n}").number for n in range(4)]
    other = shop.pull("Another", None, {"b.py": ""})
    files = [{"a.py": "a = 3\n"}, {"CHANGES.md": f"# Changes\n\n- Add that (#{numbers[3]}, #{other.number})\n"}]
    shop.pull(f"Fix #{numbers[0]}", f"Closes #{numbers[1]}, #99.\n\n> fixes #{numbers[2]}", files)
    shop.code.minute += 1
    shop.publish()
    found = miner.pulls()[0]
    links = [(link.issue.partition("#")[2], link.origin.value, link.closes) for link in found.links]
    assert links == [
        ("1", "title", True), ("2", "body", True), ("99", "body", True), ("1", "commit", True),
        ("4", "changelog", False), (str(other.number), "changelog", False),
    ]  # fmt: skip
    assert found.problem_statement == "Fault 0\n\nBody 0\n\nFault 1\n\nBody 1"
    issues = {issue.issue: issue.is_pull_request for issue in miner.discussion(found).issues}
    assert issues == {"ada/lib#1": False, "ada/lib#2": False, "ada/lib#4": False, f"ada/lib#{other.number}": True}


def test_what_the_default_line_does_not_hold_is_no_candidate(shop: Workshop, miner: Miner) -> None:
    shop.code.git("branch", "1.x")
    shop.pull("For the old ones", None, {"a.py": "a = 0\n"}, base="1.x")
    shop.publish()
    (found,) = miner.changes()
    assert found.settled
    assert found.settled[0] is Reason.NOT_IN_DEFAULT_LINE


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_a_merge_commit_that_is_not_named_is_found_in_the_clone(shop: Workshop, miner: Miner, how: str) -> None:
    pull = shop.pull("Step", None, [{"a.py": "a = 2\n"}, {"a.py": "a = 3\n"}], how=how)
    pull.merged_at, named, pull.merge_commit = "2024-03-01T13:00:00Z", pull.merge_commit, None
    shop.publish()
    (found,) = miner.pulls()
    assert found.merge_commit == named


def test_a_pull_request_without_any_merge_commit_is_told(shop: Workshop, miner: Miner) -> None:
    pull = shop.pull("Step", None, {"a.py": "a = 2\n"}, how="squash")
    shop.code.git("reset", "-q", "--hard", "HEAD~1")
    pull.merge_commit = None
    shop.publish()
    (found,) = miner.changes()
    assert found.settled
    assert found.settled[0] is Reason.NO_MERGE_COMMIT


def test_long_lists_are_read_to_their_end(shop: Workshop, miner: Miner) -> None:
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
    said = miner.discussion(miner.pulls()[0])
    assert [len(said.issues), len(said.issues[0].before), len(said.threads)] == [60, 230, 131]
    assert len(said.threads[-1].remarks) == 120


def test_a_second_crawl_asks_only_for_what_is_new(shop: Workshop, miner: Miner) -> None:
    for n in range(20):
        shop.pull(f"Step {n}", None, {"a.py": f"a = {n + 10}\n"}, how="squash")
    shop.publish()
    first = dumped(miner.changes())
    miner.asked()
    assert dumped(miner.changes()) == first
    nothing_new = miner.asked()
    assert (nothing_new["graphql"] + nothing_new["rest"], nothing_new["git"]) == (1, 0)
    newest = shop.pull("One more", None, {"a.py": "a = 99\n"})
    shop.publish()
    again = miner.pulls()
    assert [pull.number for pull in again[:2]] == [newest.number, 20]
    assert dumped(miner.changes())[1:] == first
    one_new = miner.asked()
    assert one_new["graphql"] + one_new["rest"] <= 3


def test_a_repository_that_is_as_it_was_is_not_told_again(shop: Workshop, miner: Miner) -> None:
    shop.pull("One", None, {"a.py": "a = 2\n"})
    before = shop.publish()
    dates = before.pushed_at, before.updated_at
    miner.pulls()
    shop.pull("Two", None, {"a.py": "a = 3\n"})
    shop.publish().pushed_at, before.updated_at = dates
    miner.hub.requests.clear()
    assert [pull.title for pull in miner.pulls()] == ["Two", "One"]
    assert [asked.status for asked in miner.hub.requests if asked.kind in ("rest", "free")] == [304]


def test_the_first_word_about_a_pull_request_counts(shop: Workshop, miner: Miner) -> None:
    pull = shop.pull("As it was", "Text", {"a.py": "a = 2\n"})
    shop.publish()
    miner.pulls()
    pull.title, pull.updated_at = "As it became", "2031-01-01T00:00:00Z"
    assert [found.title for found in miner.pulls()] == ["As it was"]


def test_an_interrupted_second_crawl_leaves_no_hole(tmp_path: Path) -> None:
    world = make_world(tmp_path, seed=3, pull_requests=300)
    with GitHub(world) as hub:
        undisturbed = dumped(Miner(hub, tmp_path / "undisturbed").changes())
        everything = world.find("ada/lib")
        assert everything
        pulls = dict(everything.pulls)
        merged = sorted((p for p in pulls.values() if p.merged_at), key=lambda p: p.updated_at)
        miner = Miner(hub, tmp_path / "here")
        everything.pulls = {p.number: p for p in merged[:100]}
        miner.pulls()
        everything.pulls = {p.number: p for p in merged[:240]}
        assert len(miner.pulls(most=5)) == 5  # stopped after the first of three pages of new ones
        everything.pulls = pulls
        assert dumped(miner.changes()) == undisturbed


def test_a_cursor_that_github_takes_no_more_costs_the_pages_above_it(tmp_path: Path) -> None:
    with GitHub(make_world(tmp_path, seed=3, pull_requests=300)) as hub:
        undisturbed = dumped(Miner(hub, tmp_path / "undisturbed").changes())
        miner = Miner(hub, tmp_path / "here")
        miner.pulls(most=60)
        [path] = (tmp_path / "here").rglob("journal.sqlite")
        with sqlite3.connect(path) as journal:
            changed = journal.execute("UPDATE spans SET cursor = 'b2xk' WHERE cursor IS NOT NULL")
            assert changed.rowcount == 1
        journal.close()
        assert dumped(miner.changes()) == undisturbed
        assert hub.violations == []


def test_a_limit_asks_for_few_pages_and_the_newest(tmp_path: Path) -> None:
    with GitHub(make_world(tmp_path, seed=5, pull_requests=500)) as hub:
        whole = dumped(Miner(hub, tmp_path / "whole").changes())
        miner = Miner(hub, tmp_path / "few")
        hub.requests.clear()
        assert dumped(miner.changes(most=10)) == whole[:10]
        few = miner.asked()
        assert few["graphql"] <= 4
        assert dumped(miner.changes(most=10)) == whole[:10]
        assert miner.asked()["graphql"] == 1
        assert dumped(miner.changes()) == whole


def test_since_ends_the_crawl_and_bounds_what_is_told(tmp_path: Path) -> None:
    with GitHub(make_world(tmp_path, seed=5, pull_requests=500)) as hub:
        whole = Miner(hub, tmp_path / "whole").pulls()
        dates = sorted({pull.merged_at[:10] for pull in whole})
        since, until = dates[-8], dates[-3]
        hub.requests.clear()
        miner = Miner(hub, tmp_path / "part")
        part = miner.pulls(since=since, until=until)
        assert part == [pull for pull in whole if since <= pull.merged_at[:10] <= until] != []
        assert miner.asked()["graphql"] < 10


def test_a_thousand_pull_requests_cost_at_most_forty_requests_and_sixty_points(tmp_path: Path) -> None:
    with GitHub(make_world(tmp_path, seed=7, pull_requests=1000)) as hub:
        miner = Miner(hub, tmp_path / "here")
        count = len(miner.changes())
        cost = miner.asked()
    assert count > 750
    assert (cost["graphql"] + cost["rest"]) * 1000 / count <= 40
    assert cost["points"] * 1000 / count <= 60


def test_every_base_is_the_one_that_the_history_was_made_with(tmp_path: Path) -> None:
    world = make_world(tmp_path, seed=11, pull_requests=400)
    with GitHub(world) as hub:
        changes = Miner(hub, tmp_path / "here").changes()
    about = world.find("ada/lib")
    assert about
    assert about.git_dir
    git = Repository(about.git_dir)
    for change in changes:
        request = change.pull_request
        if change.settled is None and request.head_commit:
            ours = git.git("diff", "--no-renames", "--name-only", request.base_commit, request.merge_commit).split()
            api = about.pulls[request.number or 0]
            assert len(ours) == api.changed_files, request.name


def test_a_local_clone_is_read_and_never_written(shop: Workshop, miner: Miner, tmp_path: Path) -> None:
    shop.pull("Step", None, {"a.py": "a = 2\n"})
    shop.publish()
    local = tmp_path / "clones" / "ada__lib.git"
    shutil.copytree(shop.git_dir, local)
    before = sorted((path, path.stat().st_mtime_ns) for path in local.rglob("*"))
    assert [pull.title for pull in miner.pulls(clones=tmp_path / "clones")] == ["Step"]
    assert sorted((path, path.stat().st_mtime_ns) for path in local.rglob("*")) == before
    assert miner.asked()["git"] == 0


def test_a_repository_that_is_renamed_stays_one(shop: Workshop, miner: Miner, world: World) -> None:
    shop.pull("Before", None, {"a.py": "a = 2\n"})
    shop.publish()
    before = dumped(miner.changes())
    world.rename("ada/lib", "ada/core")
    shop.pull("After", "Fixes ada/core#1", {"a.py": "a = 3\n"})
    shop.publish()
    for word in ("github:ada/core", "github:ada/lib", "github:ADA/Core"):
        found = miner.changes(word)
        assert dumped(found[1:]) == before
        assert found[0].pull_request.source == "github:ada/lib"
        assert any("is called ada/core now" in line for line in miner.said)
    assert found[0].pull_request.links[0].issue == "ada/lib#1"


def test_first_commits_are_dated_by_their_author(shop: Workshop, miner: Miner) -> None:
    shop.pull("Two", None, [{"a.py": "a = 2\n"}, {"a.py": "a = 3\n"}], how="squash")
    shop.publish()
    (found,) = miner.pulls()
    first = shop.code.git("log", "-1", "--format=%at", f"{found.head_commit}~1")
    assert found.first_commit_at == datetime.fromtimestamp(int(first), UTC).isoformat(timespec="seconds")


def test_a_history_that_was_pushed_by_hand_is_read_as_well(world: World, miner: Miner, tmp_path: Path) -> None:
    shop = Workshop(world, tmp_path / "there", "ada/lib")
    assert isinstance(shop.code, TinyRepo)
    base = shop.commit("Begin", CODE)
    pull = shop.pull("Two", None, [{"a.py": "a = 2\n"}, {"a.py": "a = 3\n"}], how="open")
    shop.code.git("merge", "-q", "--ff-only", f"change-{pull.number}")
    pull.merge_commit, pull.merged_at, pull.closed_at = pull.head_sha, pull.updated_at, pull.updated_at
    shop.publish()
    (found,) = miner.pulls()
    assert (found.base_commit, found.shape) == (base, Shape.REBASE)


def test_later_stages_find_the_clone_by_the_records_source(shop: Workshop, miner: Miner) -> None:
    made = shop.pull("Step", None, {"a.py": "a = 2\n"})
    shop.publish()
    (found,) = miner.pulls("github:ADA/lib")
    clone = miner.services().clones.open(found.source, found.repo)
    assert made.merge_commit
    assert clone.has_commit(made.merge_commit)
    assert clone.resolve("HEAD") == made.merge_commit
