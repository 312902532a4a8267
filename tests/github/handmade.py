"""Worlds around real code: every commit is made in a work tree.

`make_sample_world` is the sample project of the end-to-end tests on such a GitHub: from API to certified tasks.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import sample
from tests.github.git_reader import GitReader
from tests.github.world import (
    Actor,
    Issue,
    Label,
    ReviewComment,
    ServerComment,
    ServerPullRequest,
    ServerRepository,
    ServerReviewThread,
    World,
)
from tests.helpers import TinyRepo

Files = Mapping[str, str | bytes | None]
MIT = ("mit", "MIT License", "MIT")


class RepositoryBuilder:
    """A repository of a `World` that a test fills with commits, issues and pull requests. Numbers start at 1.

    `publish` (also called at the end of a `with`) writes the bare clone that the server serves.
    Call it again after changes.
    """

    def __init__(self, world: World, folder: Path, name: str = "ada/greet") -> None:
        owner, short = name.split("/")
        self.world = world
        self.code = TinyRepo(folder / f"{owner}__{short}")
        self.git_dir = folder / f"{owner}__{short}.git"
        born = self._advance_clock()
        self.repository = world.add(
            ServerRepository(
                world.new_id(),
                world.actor(owner),
                short,
                None,
                born,
                born,
                born,
                license=MIT,
                languages={"Python": 4000},
                stars=12,
            )
        )
        self._number = 0

    def __enter__(self) -> RepositoryBuilder:
        return self

    def __exit__(self, *_: object) -> None:
        self.publish()

    def _advance_clock(self) -> str:
        """Return the time of the repository's last commit: one minute per commit."""
        when = dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC) + dt.timedelta(minutes=self.code.minute)
        return when.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _actor(self, login: str | None) -> Actor | None:
        """Return the account; None is a deleted account, and a login that ends in "[bot]" is a bot's."""
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
        """Commit directly to the current branch, without a pull request; return its id."""
        return self.code.commit(message, files)

    def issue(
        self,
        title: str,
        body: str | None,
        *,
        author: str | None = "eve",
        comments: Sequence[str] = (),
        labels: Sequence[str] = (),
    ) -> Issue:
        """Add an open issue; a pull request with `closes` closes it."""
        now = self._advance_clock()
        issue = Issue(
            self._next_number(),
            self.world.new_id(),
            title,
            body,
            self._actor(author),
            now,
            now,
            labels=self._labels(labels),
        )
        issue.comments = [ServerComment(self.world.new_id(), self._actor("bob"), text, now) for text in comments]
        self.repository.issues[issue.number] = issue
        return issue

    def pull(
        self,
        title: str,
        body: str | None,
        files: Files | Sequence[Files],
        *,
        how: str = "merge",
        author: str | None = "eve",
        closes: Sequence[int] = (),
        labels: Sequence[str] = (),
        base: str = "main",
        fork: str | None = None,
        checks: str | None = "SUCCESS",
        comments: Sequence[str] = (),
    ) -> ServerPullRequest:
        """Add a pull request with one commit per set of files.

        `how`: merge, squash, rebase, closed (without a merge) or open. `fork` names the head's repository; "" is a
        deleted one. `closes` are the issues that GitHub links to it and closes when it is merged into `main`.
        """
        number, opened = self._next_number(), self._advance_clock()
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
        now, person = self._advance_clock(), self._actor(author)
        pull = ServerPullRequest(
            number,
            self.world.new_id(),
            title,
            body,
            person,
            opened,
            now,
            base,
            base_sha,
            branch,
            head_sha,
            self.repository.full_name if fork is None else fork or None,
            head_owner=person,
            closed_at=None if how == "open" else now,
            merged_at=now if merged else None,
            merge_commit=merged,
            merged_by=self.repository.owner if merged else None,
            labels=self._labels(labels),
            checks=checks,
            closing_issues=[(self.repository.full_name, n) for n in closes],
            commits=len(parts),
        )
        pull.comments = [ServerComment(self.world.new_id(), self._actor("bob"), text, now) for text in comments]
        changed = GitReader(self.code.path / ".git").list_files(pull)
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
        else:  # GitHub rewrites the commits of a rebase merge even if a fast-forward were possible
            picked = self.code.git("rev-list", "--reverse", f"HEAD..{branch}").split()
            self.code.git("cherry-pick", "--no-ff", *picked)
        self.code.git("branch", "-q", "-D", branch)
        return self.code.git("rev-parse", "HEAD")

    def review(
        self,
        pull: ServerPullRequest,
        path: str,
        line: int | None,
        *remarks: str,
        author: str | None = "ada",
        start_line: int | None = None,
        hunk: str = "@@ -1 +1 @@\n-old\n+new",
    ) -> ServerReviewThread:
        """Add a review thread with these comments to a pull request; `line` is None for an outdated one."""
        ids = [self.world.new_id() for _ in remarks]
        response = [
            ReviewComment(
                ids[n],
                self._actor(author),
                text,
                pull.updated_at,
                diff_hunk=hunk,
                commit=pull.head_sha,
                reply_to=ids[0] if n else None,
            )
            for n, text in enumerate(remarks)
        ]
        thread = ServerReviewThread(
            self.world.new_id(), path, line, response, start_line=start_line, original_line=line or 1
        )
        pull.threads.append(thread)
        return thread

    def publish(self) -> ServerRepository:
        """Write the bare clone (with every refs/pull/N/head) that the server serves."""
        if not self.git_dir.exists():
            self.code.git("init", "-q", "--bare", "-b", self.repository.default_branch, str(self.git_dir))
        gone = [f"^refs/heads/{pull.head_ref}" for pull in self.repository.pulls.values()]
        kept = ["refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*", "refs/pull/*:refs/pull/*"]
        self.code.git("push", "-q", "--force", str(self.git_dir), *kept, *gone)
        self.repository.git_dir = self.git_dir
        self.repository.pushed_at = self.repository.updated_at = self._advance_clock()
        return self.repository


def make_sample_world(folder: Path, name: str = "ada/greet", world: World | None = None) -> World:
    """Return the sample project (tests/sample.py) on GitHub: two bug fixes with tests and issues, a README change.

    The merge commits and numbers differ from those of `make_sample`: issues use numbers as well (1, 4; 2, 3 and 5 are
    pull requests).
    """
    world = world or World()
    with RepositoryBuilder(world, folder, name) as shop:
        shop.commit(
            "Begin",
            {
                "pyproject.toml": sample.PYPROJECT,
                "LICENSE": sample.LICENSE,
                "README.md": "# greet\n",
                "greet/__init__.py": sample.GREET,
                "greet/words.py": sample.COUNT,
                "tests/test_greet.py": sample.TEST_GREET,
                "tests/test_words.py": sample.TEST_COUNT,
            },
        )
        polite = "greet(' Ada ') gives 'Hello  Ada ', it should be 'Hello, Ada'."
        blanks = shop.issue("Greetings keep stray blanks", polite, comments=["I see it, too."], labels=["bug"])
        fix = shop.pull(
            "Strip names",
            f"Fixes #{blanks.number}.\n\n{polite}",
            {"greet/__init__.py": sample.GREET_POLITE, "tests/test_greet.py": sample.TEST_POLITE},
            closes=[blanks.number],
            labels=["bug"],
        )
        shop.review(fix, "greet/__init__.py", 3, "Why strip?", "Names come from forms.")
        shop.pull("Explain the package", None, {"README.md": "# greet\n\nSays hello.\n"}, author=None, how="squash")
        gaps = "count(' a   b ') gives 6, it should be 2: a run of blanks is one gap."
        miscounted = shop.issue("Words are miscounted", gaps)
        shop.pull(
            "Words are miscounted",
            f"Closes #{miscounted.number}\n\n{gaps}",
            {"greet/words.py": sample.COUNT_RIGHT, "tests/test_words.py": sample.TEST_COUNT_RIGHT},
            closes=[miscounted.number],
            how="squash",
            fork="",
        )
    return world
