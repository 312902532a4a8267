"""Changes of other projects that are similar to a change, as models of bugs in its tree.

Candidates for that are bug fixes in the same languages: those whose tasks share words with the change (full-text
search), and the newest by tag. They are compared by the words of their files and statements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from core.word_parts import compare_words, list_word_parts, weigh_words
from taskdb.records import Candidate, Kind
from taskdb.records.tags import ChangeKind
from taskdb.schema import search
from taskdb.schema.columns import CHANGE_LISTING, TASK_LISTING
from taskdb.schema.measures import choose_split
from taskdb.schema.word_lists import match_words

if TYPE_CHECKING:
    from taskdb.store import Store

MAX_SIMILAR = 12
"""Changes that are returned at most."""
MAX_COMPARED = 200
"""Changes of each sort that are compared: full-text matches, and the newest."""
MAX_SEARCH_WORDS = 24
"""Words of a change that are searched for."""
MAX_GOLD_LINES = 200
"""A larger fix is no single mistake."""
_CODE = re.compile(r"`+([^`]+)`+")


def find_similar_changes(
    store: Store,
    candidate: Candidate,
    languages: Collection[str],
    is_allowed: Callable[[Candidate], bool] = lambda _: True,
    most: int = MAX_SIMILAR,
) -> tuple[Candidate, ...]:
    """Return bug fixes of other projects, the most similar first.

    Never among them: changes of the project itself or of one of the same name, such as a fork; published tasks, which
    may be a benchmark's; changes whose statement the judge has excluded; and changes of repositories in another split
    (column `split`), so that no task of one split is made after a change of another.

    Args:
        store: the database.
        candidate: the change for whose tree bugs are wanted.
        languages: languages of the changes.
        is_allowed: whether a change may be used, by rules that need more than the database.
        most: number of changes that are returned at most.
    """
    own_words = list_topic_words(candidate)
    with store.read_transaction() as connection:
        keys = dict.fromkeys(_search_tasks(connection, list(own_words)[:MAX_SEARCH_WORDS], candidate, languages))
        keys |= dict.fromkeys(_list_newest(connection, candidate, languages))
    stored = store.get_many(Candidate, list(keys))
    # In the order in which they were found, so that of equally similar changes the same ones are chosen each time.
    others = [other for key in keys if (other := stored.get(key)) and _is_comparable(other, candidate)]
    words = {other.id: list_topic_words(other) for other in others}
    weights = weigh_words([own_words, *words.values()])
    ranked = sorted(others, key=lambda other: -compare_words(own_words, words[other.id], weights))
    return tuple(islice(filter(is_allowed, ranked), most))


def list_topic_words(candidate: Candidate) -> list[str]:
    """Return the words of a change's topic: of its files, title, code and other text of its statement, each once."""
    title, _, text = candidate.problem_statement.partition("\n")
    paths = (str(PurePosixPath(path).with_suffix("")) for path in candidate.gold_files)
    parts = [candidate.repo.rpartition("/")[2], *paths, title, *_CODE.findall(text), text]
    return list(dict.fromkeys(word for part in parts for word in list_word_parts(part)))


def _search_tasks(
    connection: Connection, words: list[str], candidate: Candidate, languages: Collection[str]
) -> Iterator[str]:
    """Yield the candidates (ids) of bug fixes whose texts contain any of some words, the best matches first."""
    match = search.build_match(connection, words, is_any=True)
    if match is None:
        return
    hits, tasks = search.get_hits(connection), TASK_LISTING
    query = (
        select(tasks.c.candidate)
        .join_from(tasks, hits, hits.c.task == tasks.c.task)
        .where(
            tasks.c.kind == Kind.BUGFIX.value,
            tasks.c.repo != candidate.repo,
            tasks.c.split == choose_split(candidate.repo),
            tasks.c.set_aside.is_(None),
            match_words(tasks.c.language, languages),
        )
        .order_by(hits.c.badness, tasks.c.name)
        .limit(MAX_COMPARED)
    )
    yield from connection.execute(query, {"words": match}).scalars()


def _list_newest(connection: Connection, candidate: Candidate, languages: Collection[str]) -> Iterator[str]:
    """Yield the candidates (ids) of the newest changes that are tagged as bug fixes."""
    changes = CHANGE_LISTING
    query = (
        select(changes.c.candidate)
        .where(
            changes.c.candidate.is_not(None),
            changes.c.change_kind == ChangeKind.BUGFIX.value,
            changes.c.repo != candidate.repo,
            changes.c.set_aside.is_(None),
            match_words(changes.c.language, languages),
        )
        .order_by(changes.c.merged_at.desc(), changes.c.name)
        .limit(MAX_COMPARED)
    )
    yield from connection.execute(query).scalars()


def _is_comparable(other: Candidate, candidate: Candidate) -> bool:
    """Return whether a change is of another project and the same split, unpublished, and small enough."""
    projects = {repo.lower().rpartition("/")[2] for repo in (other.repo, candidate.repo)}
    return (
        len(projects) == 2
        and choose_split(other.repo) == choose_split(candidate.repo)
        and other.published is None
        and not other.source.startswith("instances:")
        and other.gold_lines <= MAX_GOLD_LINES
        and bool(other.problem_statement.strip())
    )
