"""Mining stage: from a source word to changes, each with a candidate or a rejection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from core.errors import InputError
from languages.paths import is_incidental
from miner.benchmarks import load_benchmarks
from miner.changes import Change, FindSimilar
from miner.git.commits import read_commits
from miner.git.head import read_head
from miner.instances import read_instances
from miner.rules import find_rejection
from miner.rules.files import should_await_tests
from miner.rules.patches import find_language
from miner.similarity import PatchSketch, build_sketch
from miner.sources import parse_source
from miner.tags.tag import tag_change
from taskdb.records import Candidate, PullRequest, Rejection, Shape, Stage, TestOrigin
from taskdb.records.discussion import Discussion, LinkedIssue
from taskdb.records.tags import ChangeKind, Tags

if TYPE_CHECKING:
    from backends.services import Services


ChangeReader = Callable[[str, "Services", Sequence[str]], Iterator[Change | InputError | str]]
"""Reads a source: changes, errors that end a part of it, and messages for the user."""


def _read_github(source: str, services: Services, _: Sequence[str]) -> Iterator[Change | InputError | str]:
    from miner.github.source import read_pull_requests  # noqa: PLC0415 - only these sources pay for its client

    return read_pull_requests(source, services)


def _read_git(source: str, services: Services, _: Sequence[str]) -> Iterator[Change | InputError]:
    return read_commits(source, services)


def _read_pypi(source: str, services: Services, _: Sequence[str]) -> Iterator[Change | InputError]:
    from miner.pypi.releases import read_releases  # noqa: PLC0415 - only these sources pay for HTTP and HTML

    return read_releases(source, services)


def _read_head(source: str, services: Services, _: Sequence[str]) -> Iterator[Change]:
    return read_head(source, services)


SOURCES: Mapping[str, ChangeReader] = {
    "github": _read_github,
    "git": _read_git,
    "pypi": _read_pypi,
    "instances": read_instances,
    "head": _read_head,
}
"""Scheme -> reader."""


@dataclass(frozen=True, slots=True)
class MinedChange:
    """A change, the result of the rules, and its tags."""

    pull_request: PullRequest
    result: Candidate | Rejection
    tags: Tags
    similarity_keys: tuple[int, ...] = ()
    """Keys of a candidate by which later near duplicates of it are found; empty for published tasks."""


def mine(
    source: str,
    services: Services,
    only: Sequence[str] = (),
    *,
    readers: Mapping[str, ChangeReader] = SOURCES,
    find_similar: FindSimilar | None = None,
) -> Iterator[MinedChange | InputError | str]:
    """Mine a source, newest change first; published tasks in the order of their file.

    Stops after the setting `limit` of candidates. Changes outside the settings `since` and `until` are left out. Close
    the generator to stop earlier.

    Args:
        source: a source word; lists (`@FILE`) are expanded by `miner.sources.expand_sources`.
        services: settings, clones and artifacts are used; patches are stored as artifacts.
        only: names or ids of changes. Other published tasks of a file are not read, nor their repositories; the other
            sources yield all changes.
        readers: scheme -> reader.
        find_similar: look up near duplicates in the database; None skips this rule.

    Yields:
        Mined changes; an error for each part of the input that is unusable, such as a malformed line; messages for
        the user.

    Raises:
        UsageError: the word is not a source.
        InputError: nothing of the source, or not all of a list of `benchmarks`, is usable.
        Transient: the network or the disk failed.
    """
    scheme, _ = parse_source(source)
    load_benchmarks(services.settings.mining.benchmarks)  # an error in a list is reported before anything is mined
    n_candidates = 0
    for change in readers[scheme](source, services, only):
        if isinstance(change, InputError | str):
            yield change
            continue
        mined = select_candidate(change, services, find_similar)
        yield mined
        n_candidates += isinstance(mined.result, Candidate)
        if services.settings.source.limit is not None and n_candidates >= services.settings.source.limit:
            return


@contextmanager
def open_readers(sources: Sequence[str], services: Services) -> Iterator[Mapping[str, ChangeReader]]:
    """Open the readers for the sources of a run; GitHub repositories are crawled ahead, in parallel."""
    if not any(source.startswith("github:") for source in sources):
        yield SOURCES
        return
    from miner.github.prefetch import CrawlPrefetcher  # noqa: PLC0415 - only these sources pay for its client

    with CrawlPrefetcher(sources, services) as prefetcher:
        yield {**SOURCES, "github": prefetcher.read_changes}


def select_candidate(change: Change, services: Services, find_similar: FindSimilar | None = None) -> MinedChange:
    """Return the change as a candidate, or a rejection by the first rule that fails."""
    request, issues = change.pull_request, _read_issues(change.pull_request, services)

    @cache
    def make_tags() -> Tags:
        return tag_change(change, None, issues)

    def find_similar_sketches(sketch: PatchSketch) -> Iterator[tuple[Candidate, PatchSketch]]:
        for other in find_similar(request, sketch.keys) if find_similar else ():
            yield other, _load_sketch(other, services)

    settings = services.settings
    change.awaits_tests = settings.can_write_tests and should_await_tests(change)
    change.lacks_test_writer = settings.verify.write_tests and not settings.can_write_tests
    change.make_tags, change.find_similar = make_tags, find_similar_sketches
    rejection = find_rejection(change, settings.mining)
    if rejection is None:
        is_sketched = request.shape not in (Shape.INSTANCE, Shape.HEAD)
        keys = change.sketch.keys if find_similar and is_sketched else ()
        return MinedChange(request, _build_candidate(change, make_tags().primary, services), make_tags(), keys)
    reason, detail = rejection
    result = Rejection(
        parent=request.id,
        name=request.name,
        source=request.source,
        stage=Stage.MINE,
        reason=reason,
        detail=detail,
    )
    return MinedChange(request, result, tag_change(change, rejection, issues))


def _build_candidate(change: Change, kind: ChangeKind, services: Services) -> Candidate:
    request, split, store_text = change.pull_request, change.split, services.artifacts.put_text
    return Candidate(
        parent=request.id,
        source=request.source,
        repo=request.repo,
        name=request.name,
        language=find_language(change),
        base_commit=request.base_commit,
        merge_commit=request.merge_commit,
        created_at=request.merged_at,
        version=request.version,
        problem_statement=change.problem_statement,
        hints=request.hints,
        license=change.license,
        gold_patch=store_text(split.gold.text),
        test_patch=store_text(split.test.text),
        gold_files=split.gold.files,
        test_files=split.test.remaining_files,
        gold_lines=split.gold.line_count,
        test_lines=split.test.line_count,
        published=request.published,
        change_kind=kind,
        discussion=request.discussion,
        tests=TestOrigin.MODEL_WRITTEN if change.awaits_tests else TestOrigin.HUMAN,
        incidental_files=_list_incidental_files(change),
    )


def _list_incidental_files(change: Change) -> tuple[str, ...]:
    """Return the files of the gold patch that are no part of the fix; none of a published task."""
    files = change.split.gold.files
    incidental = tuple(path for path in files if is_incidental(path))
    is_marked = change.pull_request.shape is not Shape.INSTANCE and len(incidental) < len(files)
    return incidental if is_marked else ()


def _load_sketch(candidate: Candidate, services: Services) -> PatchSketch:
    read = services.artifacts.get_text
    return build_sketch(read(candidate.gold_patch), read(candidate.test_patch), candidate.problem_statement)


def _read_issues(request: PullRequest, services: Services) -> tuple[LinkedIssue, ...]:
    """Return the issues linked from a change, where its source has any."""
    if request.discussion is None:
        return ()
    return Discussion.model_validate_json(services.artifacts.get_text(request.discussion)).issues
