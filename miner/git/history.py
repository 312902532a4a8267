"""Changes from a repository's history, without a forge.

Along the first-parent line of HEAD, newest first:

- a merge commit that names a pull request, or none: one change, compared with its first parent;
- a merge of a whole branch (`Merge stable into main`): the pull requests merged into that branch, individually;
- a commit whose subject ends in `(#N)`: a squash merge;
- commits with the patch ids of commits in `refs/pull/N/head`: a rebase merge, a change for all of them;
- any other commit: a change of its own.

The base commit is always the first parent. A `git log` reads all commits; another, at the same time, reads the
files that each commit of the line touches. Changes beside the line are read in batches. Patches are made only for
changes that pass the rules on paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeVar

from backends.clones import is_url, parse_repo_name
from backends.git import EMPTY_TREE, GitError, GitRepository
from miner.git import messages
from miner.git.diffs import FileChanges, read_first_parent_diffs, read_raw_diffs
from miner.git.log import Commit, MainlineStep, read_history
from miner.git.rebases import RebaseMerges
from taskdb.records import PullRequest, Shape

_T = TypeVar("_T")

_BATCH_SIZES = (250, 1000)
"""Changes per batch, at first and later: large enough that starting git costs little, small enough for `--limit` to be
lazy. The first batch is small so that git starts early.
"""

_SHORT_SHA = 10
"""Hex digits of a commit in a name."""


class HistoryChange(NamedTuple):
    """A change of a history, before its files are read."""

    commit: Commit
    base: str
    number: int | None
    shape: Shape
    author: str
    title: str
    body: str
    is_branch_merge: bool = False
    """A merge of a branch whose pull requests are mined individually."""
    is_off_mainline: bool = False
    """Whether it is anything else than a commit of the first-parent line compared with its parent."""


_NamedChange = tuple[HistoryChange, str, str]
"""A change, its name and its date."""


@dataclass
class ChangeNamer:
    """Unique names of changes. Of several changes with a number the newest has the plain name."""

    repo: str
    used_names: set[str] = field(default_factory=set)

    def assign_name(self, unit: HistoryChange) -> str:
        """Return `owner__repo-123`, with the commit appended if the number is in use; without a number, the commit."""
        stem = self.repo.replace("/", "__")
        short = unit.commit.sha[:_SHORT_SHA]
        name = f"{stem}-{short}" if unit.number is None else f"{stem}-{unit.number}"
        if name in self.used_names:
            name = f"{name}-{short}"
        self.used_names.add(name)
        return name


def find_repo_name(repository: GitRepository, place: str) -> str:
    """Return `owner/name` of a `git:` source: by a folder OWNER__NAME, the remote's URL, or the folder's path."""
    path = Path(place)
    stem = path.name.removesuffix(".git")
    owner, parted, name = stem.partition("__")
    if is_url(place):
        return parse_repo_name(place)
    if parted and owner and name:
        return f"{owner}/{name}"
    try:
        url = repository.run_git("config", "--local", "--get", "remote.origin.url").decode(errors="replace").strip()
    except GitError:
        url = ""
    if url and is_url(url):
        return parse_repo_name(url)
    whole = path.resolve()
    whole = whole.parent if whole.name == ".git" else whole
    return f"{whole.parent.name or 'local'}/{whole.name.removesuffix('.git') or 'repository'}"


def read_pull_requests(
    repository: GitRepository, source: str, repo: str, wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[PullRequest, FileChanges, bool]]:
    """Yield all changes of the history, newest first: record, touched files, whether it merges a whole branch.

    Lazy: stopping early saves most of the diffs.

    Args:
        repository: the history.
        source: the source word, for the records.
        repo: `owner/name`, for the records.
        wanted: return whether a change of this date (ISO 8601, UTC) is to be read.
    """
    # HEAD is resolved once, because it may move in the meantime.
    head = repository.resolve("HEAD")
    along = read_first_parent_diffs(repository, head)
    changes = _select_by_date(find_changes(repository, head), repo, wanted)
    for batch, beside in _prefetch_next(_split_batches(repository, changes)):
        for unit, name, when in batch:
            files = (
                next(beside) if unit.is_off_mainline else next(rows for sha, rows in along if sha == unit.commit.sha)
            )
            yield _build_record(unit, source, repo, name, when), files, unit.is_branch_merge


def _split_batches(
    repository: GitRepository, changes: Iterator[_NamedChange]
) -> Iterator[tuple[list[_NamedChange], Iterator[FileChanges]]]:
    """Yield batches of changes, each with the files of those beside the line, which git reads meanwhile."""
    size, later = _BATCH_SIZES
    while batch := list(islice(changes, size)):
        yield (
            batch,
            read_raw_diffs(repository, [(unit.commit.sha, unit.base) for unit, _, _ in batch if unit.is_off_mainline]),
        )
        size = later


def _prefetch_next(items: Iterable[_T]) -> Iterator[_T]:
    """Yield the same items, each after the next one was started."""
    held: list[_T] = []
    for item in items:
        yield from held
        held = [item]
    yield from held


def _select_by_date(
    changes: Iterable[HistoryChange], repo: str, wanted: Callable[[str], bool]
) -> Iterator[_NamedChange]:
    """Yield the changes of a wanted date, with name and date."""
    naming = ChangeNamer(repo)
    for unit in changes:
        # A change is named before the selection, so that names do not depend on the selected dates.
        name, when = (
            naming.assign_name(unit),
            unit.commit.committed_at,
        )
        if wanted(when):
            yield unit, name, when


def find_changes(repository: GitRepository, head: str) -> Iterator[HistoryChange]:
    """Yield the changes along the first-parent line of the commit `head`, newest first."""
    history = read_history(repository, head)
    merges = RebaseMerges(repository, [step.commit for step in history.mainline], history.unmerged)
    # These changes need no patch ids and are built while git computes those of the others.
    early: dict[str, list[HistoryChange]] = {}
    for step in history.mainline:
        if merges.is_complete():
            break
        if not merges.needs_proof(step.commit):
            early[step.commit.sha] = list(_build_plain_change(step))
    for number, run in groupby(zip(history.mainline, merges.match_pull_requests(), strict=True), key=itemgetter(1)):
        steps = (step for step, _ in run)
        if number is not None:
            yield _build_rebase_change([step.commit for step in steps], number)
            continue
        for step in steps:
            yield from early.pop(step.commit.sha, None) or _build_plain_change(step)


def _build_plain_change(step: MainlineStep) -> Iterable[HistoryChange]:
    """Return the changes of a step of the line that is not a rebase merge."""
    return _build_merge_changes(step) if len(step.commit.parents) > 1 else (_build_commit_change(step.commit),)


def _build_commit_change(commit: Commit) -> HistoryChange:
    number = messages.parse_pull_request_number(commit.message)
    title, body = messages.extract_text(commit.message)
    return HistoryChange(
        commit=commit,
        base=commit.parents[0] if commit.parents else EMPTY_TREE,
        number=number,
        shape=Shape.COMMIT if number is None else Shape.SQUASH,
        author=commit.author,
        title=title,
        body=body,
    )


def _build_merge_changes(step: MainlineStep) -> Iterator[HistoryChange]:
    """Yield a merge, and its pull requests when it merged a branch that contains some."""
    commit, inside = step.commit, {brought.sha: brought for brought in step.merged_commits}
    tip = inside.get(commit.parents[1])
    nested = list(_find_nested_changes(tip, inside)) if tip and messages.is_branch_merge_title(commit.subject) else []
    # The author of a pull request wrote its commits; the author of the merge commit is who merged it.
    author = _find_human_author(tip, step.merged_commits) if tip else commit.author
    title, body = (commit.subject, "") if nested else messages.extract_text(commit.message)
    inner = () if nested else (brought.message for brought in reversed(step.merged_commits))
    written = messages.join_messages(inner, known=commit.message)
    if not title:
        title, _, written = written.partition("\n")
    yield HistoryChange(
        commit=commit,
        base=commit.parents[0],
        number=messages.parse_pull_request_number(commit.message),
        shape=Shape.MERGE,
        author=author,
        title=title.strip(),
        body="\n\n".join(part for part in (body, written.strip()) if part),
        is_branch_merge=bool(nested),
    )
    yield from nested


def _find_human_author(tip: Commit, brought: Iterable[Commit]) -> str:
    """Return the author of a branch: of its tip, unless a bot only reformatted a person's commits."""
    if "[bot]" not in tip.author:
        return tip.author
    return next((commit.author for commit in brought if "[bot]" not in commit.author), tip.author)


def _find_nested_changes(tip: Commit, inside: dict[str, Commit]) -> Iterator[HistoryChange]:
    """Yield the pull requests on the other branch's own first-parent line."""
    at: Commit | None = tip
    while at is not None:
        if messages.parse_pull_request_number(at.message) is not None and at.parents:
            unit = _build_commit_change(at)
            second = inside.get(at.parents[1]) if len(at.parents) > 1 else None
            yield HistoryChange(
                commit=at,
                base=unit.base,
                number=unit.number,
                shape=Shape.MERGE if second else Shape.SQUASH,
                author=second.author if second else unit.author,
                title=unit.title,
                body=unit.body,
                is_off_mainline=True,
            )
        at = inside.get(at.parents[0]) if at.parents else None


def _build_rebase_change(run: Sequence[Commit], number: int) -> HistoryChange:
    """Build a change from the commits of a rebase merge, newest first."""
    texts = [messages.extract_text(commit.message) for commit in reversed(run)]
    title, body = texts[0]
    rest = "\n\n".join(part for text in texts[1:] for part in text if part)
    return HistoryChange(
        commit=run[0],
        base=run[-1].parents[0],
        number=number,
        shape=Shape.REBASE,
        author=run[0].author,
        title=title,
        body="\n\n".join(part for part in (body, rest) if part),
        is_off_mainline=len(run) > 1,
    )


def _build_record(unit: HistoryChange, source: str, repo: str, name: str, when: str) -> PullRequest:
    return PullRequest(
        source=source,
        repo=repo,
        name=name,
        number=unit.number,
        shape=unit.shape,
        title=unit.title,
        body=unit.body,
        author=unit.author,
        merged_at=when,
        base_commit=unit.base,
        merge_commit=unit.commit.sha,
    )
