"""Worlds made by hand, around real code: every commit is a real one in a work tree, as a person would make it.

`sample_world` is the sample project of the end-to-end tests on such a GitHub: from API to certified tasks.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import sample
from tests.github.git_reader import GitReader
from tests.github.world import Actor, Comment, Issue, Label, PullRequest, Repository, ReviewComment, Thread, World
from tests.helpers import TinyRepo

Files = Mapping[str, str | bytes | None]
MIT = ("mit", "MIT License", "MIT")


class Workshop:
    """A repository of a `World` that a test fills: commits, issues, pull requests. Numbers count up from 1.

    `publish` (also at the end of a `with`) writes the bare clone that the server hands out; call it again after more.
    """

    def __init__(self, world: World, folder: Path, name: str = "ada/greet") -> None:
        owner, short = name.split("/")
        self.world = world
        self.code = TinyRepo(folder / f"{owner}__{short}")
        self.git_dir = folder / f"{owner}__{short}.git"
        born = self._now()
        self.repository = world.add(
            Repository(
                world.new_id(), world.actor(owner), short, None, born, born, born, license=MIT,
                languages={"Python": 4000}, stars=12,
            )
        )  # fmt: skip
        self._number = 0

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, *_: object) -> None:
        self.publish()

    def _now(self) -> str:
        """The time of the repository's last commit: a minute passes with each."""
        when = dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC) + dt.timedelta(minutes=self.code.minute)
        return when.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _actor(self, login: str | None) -> Actor | None:
        """None is a deleted account; a login that ends in "[bot]" is a bot's."""
        if login and login.endswith("[bot]"):
            return self.world.actor(login.removesuffix("[bot]"), "Bot")
        return self.world.actor(login) if login else None

    def _labels(self, names: Sequence[str]) -> list[Label]:
        known = {label.name: label for label in self.repository.labels}
        for name in names:
            if name not in known:
                known[name] = Label(name, self.world.new_id())
                self.repository.labels.append(known[name])
        return [known[name] for name in names]

    def commit(self, message: str, files: Files) -> str:
        """A commit right on the present branch, without a pull request; its id."""
        return self.code.commit(message, files)

    def issue(
        self, title: str, body: str | None, *, author: str | None = "eve", comments: Sequence[str] = (),
        labels: Sequence[str] = (),
    ) -> Issue:  # fmt: skip
        """An open issue; a pull request with `closes` closes it."""
        now = self._now()
        issue = Issue(
            self._next(), self.world.new_id(), title, body, self._actor(author), now, now, labels=self._labels(labels)
        )
        issue.comments = [Comment(self.world.new_id(), self._actor("bob"), text, now) for text in comments]
        self.repository.issues[issue.number] = issue
        return issue

    def pull(
        self, title: str, body: str | None, files: Files | Sequence[Files], *, how: str = "merge",
        author: str | None = "eve", closes: Sequence[int] = (), labels: Sequence[str] = (), base: str = "main",
        fork: str | None = None, checks: str | None = "SUCCESS", comments: Sequence[str] = (),
    ) -> PullRequest:  # fmt: skip
        """A pull request with one commit per set of files.

        `how`: merge, squash, rebase, closed (without a merge) or open. `fork` names the head's repository; "" is a
        deleted one. `closes` are the issues that GitHub links to it, and closes when it is merged into `main`.
        """
        number, opened = self._next(), self._now()
        self.code.git("checkout", "-q", base)
        base_sha = self.code.git("rev-parse", "HEAD")
        branch = f"change-{number}"
        self.code.git("checkout", "-q", "-b", branch)
        parts: Sequence[Files] = [files] if isinstance(files, Mapping) else files
        for part in parts:
            self.code.commit(title, part)
        head_sha = self.code.git("rev-parse", "HEAD")
        self.code.git("update-ref", f"refs/pull/{number}/head", head_sha)
        self.code.git("checkout", "-q", base)
        merged = self._merge(how, number, title, branch)
        now, person = self._now(), self._actor(author)
        pull = PullRequest(
            number, self.world.new_id(), title, body, person, opened, now, base, base_sha, branch, head_sha,
            self.repository.full_name if fork is None else fork or None, head_owner=person,
            closed_at=None if how == "open" else now, merged_at=now if merged else None, merge_commit=merged,
            merged_by=self.repository.owner if merged else None, labels=self._labels(labels), checks=checks,
            closing_issues=[(self.repository.full_name, n) for n in closes], commits=len(parts),
        )  # fmt: skip
        pull.comments = [Comment(self.world.new_id(), self._actor("bob"), text, now) for text in comments]
        changed = GitReader(self.code.path / ".git").files_of(pull)
        pull.changed_files, pull.additions = len(changed), sum(f.additions for f in changed)
        pull.deletions = sum(f.deletions for f in changed)
        self.repository.pulls[number] = pull
        for issue in (self.repository.issues[n] for n in closes if merged and base == self.repository.default_branch):
            issue.closed_at = issue.updated_at = now
            issue.state_reason = "COMPLETED"
        return pull

    def _merge(self, how: str, number: int, title: str, branch: str) -> str | None:
        if how in ("closed", "open"):
            return None
        self.code.minute += 1
        if how == "merge":
            text = f"Merge pull request #{number} from eve/{branch}\n\n{title}"
            self.code.git("merge", "-q", "--no-ff", "-m", text, branch)
        elif how == "squash":
            self.code.git("merge", "-q", "--squash", branch)
            self.code.git("commit", "-q", "--allow-empty", "-m", f"{title} (#{number})")
        else:  # GitHub rewrites the commits of a rebase merge, even where it could only move the branch
            picked = self.code.git("rev-list", "--reverse", f"HEAD..{branch}").split()
            self.code.git("cherry-pick", "--no-ff", *picked)
        self.code.git("branch", "-q", "-D", branch)
        return self.code.git("rev-parse", "HEAD")

    def review(
        self, pull: PullRequest, path: str, line: int | None, *remarks: str, author: str | None = "ada",
        start_line: int | None = None, hunk: str = "@@ -1 +1 @@\n-old\n+new",
    ) -> Thread:  # fmt: skip
        """A review thread of a pull request, with these remarks; a `line` of None is an outdated one's."""
        ids = [self.world.new_id() for _ in remarks]
        said = [
            ReviewComment(
                ids[n], self._actor(author), text, pull.updated_at, diff_hunk=hunk, commit=pull.head_sha,
                reply_to=ids[0] if n else None,
            )
            for n, text in enumerate(remarks)
        ]  # fmt: skip
        thread = Thread(self.world.new_id(), path, line, said, start_line=start_line, original_line=line or 1)
        pull.threads.append(thread)
        return thread

    def publish(self) -> Repository:
        """Write the bare clone (with every refs/pull/N/head) that the server hands out."""
        if not self.git_dir.exists():
            self.code.git("init", "-q", "--bare", "-b", self.repository.default_branch, str(self.git_dir))
        gone = [f"^refs/heads/{pull.head_ref}" for pull in self.repository.pulls.values()]
        kept = ["refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*", "refs/pull/*:refs/pull/*"]
        self.code.git("push", "-q", "--force", str(self.git_dir), *kept, *gone)
        self.repository.git_dir = self.git_dir
        self.repository.pushed_at = self.repository.updated_at = self._now()
        return self.repository


def sample_world(folder: Path, name: str = "ada/greet", world: World | None = None) -> World:
    """The sample project (tests/sample.py) on GitHub: two bug fixes with tests and issues, one change of the README.

    The merge commits and numbers are not those of `make_sample`: issues take numbers, too (1 and 4; 2, 3 and 5 are
    pull requests).
    """
    world = world or World()
    with Workshop(world, folder, name) as shop:
        shop.commit(
            "Begin",
            {
                "pyproject.toml": sample.PYPROJECT, "LICENSE": sample.LICENSE, "README.md": "# greet\n",
                "greet/__init__.py": sample.GREET, "greet/words.py": sample.COUNT,
                "tests/test_greet.py": sample.TEST_GREET, "tests/test_words.py": sample.TEST_COUNT,
            },
        )  # fmt: skip
        polite = "greet(' Ada ') gives 'Hello  Ada ', it should be 'Hello, Ada'."
        blanks = shop.issue("Greetings keep stray blanks", polite, comments=["I see it, too."], labels=["bug"])
        fix = shop.pull(
            "Strip names", f"Fixes #{blanks.number}.\n\n{polite}",
            {"greet/__init__.py": sample.GREET_POLITE, "tests/test_greet.py": sample.TEST_POLITE},
            closes=[blanks.number], labels=["bug"],
        )  # fmt: skip
        shop.review(fix, "greet/__init__.py", 3, "Why strip?", "Names come from forms.")
        shop.pull("Explain the package", None, {"README.md": "# greet\n\nSays hello.\n"}, author=None, how="squash")
        gaps = "count(' a   b ') gives 6, it should be 2: a run of blanks is one gap."
        miscounted = shop.issue("Words are miscounted", gaps)
        shop.pull(
            "Words are miscounted", f"Closes #{miscounted.number}\n\n{gaps}",
            {"greet/words.py": sample.COUNT_RIGHT, "tests/test_words.py": sample.TEST_COUNT_RIGHT},
            closes=[miscounted.number], how="squash", fork="",
        )  # fmt: skip
    return world
