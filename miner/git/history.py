"""`git:` sources: a repository's history alone, without any forge, as a stream of changes.

Along the first-parent line of HEAD, newest first:

- a merge commit that names a pull request, or names none: one change, from its first parent;
- a merge of a whole branch (`Merge stable into main`): the pull requests merged there first, one by one;
- a commit whose subject ends in `(#N)`: a squash;
- commits that `refs/pull/N/head` holds too, with the same patch ids: a rebase merge, one change for all of them;
- anything else: a plain commit.

The base commit is always the first parent. One `git log` tells all commits, another one at the same time which files
each commit of the line touches; changes that lie beside the line are asked for many at a time. Patches are only made of
what the rules on paths let through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeVar

from backends.clones import is_url, repo_of_url
from backends.git import EMPTY_TREE, GitError, Repository
from miner.git import messages
from miner.git.diffs import Files, first_parent_diffs, raw_diffs
from miner.git.log import Commit, Step, read
from miner.git.rebases import RebaseMerges
from taskdb.records import PullRequest, Shape

_T = TypeVar("_T")

_BATCHES = (250, 1000)
"""Changes looked at together, at first and then: enough that starting git costs nothing, few enough that `--limit` is
lazy. The first are few, so that git has something to do early."""

_SHORT = 10
"""Hex digits of a commit in a name."""


class Unit(NamedTuple):
    """One change in a history, before its files are read."""

    commit: Commit
    base: str
    number: int | None
    shape: Shape
    author: str
    title: str
    body: str
    whole_branch: bool = False
    """A merge of a branch whose pull requests are told one by one."""
    beside: bool = False
    """Not one commit of the first-parent line against the one before it."""


_Named = tuple[Unit, str, str]
"""A change, its name and its date."""


@dataclass
class Naming:
    """Gives each change a name of its own. The newest of several with one number has the plain name."""

    repo: str
    seen: set[str] = field(default_factory=set)

    def name(self, unit: Unit) -> str:
        """`owner__repo-123`, with the commit behind it when the number was there already; else by the commit."""
        stem = self.repo.replace("/", "__")
        short = unit.commit.sha[:_SHORT]
        name = f"{stem}-{short}" if unit.number is None else f"{stem}-{unit.number}"
        if name in self.seen:
            name = f"{name}-{short}"
        self.seen.add(name)
        return name


def repo_name(repository: Repository, place: str) -> str:
    """`owner/name` of a `git:` source: by a folder named OWNER__NAME, else the remote's URL, else the folder's path."""
    path = Path(place)
    stem = path.name.removesuffix(".git")
    owner, parted, name = stem.partition("__")
    if is_url(place):
        return repo_of_url(place)
    if parted and owner and name:
        return f"{owner}/{name}"
    try:
        url = repository.git("config", "--local", "--get", "remote.origin.url").decode(errors="replace").strip()
    except GitError:
        url = ""
    if url and is_url(url):
        return repo_of_url(url)
    whole = path.resolve()
    whole = whole.parent if whole.name == ".git" else whole
    return f"{whole.parent.name or 'local'}/{whole.name.removesuffix('.git') or 'repository'}"


def pull_requests(
    repository: Repository, source: str, repo: str, wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[PullRequest, Files, bool]]:
    """All changes of the history, newest first: the record, the files it touches, whether it is a whole branch's merge.

    Lazy: a caller who stops early has paid for the log and for little more than the diffs it took.

    Args:
        repository: the history.
        source: the source word, for the records.
        repo: `owner/name`, for the records.
        wanted: by its date (ISO 8601, UTC), whether a change is to be read at all.
    """
    head = repository.resolve("HEAD")  # once, for it may move while we read
    along = first_parent_diffs(repository, head)
    found = _chosen(units(repository, head), repo, wanted)
    for batch, beside in _one_ahead(_batches(repository, found)):
        for unit, name, when in batch:
            files = next(beside) if unit.beside else next(rows for sha, rows in along if sha == unit.commit.sha)
            yield _record(unit, source, repo, name, when), files, unit.whole_branch


def _batches(repository: Repository, found: Iterator[_Named]) -> Iterator[tuple[list[_Named], Iterator[Files]]]:
    """Some changes at a time, and the files of those that lie beside the line, at which git is at work."""
    size, later = _BATCHES
    while batch := list(islice(found, size)):
        yield batch, raw_diffs(repository, [(unit.commit.sha, unit.base) for unit, _, _ in batch if unit.beside])
        size = later


def _one_ahead(items: Iterable[_T]) -> Iterator[_T]:
    """The same items, each when the next one is there too: git works at that one meanwhile."""
    held: list[_T] = []
    for item in items:
        yield from held
        held = [item]
    yield from held


def _chosen(found: Iterable[Unit], repo: str, wanted: Callable[[str], bool]) -> Iterator[_Named]:
    """The changes of a wanted date, with name and date."""
    naming = Naming(repo)
    for unit in found:
        name, when = naming.name(unit), unit.commit.when  # named before the choice, so that names don't depend on it
        if wanted(when):
            yield unit, name, when


def units(repository: Repository, head: str) -> Iterator[Unit]:
    """The changes along the first-parent line of the commit `head`, newest first."""
    history = read(repository, head)
    merges = RebaseMerges(repository, [step.commit for step in history.line], history.unmerged)
    early: dict[str, list[Unit]] = {}  # made while git is at work on the proofs
    for step in history.line:
        if merges.are_proven():
            break
        if not merges.needs_proof(step.commit):
            early[step.commit.sha] = list(_plain(step))
    for number, run in groupby(zip(history.line, merges.numbers(), strict=True), key=itemgetter(1)):
        steps = (step for step, _ in run)
        if number is not None:
            yield _rebase([step.commit for step in steps], number)
            continue
        for step in steps:
            yield from early.pop(step.commit.sha, None) or _plain(step)


def _plain(step: Step) -> Iterable[Unit]:
    """What a step of the line is when it is no rebase merge."""
    return _merge(step) if len(step.commit.parents) > 1 else (_single(step.commit),)


def _single(commit: Commit) -> Unit:
    number = messages.pull_request_number(commit.message)
    title, body = messages.text_of(commit.message)
    return Unit(
        commit=commit, base=commit.parents[0] if commit.parents else EMPTY_TREE, number=number,
        shape=Shape.COMMIT if number is None else Shape.SQUASH, author=commit.author, title=title, body=body,
    )  # fmt: skip


def _merge(step: Step) -> Iterator[Unit]:
    """A merge, and the pull requests inside when it merged a branch that had taken them before."""
    commit, inside = step.commit, {brought.sha: brought for brought in step.brought}
    tip = inside.get(commit.parents[1])
    nested = list(_nested(tip, inside)) if tip and messages.merges_a_branch(commit.subject) else []
    # The pull request's author wrote its commits; the merge is signed by whoever pressed the button.
    author = _by_a_person(tip, step.brought) if tip else commit.author
    title, body = (commit.subject, "") if nested else messages.text_of(commit.message)
    inner = () if nested else (brought.message for brought in reversed(step.brought))
    written = messages.story(inner, told=commit.message)
    if not title:
        title, _, written = written.partition("\n")
    yield Unit(
        commit=commit, base=commit.parents[0], number=messages.pull_request_number(commit.message), shape=Shape.MERGE,
        author=author, title=title.strip(), body="\n\n".join(part for part in (body, written.strip()) if part),
        whole_branch=bool(nested),
    )  # fmt: skip
    yield from nested


def _by_a_person(tip: Commit, brought: Iterable[Commit]) -> str:
    """The author of a branch: of its tip, unless a bot only tidied up behind a person."""
    if "[bot]" not in tip.author:
        return tip.author
    return next((commit.author for commit in brought if "[bot]" not in commit.author), tip.author)


def _nested(tip: Commit, inside: dict[str, Commit]) -> Iterator[Unit]:
    """The pull requests on the other branch's own first-parent line."""
    at: Commit | None = tip
    while at is not None:
        if messages.pull_request_number(at.message) is not None and at.parents:
            unit = _single(at)
            second = inside.get(at.parents[1]) if len(at.parents) > 1 else None
            yield Unit(
                commit=at, base=unit.base, number=unit.number, shape=Shape.MERGE if second else Shape.SQUASH,
                author=second.author if second else unit.author, title=unit.title, body=unit.body,
                beside=True,
            )  # fmt: skip
        at = inside.get(at.parents[0]) if at.parents else None


def _rebase(run: Sequence[Commit], number: int) -> Unit:
    """The commits of one rebase merge, newest first, as one change."""
    texts = [messages.text_of(commit.message) for commit in reversed(run)]
    title, body = texts[0]
    rest = "\n\n".join(part for text in texts[1:] for part in text if part)
    return Unit(
        commit=run[0], base=run[-1].parents[0], number=number, shape=Shape.REBASE,
        author=run[0].author, title=title, body="\n\n".join(part for part in (body, rest) if part),
        beside=len(run) > 1,
    )  # fmt: skip


def _record(unit: Unit, source: str, repo: str, name: str, when: str) -> PullRequest:
    return PullRequest(
        source=source, repo=repo, name=name, number=unit.number, shape=unit.shape, title=unit.title, body=unit.body,
        author=unit.author, merged_at=when, base_commit=unit.base, merge_commit=unit.commit.sha,
    )  # fmt: skip
