"""Import of published review benchmarks: pull requests with golden comments become a held-out set of review tasks.

A row names a repository and a pull request, and either its commits or its diff. Trees are read from clones. Golden
comments are the defects; those without lines, or with lines outside of the material, have the lines 0, and only a model
matches findings with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.git import GitError
from backends.index import ScratchIndex
from core.errors import InputError, Transient
from core.json_files import JsonRow, read_rows
from derivers.base import build_task
from derivers.review import write_statement
from derivers.review.construction import list_added_lines, store_files
from derivers.review.history import ReviewHistory
from derivers.review.related import add_related_files
from mergemill.bench.unbuilt import store_unbuilt_task
from mergemill.execution.services import make_services
from miner.instances import PublishedClones, build_instance, build_pull_request, build_unread_candidate
from taskdb.records import Kind, Task
from taskdb.records.lineage import Lineage
from taskdb.records.oracles import Defect, ReviewOracle
from taskdb.store import Store

if TYPE_CHECKING:
    from backends.git import GitRepository
    from backends.services import Services
    from core.config import Settings

PUBLISHED = "published-review"
"""Reason for which no environment is built for a change: its review needs none."""
MAX_CLAIM = 2_000
"""Characters of a golden comment; the rest is cut."""

_ADDRESS = re.compile(r"https?://[^/\s]+/(?P<repo>[\w.-]+/[\w.-]+)/pull/(?P<number>\d+)(?:[/?#].*)?")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_COMMENTS = ("comments", "golden_comments", "human_review_comments")
_TEXTS = ("comment", "body", "text", "claim")
_PATHS = ("path", "file", "file_path", "filename")
_LAST_LINES = ("line", "end_line", "last_line", "original_line", "line_number")
_FIRST_LINES = ("start_line", "first_line", "original_start_line")


@dataclass(frozen=True, kw_only=True)
class PublishedReview:
    """Row of a published benchmark. Commits and diff are empty where the row has none."""

    place: str
    repo: str
    number: int
    title: str
    base: str = ""
    head: str = ""
    """Last commit of the pull request's branch, of which the base is known as well."""
    merge: str = ""
    """Commit that merged it, whose first parent is the base."""
    diff: str = ""
    comments: tuple[Mapping[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """Name of the change."""
        return f"{self.repo.replace('/', '__')}-{self.number}"


@dataclass(kw_only=True)
class ReviewImport:
    """Tasks of the rows of a file, and a line for each row that cannot be used."""

    tasks: list[Task] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    without_lines: int = 0
    """Golden comments that no lines of the material belong to."""


def import_reviews(path: Path, settings: Settings) -> ReviewImport:
    """Store the review tasks of a file; rows that cannot be used are named, and the others are imported.

    Args:
        path: JSON lines, a list, or an object of rows.
        settings: database, store, and the folder of clones.

    Raises:
        InputError: the file cannot be read.
        Transient: the disk is full, or the database cannot be written.
    """
    services = make_services(settings, engine=False)
    clones = PublishedClones(services)
    source = f"instances:{path.absolute()}"
    imported = ReviewImport()
    names: dict[str, str] = {}
    with Store.open(settings.storage.db, writes=True) as store:
        for row in read_rows(path, _is_row, noun="the reviews"):
            try:
                review = parse_review_row(row)
                _check_unique(review, names)
                task = _store_task(store, review, clones, services, source)
            except (InputError, Transient, GitError) as error:
                imported.problems.append(f"{row.place}: {error}")
                continue
            imported.tasks.append(task)
            assert isinstance(task.oracle, ReviewOracle)  # noqa: S101 - for the type checker
            imported.without_lines += sum(not defect.first_line for defect in task.oracle.defects)
        if not imported.tasks:
            store.discard_if_empty()
    return imported


def _check_unique(review: PublishedReview, names: dict[str, str]) -> None:
    """Raise InputError where an earlier row has the name of a row; `names`: name -> place of its first row."""
    if (earlier := names.setdefault(review.name, review.place)) != review.place:
        raise InputError(f"{review.name} is also in {earlier}")


def _is_row(document: Mapping[str, Any]) -> bool:
    return any(name in document for name in ("url", "repo", *_COMMENTS))


def parse_review_row(row: JsonRow) -> PublishedReview:
    """Return the content of a row.

    Raises:
        InputError: it is not JSON, names no pull request, or has no list of comments.
    """
    if row.problem or not isinstance(row.value, dict):
        raise InputError(row.problem or "it is not a JSON object")
    value = row.value
    address = _ADDRESS.fullmatch(_read_text(value, "url", "pr_url", "original_url"))
    repo = _read_text(value, "repo", "repository") or (address["repo"] if address else "")
    number = _read_text(value, "pr_number", "number", "pull_number") or (address["number"] if address else "")
    if repo.count("/") != 1 or not number.isdecimal():
        raise InputError("it names no pull request: url, or repo (owner/name) and pr_number")
    listed = next((value[name] for name in _COMMENTS if name in value), None)
    if not isinstance(listed, list) or not all(isinstance(comment, dict) for comment in listed):
        raise InputError(f"it has no list of comments: {', '.join(_COMMENTS)}")
    if any(not _read_text(comment, *_TEXTS).strip() for comment in listed):
        raise InputError(f"a comment has no text: {', '.join(_TEXTS)}")
    return PublishedReview(
        place=row.place,
        repo=repo,
        number=int(number),
        title=_read_text(value, "pr_title", "title") or f"{repo}#{number}",
        base=_read_text(value, "base_commit", "base_sha"),
        head=_read_text(value, "head_commit", "head_sha"),
        merge=_read_text(value, "merge_commit", "merge_commit_sha"),
        diff=_read_text(value, "diff_patch", "diff", "patch"),
        comments=tuple(listed),
    )


def _read_text(value: Mapping[str, Any], *names: str) -> str:
    return next((str(value[name]) for name in names if isinstance(value.get(name), str | int)), "")


def _store_task(
    store: Store, review: PublishedReview, clones: PublishedClones, services: Services, source: str
) -> Task:
    """Store the change and the task of a row, and return the task."""
    repository = clones.open(review.repo)
    base, oracle, diff = _build_oracle(review, repository, services)
    if oracle.tree:
        services.clones.trees.keep(review.repo, oracle.tree, repository)
    row = build_instance(
        {
            "instance_id": review.name,
            "repo": review.repo,
            "base_commit": base,
            "patch": diff,
            "test_patch": "",
            "problem_statement": review.title,
        }
    )
    date = repository.run_git("show", "-s", "--format=%cI", base).decode().split()[-1]
    row = row.model_copy(update={"created_at": date})
    pull = build_pull_request(row, source, row.created_date, services)
    candidate = build_unread_candidate(row, pull, services)
    task = build_task(
        Lineage(candidate=candidate),
        Kind.REVIEW,
        oracle=oracle,
        hints="",
        problem_statement=write_statement(oracle, review.repo, services.artifacts),
    )
    store_unbuilt_task(store, pull, candidate, task, reason=PUBLISHED, detail="a review needs no environment")
    return task


def _build_oracle(
    review: PublishedReview, repository: GitRepository, services: Services
) -> tuple[str, ReviewOracle, str]:
    """Return base commit, oracle and diff of a row.

    Raises:
        InputError: the clone lacks the commits of the pull request, the diff does not apply, or it changes no text.
    """
    history = ReviewHistory(repository)
    base, head = _find_commits(review, history)
    if head:
        oracle, diff = _read_material(review, history, base, head, services)
        return base, add_related_files(history, oracle.model_copy(update={"tree": head}), services.artifacts), diff
    with ScratchIndex(repository, base) as index:
        index.apply(review.diff.encode(errors="surrogateescape"))
        applied = ReviewHistory(index.repository)
        oracle, diff = _read_material(review, applied, base, index.write_tree(), services)
        return base, add_related_files(applied, oracle, services.artifacts), diff  # a tree that no commit has


def _read_material(
    review: PublishedReview, history: ReviewHistory, base: str, tree: str, services: Services
) -> tuple[ReviewOracle, str]:
    changed = history.list_changed_files(base, tree)
    diff = history.diff(base, tree, changed)
    files = history.read_texts(tree, [file.new for file in changed])
    if not any(list_added_lines(diff).values()):
        raise InputError("the pull request adds no line of text")
    defects = tuple(_make_defect(comment, files) for comment in review.comments)
    oracle = ReviewOracle(
        target="threads" if defects else "clean",
        files=store_files(files, services.artifacts),
        diff=services.artifacts.put_text(diff),
        defects=defects,
    )
    return oracle, diff


def _find_commits(review: PublishedReview, history: ReviewHistory) -> tuple[str, str]:
    """Return base and head of a pull request; an empty head where the diff of the row has to be applied.

    Raises:
        InputError: the clone does not have them.
    """
    repository = history.repository

    def has_commit(commit: str) -> bool:
        return bool(_COMMIT.fullmatch(commit)) and history.has_commit(commit)

    if has_commit(review.base):
        if has_commit(review.head):
            base, head = repository.resolve(review.base), repository.resolve(review.head)
            return history.find_merge_base(base, head) or base, head
        if review.diff:
            return repository.resolve(review.base), ""
    for commit in (review.merge, *([] if review.diff else _find_merges(review, repository))):
        if has_commit(commit):
            merge = repository.resolve(commit)
            return history.list_parents(merge)[0], merge
    wanted = f"commit {review.base[:40]}" if review.diff and review.base else f"commits of pull request {review.number}"
    raise InputError(f"{repository.path} does not have the {wanted}", advice="fetch it there")


def _find_merges(review: PublishedReview, repository: GitRepository) -> list[str]:
    """Return the newest commit that names the pull request as its own: `Merge pull request #7 from` or `Title (#7)`."""
    pattern = rf"(^Merge pull request #{review.number}( |$)|\(#{review.number}\)$)"
    commit = repository.run_git("log", "--all", "-n1", "--format=%H", "-E", f"--grep={pattern}")
    return commit.decode().split()


def _make_defect(comment: Mapping[str, Any], files: Mapping[str, str]) -> Defect:
    """Return a golden comment as a defect; its lines are 0 where they are not known, or not in the material."""
    claim = " ".join(_read_text(comment, *_TEXTS).split())[:MAX_CLAIM]
    path = _read_text(comment, *_PATHS)
    last = _read_number(comment, _LAST_LINES)
    first = _read_number(comment, _FIRST_LINES) or last
    if path in files and 1 <= first <= last <= files[path].count("\n") + 1:
        return Defect(path=path, first_line=first, last_line=last, claim=claim)
    return Defect(path=path if path in files else "", first_line=0, last_line=0, claim=claim)


def _read_number(comment: Mapping[str, Any], names: Sequence[str]) -> int:
    text = _read_text(comment, *names)
    return int(text) if text.isdecimal() and len(text) < 9 else 0
