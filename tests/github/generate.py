"""A generated GitHub: `make_world` returns a varied repository of any size, the same for the same seed.

The API differs from the code in all ways that occur on GitHub: deleted accounts and forks, bots, empty
and null bodies, links without keywords and keywords without links, old base names, missing merge commits, unused
numbers, many pull requests updated in the same second.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from random import Random

from tests.github.history import START, STEP, CodeChange, RepositoryHistory
from tests.github.world import (
    Actor,
    Issue,
    Label,
    PullRequestReview,
    ReviewComment,
    ServerComment,
    ServerPullRequest,
    ServerRepository,
    ServerReviewThread,
    World,
)

LABELS = ("bug", "enhancement", "documentation", "dependencies", "good first issue", "area: core", "wontfix")
CLOSERS = ("Fixes #{0}", "closes #{0}", "Resolves: #{0}.", "This fixes #{0}, fixes #{1}", "See #{0}", "Closes {2}#{0}")
CHECKS = (None, None, None, "SUCCESS", "SUCCESS", "SUCCESS", "SUCCESS", "FAILURE", "PENDING", "ERROR")
MIT = ("mit", "MIT License", "MIT")
LONG = "A long story. " * 4600  # 64 kB, about the longest body that GitHub stores


def format_timestamp(seconds: int) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _DiscussionWriter:
    """Writes the discussion of a `RepositoryHistory`."""

    def __init__(self, world: World, repository: ServerRepository, rng: Random, history: RepositoryHistory) -> None:
        self.world = world
        self.repository = repository
        self.rng = rng
        self.history = history
        self.people = [world.actor(name) for name in ("ada", "bob", "eve", "kim", "lee", "mia")]
        self.bot = world.actor("dependabot", "Bot")
        self.mannequin = world.actor("imported-jo", "Mannequin")
        repository.labels = [Label(name, world.new_id()) for name in LABELS]
        self.forks = ("bob/lib-fork", None, repository.full_name)

    def person(self) -> Actor | None:
        draw = self.rng.random()
        return None if draw < 0.03 else self.mannequin if draw < 0.04 else self.rng.choice(self.people)

    def comments(self, when: int, most: int) -> list[ServerComment]:
        count = self.rng.randrange(most + 1)
        return [
            ServerComment(
                self.world.new_id(), self.person(), f"I see it, too ({n}).", format_timestamp(when + 600 * n + 300)
            )
            for n in range(count)
        ]

    def issue(self, number: int, when: int) -> Issue:
        rng = self.rng
        kind = rng.choice(("Step is wrong", "Crash in a part", "Überlauf bei großen Zahlen 💥", "How do I use it?"))
        body = rng.choice((None, "", "It gives the wrong sum.\r\n\r\n```\nTraceback\n```\r\n", "Please fix."))
        comments = self.comments(when, 5)
        updated = comments[-1].created_at if comments else format_timestamp(when)
        issue = Issue(
            number,
            self.world.new_id(),
            f"{kind} ({number})",
            body,
            self.person(),
            format_timestamp(when),
            updated,
            labels=rng.sample(self.repository.labels, rng.randrange(3)),
            comments=comments,
        )
        self.repository.issues[number] = issue
        return issue

    def threads(self, change: CodeChange, when: int) -> list[ServerReviewThread]:
        """Return review threads on the files of a change: also outdated ones, on several lines, on a whole file."""
        rng, server_review_threads = self.rng, []
        paths = [path for path, content in change.files.items() if content and b"\x00" not in content]
        for path in rng.sample(paths, min(len(paths), rng.randrange(3))):
            ids = [self.world.new_id() for _ in range(rng.randrange(1, 4))]
            hunk = f"@@ -1,3 +1,3 @@\n {path}\n-old\n+new"
            response = [
                ReviewComment(
                    i,
                    self.person(),
                    f"Why so? ({n})",
                    format_timestamp(when + 400 + 60 * n),
                    diff_hunk=hunk,
                    reply_to=ids[0] if n else None,
                )
                for n, i in enumerate(ids)
            ]
            line, draw = rng.randrange(1, 30), rng.random()
            thread = ServerReviewThread(self.world.new_id(), path, line, response, resolved=rng.random() < 0.5)
            if draw < 0.2:
                thread.line, thread.original_line = None, line
            elif draw < 0.35:
                thread.start_line, thread.line = line, line + 3
            elif draw < 0.4:
                thread.subject, thread.line, thread.side = "FILE", None, "LEFT"
            server_review_threads.append(thread)
        return server_review_threads

    def body(self, number: int, links: list[int]) -> str | None:
        rng = self.rng
        if not links:
            return rng.choice((None, "", "Nothing to add.", "Some words\r\nwith another line end.", "日本語"))
        other = rng.choice(links)
        text = rng.choice(CLOSERS).format(links[0], other, self.repository.full_name)
        return LONG + text if number % 997 == 0 else f"It was wrong.\n\n{text}"

    def pull(self, number: int, change: CodeChange, links: list[int]) -> ServerPullRequest:
        rng, when = self.rng, change.when
        author = self.bot if change.kind == "dependency" else self.person()
        body = self.body(number, links)
        title = f'Revert "{change.word}"' if change.kind == "revert" else change.word
        pull = ServerPullRequest(
            number,
            self.world.new_id(),
            title,
            body,
            author,
            format_timestamp(when),
            format_timestamp(when),
            change.base_ref,
            "",
            f"change-{number}",
            "",
            rng.choice(self.forks),
            head_owner=author,
            changed_files=len(change.files),
            additions=change.additions,
            deletions=change.deletions,
            commits=change.commits,
            labels=rng.sample(self.repository.labels, rng.choice((0, 0, 1, 1, 2, 4))),
            checks=rng.choice(CHECKS),
            comments=self.comments(when, 3),
            threads=self.threads(change, when) if rng.random() < 0.3 else [],
        )
        if change.base_ref == "main" and number < len(self.history.changes) // 5:
            pull.base_ref = "master"  # the branch was renamed since
        self._close(pull, change)
        keyword = body and body.lower().rpartition("\n")[2]
        if keyword and change.base_ref == "main" and not keyword.startswith("see"):
            pull.closing_issues = [(self.repository.full_name, n) for n in links if f"#{n}" in keyword]
        elif links and rng.random() < 0.3:  # linked manually: no keyword
            pull.closing_issues = [(self.repository.full_name, links[0])]
        if rng.random() < 0.01:
            pull.closing_issues.append(("ada/elsewhere", 1))
        if rng.random() < 0.3:
            pull.reviews = [
                PullRequestReview(self.world.new_id(), self.person(), "APPROVED", "", format_timestamp(when + 1800))
            ]
        self.repository.pulls[number] = pull
        return pull

    def _close(self, pull: ServerPullRequest, change: CodeChange) -> None:
        """Merge, close or leave open; the last update is the merge, a comment, or a bulk edit of labels."""
        rng, when = self.rng, change.when
        end = when + 3600
        if change.merged:
            pull.merged_at = pull.closed_at = format_timestamp(end)
            pull.merged_by = rng.choice(self.people)
        elif change.shape == "closed":
            pull.closed_at = format_timestamp(end)
        else:
            pull.draft = rng.random() < 0.3
        last = [end, *(end + 86400 * rng.randrange(30) for _ in range(1) if rng.random() < 0.3)]
        pull.updated_at = format_timestamp(max(last))
        if rng.random() < 0.05:
            pull.updated_at = format_timestamp(START + STEP * 10_000 // 2)  # all in one second


def _assign_numbers(
    world: World, repository: ServerRepository, rng: Random, history: RepositoryHistory, count: int
) -> list[int]:
    """Assign the numbers: issues, pull requests, and some unused ones. Return those of the pull requests."""
    writer = _DiscussionWriter(world, repository, rng, history)
    number, opened, plans = 0, list[int](), list[tuple[int, list[int]]]()
    for index in range(count):
        when = START + index * STEP
        number += 1
        while rng.random() < 0.35:
            writer.issue(number, when - 1000)
            opened.append(number)
            number += 2 if rng.random() < 0.03 else 1
        history.pull(number, when, most_files=index == min(16, count - 1))
        links = [opened.pop(rng.randrange(len(opened))) for _ in range(2) if opened and rng.random() < 0.35]
        plans.append((number, links))
    for number, links in plans:
        pull = writer.pull(number, history.changes[number], links)
        for name, linked in pull.closing_issues:
            if pull.merged_at and name == repository.full_name:
                issue = repository.issues[linked]
                issue.closed_at = issue.updated_at = pull.merged_at
                issue.state_reason = "COMPLETED"
    return [number for number, _ in plans]


def make_world(
    folder: Path, seed: int = 1, *, pull_requests: int = 200, name: str = "ada/lib", world: World | None = None
) -> World:
    """Return a world with a repository of this many pull requests, its clone in `folder`, and a linked repository."""
    rng, world = Random(seed), world or World()
    owner, short = name.split("/")
    git_dir = folder / f"{owner}__{short}.git"
    end = format_timestamp(START + pull_requests * STEP)
    repository = world.add(
        ServerRepository(
            world.new_id(),
            world.actor(owner),
            short,
            git_dir,
            format_timestamp(START),
            end,
            end,
            license=MIT,
            languages={"Python": 100_000, "Shell": 900},
            description="Made for a test",
            stars=rng.randrange(5000),
        )
    )
    if not world.find("ada/elsewhere"):
        elsewhere = ServerRepository(
            world.new_id(), world.actor("ada"), "elsewhere", None, format_timestamp(START), end, end
        )
        world.add(elsewhere).issues[1] = Issue(
            1, world.new_id(), "Also there", None, None, format_timestamp(START), format_timestamp(START)
        )
    history = RepositoryHistory(rng)
    numbers = _assign_numbers(world, repository, rng, history, pull_requests)
    oids = history.stream.write(git_dir, history.refs())
    for number in numbers:
        pull, change = repository.pulls[number], history.changes[number]
        pull.base_sha, pull.head_sha = oids[change.base], oids[change.head]
        if change.merged and rng.random() > 0.01:  # GitHub has lost the commit of some old ones
            pull.merge_commit = oids[change.merged]
        elif not change.merged and rng.random() < 0.5:
            pull.test_merge = f"{rng.getrandbits(160):040x}"
        for thread in pull.threads:
            for comment in thread.comments:
                comment.commit = pull.head_sha
    return world
