"""The first stage: from a source word to pull requests, each with a candidate or the reason why it is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mergemill.errors import InputError
from miner.benchmarks import benchmarks_of
from miner.changes import Change, Reason
from miner.git.commits import changes_of_commits
from miner.instances import changes_of_instances
from miner.rules import statement_of, verdict
from miner.rules.patches import language_of_change
from miner.sources import parse
from miner.tags.tag import is_above_all_for_speed, tag
from taskdb.discussion import Discussion, LinkedIssue
from taskdb.records import Candidate, PullRequest, Rejection, Shape, Stage
from taskdb.tags import Tags

if TYPE_CHECKING:
    from backends.services import Services


Read = Callable[[str, "Services", Sequence[str]], Iterator[Change | InputError | str]]
"""Reads a source: changes, errors that end a part of it, and lines for people."""


def _all_of_pull_requests(source: str, services: Services, _: Sequence[str]) -> Iterator[Change | InputError | str]:
    from miner.github.source import changes_of_pull_requests  # noqa: PLC0415 - only these sources pay for its client

    return changes_of_pull_requests(source, services)


def _all_of_commits(source: str, services: Services, _: Sequence[str]) -> Iterator[Change | InputError]:
    return changes_of_commits(source, services)


def _all_of_releases(source: str, services: Services, _: Sequence[str]) -> Iterator[Change | InputError]:
    from miner.pypi.releases import changes_of_releases  # noqa: PLC0415 - only these sources pay for HTTP and HTML

    return changes_of_releases(source, services)


SOURCES: Mapping[str, Read] = {
    "github": _all_of_pull_requests,
    "git": _all_of_commits,
    "pypi": _all_of_releases,
    "instances": changes_of_instances,
}
"""Who reads which scheme."""


@dataclass(frozen=True, slots=True)
class Mined:
    """A change as its source tells it, what the rules say of it, and what kinds of change it is."""

    pull_request: PullRequest
    result: Candidate | Rejection
    tags: Tags


LastWord = Callable[[PullRequest, Candidate], Candidate | Rejection]
"""What the caller makes of a candidate, such as a rejection when the database holds nearly the same one."""


def mine(
    source: str,
    services: Services,
    only: Sequence[str] = (),
    *,
    readers: Mapping[str, Read] = SOURCES,
    last_word: LastWord | None = None,
) -> Iterator[Mined | InputError | str]:
    """The changes of one source, newest first, one at a time; published tasks in the order of their file.

    Stops after `settings.limit` candidates. Changes outside `settings.since` and `settings.until` are left out. Close
    the generator to stop earlier.

    Args:
        source: one source word; lists (`@FILE`) are opened by `miner.sources.expand`.
        services: settings, clones and artifacts are used; patches are kept as artifacts.
        only: names or ids of changes. Of a file of published tasks no others are looked at, nor their repositories;
            the other sources tell all changes.
        readers: who reads which scheme.
        last_word: asked of each candidate before it is yielded or counted; not of published tasks.

    Yields:
        What was mined; for a part of the input that cannot be used, such as a malformed line, the error that names it;
        lines for people.

    Raises:
        UsageError: the word is not a source.
        InputError: nothing of the source, or not all of a list of `benchmarks`, can be used.
        Transient: the network or the disk failed.
    """
    scheme, _ = parse(source)
    benchmarks_of(services.settings)  # what is wrong with a list is said before anything is mined
    found = 0
    for change in readers[scheme](source, services, only):
        if isinstance(change, InputError | str):
            yield change
            continue
        mined = select(change, services)
        if last_word and isinstance(mined.result, Candidate) and mined.pull_request.shape is not Shape.INSTANCE:
            mined = replace(mined, result=last_word(mined.pull_request, mined.result))
        yield mined
        found += isinstance(mined.result, Candidate)
        if services.settings.limit is not None and found >= services.settings.limit:
            return


@contextmanager
def readers_of(sources: Sequence[str], services: Services) -> Iterator[Mapping[str, Read]]:
    """Who reads the sources of a run, one after the other: repositories of GitHub are crawled ahead, side by side."""
    if not any(source.startswith("github:") for source in sources):
        yield SOURCES
        return
    from miner.github.ahead import Ahead  # noqa: PLC0415 - only these sources pay for its client

    with Ahead(sources, services) as ahead:
        yield {**SOURCES, "github": ahead.changes}


def select(change: Change, services: Services) -> Mined:
    """The miner's last step: a candidate, or what speaks against it: the first rule, or that no route leads on."""
    request = change.pull_request
    against = verdict(change, services.settings)
    tags = tag(change, against, _issues(request, services))
    if not against and not change.split.test.files and not is_above_all_for_speed(tags.kinds):
        against = (Reason.NO_TESTS, f"no test file is changed, and it is above all {tags.primary}")
    if not against and tags.stops and request.shape is not Shape.INSTANCE:
        against = (Reason.NOT_ROUTED, f"{tags.primary}: {tags.stops}")
    if against:
        reason, detail = against
        return Mined(request, Rejection(
            parent=request.id, name=request.name, source=request.source, stage=Stage.MINE, reason=reason, detail=detail,
        ), tags)  # fmt: skip
    split, keep = change.split, services.artifacts.put_text
    return Mined(request, Candidate(
        parent=request.id, source=request.source, repo=request.repo, name=request.name,
        language=language_of_change(change),
        base_commit=request.base_commit, merge_commit=request.merge_commit, created_at=request.merged_at,
        version=request.version, problem_statement=statement_of(change), hints=request.hints, license=change.license,
        gold_patch=keep(split.gold.text), test_patch=keep(split.test.text),
        gold_files=split.gold.files, test_files=split.test.left, gold_lines=split.gold.lines,
        test_lines=split.test.lines, published=request.published,
        kind=tags.primary, discussion=request.discussion,
    ), tags)  # fmt: skip


def _issues(request: PullRequest, services: Services) -> tuple[LinkedIssue, ...]:
    """The issues that a change speaks of, as far as its source told them."""
    if request.discussion is None:
        return ()
    return Discussion.model_validate_json(services.artifacts.text(request.discussion)).issues
