"""Queries over corpora, walks and questions: which are pending, which there are, and how people name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Integer, String, TextClause, bindparam, column, select, text
from sqlalchemy import table as make_table

from core.errors import InputError
from taskdb.records import Record
from taskdb.records.questions import (
    Corpus,
    ExploreStep,
    Question,
    QuestionCertificate,
    QuestionRejection,
    Walk,
    compute_seed_id,
)
from taskdb.schema.batches import execute_in_batches
from taskdb.schema.word_lists import match_words
from taskdb.store import Store

R = TypeVar("R", bound=Record)
STATUSES = ("waiting", "certified", "rejected")
LIST_KEYS = (
    "id",
    "name",
    "corpus_name",
    "round",
    "status",
    "reason",
    "best",
    "answer_type",
    "license",
    "n_clues",
    "entry_rank",
    "attempts",
    "solved",
    "mean_turns",
    "environment",
)
"""Keys of a listed question."""
CORPUS_KEYS = ("id", "name", "source", "language", "n_pages", "n_left_out", "pages_sha256", "index_sha256")
WALK_KEYS = ("id", "name", "corpus_name", "seed", "status", "reason", "n_calls", "n_pages", "n_facts", "model")


@dataclass(frozen=True, kw_only=True)
class QuestionFilters:
    """Conditions on questions; None and empty values select all."""

    corpus: str | None = None
    """Name of the corpus."""
    status: Sequence[str] = ()
    """Some of STATUSES."""
    reason: Sequence[str] = ()
    round: int | None = None
    best: bool = False
    """Whether only the question of each walk that is exported is selected."""


_TEXTS = ("id", "name", "corpus_name", "status", "reason", "answer_type", "license", "environment")
_NUMBERS = ("round", "best", "n_clues", "entry_rank", "attempts", "solved", "mean_turns")
_QUESTIONS = make_table(
    "questions", *(column(name, String()) for name in _TEXTS), *(column(name, Integer()) for name in _NUMBERS)
)


# ---------------------------------------------------------------------------------------------------------- listing


def list_corpora(store: Store) -> list[dict[str, Any]]:
    """Return the newest corpus of each name under CORPUS_KEYS, by name."""
    return _list_rows(store, text(f"SELECT {', '.join(CORPUS_KEYS)} FROM corpora ORDER BY name"), {})  # noqa: S608


def list_walks(store: Store, corpus: str | None = None) -> list[dict[str, Any]]:
    """Return walks under WALK_KEYS, by name; only those over corpora of a name, if given."""
    query = text(
        f"SELECT {', '.join(WALK_KEYS)} FROM walks WHERE :corpus = '' OR corpus_name = :corpus ORDER BY name, id"  # noqa: S608
    )
    return _list_rows(store, query, {"corpus": corpus or ""})


def list_questions(store: Store, filters: QuestionFilters, limit: int | None = None) -> list[dict[str, Any]]:
    """Return questions under LIST_KEYS, by name and id."""
    known = _QUESTIONS.c
    columns = [known[name] for name in LIST_KEYS]
    query = select(*columns).where(*_build_conditions(filters)).order_by(known.name, known.id).limit(limit)
    with store.read_transaction() as connection:
        return [
            {name: bool(value) if name == "best" else value for name, value in row.items()}
            for row in connection.execute(query).mappings()
        ]


def _list_rows(store: Store, query: TextClause, values: dict[str, Any]) -> list[dict[str, Any]]:
    with store.read_transaction() as connection:
        return [dict(row) for row in connection.execute(query, values).mappings()]


def _build_conditions(filters: QuestionFilters) -> list[ColumnElement[bool]]:
    known = _QUESTIONS.c
    conditions: list[ColumnElement[bool]] = []
    if filters.corpus is not None:
        conditions.append(known.corpus_name == filters.corpus)
    if filters.status:
        conditions.append(match_words(known.status, filters.status))
    if filters.reason:
        conditions.append(match_words(known.reason, filters.reason))
    if filters.round is not None:
        conditions.append(known.round == filters.round)
    if filters.best:
        conditions.append(known.best == 1)
    return conditions


# ----------------------------------------------------------------------------------------------------------- naming


def find_corpus(store: Store, word: str) -> Corpus:
    """Return the newest corpus of a name, else that of an id or its beginning.

    Raises:
        InputError: there is none, or several begin so.
    """
    return _find_record(store, Corpus, "corpus", word, "`mergemill explore list --of corpora` lists the corpora")


def find_question(store: Store, word: str) -> Question:
    """Return a question by name (the newest), id or the beginning of an id; of a walk's name its best or newest.

    Raises:
        InputError: there is none, or several begin so.
    """
    with store.read_transaction() as connection:
        row = connection.execute(_OF_WALK, {"word": word}).first()
    # The name of a walk stands for the question that came of it.
    if row is not None:
        return store.get(Question, row.id)
    return _find_record(store, Question, "question", word, "`mergemill explore list` lists the questions")


def _find_record(store: Store, kind: type[R], table: str, word: str, advice: str) -> R:
    with store.read_transaction() as connection:
        # The name of a table cannot be a bound parameter; the callers have constants.
        named = text(f"SELECT id FROM {table} WHERE name = :word ORDER BY seq DESC LIMIT 1")  # noqa: S608
        begun = text(f"SELECT id FROM {table} WHERE id >= :word AND id < :beyond LIMIT 2")  # noqa: S608
        keys = list(connection.execute(named, {"word": word}).scalars())
        keys = keys or list(connection.execute(begun, {"word": word, "beyond": f"{word}g"}).scalars())
    if not keys:
        raise InputError(f"there is no {table} {word}", advice=advice)
    if len(keys) > 1:
        raise InputError(f"{word} is ambiguous", advice="give its name, or more digits")
    return store.get(kind, keys[0])


_OF_WALK = text(
    "SELECT id FROM questions WHERE walk_name = :word ORDER BY best DESC, round DESC, added_at DESC LIMIT 1"
)


# ---------------------------------------------------------------------------------------------------------- pending


def list_done_seeds(store: Store, corpus: Corpus, *, retry: Sequence[str] = ()) -> set[str]:
    """Return the ids of the seeds of a corpus with a walk or a rejection, of reasons that `retry` does not name."""
    values = {"corpus": corpus.id, "retry": list(retry)}
    with store.read_transaction() as connection:
        walked = {compute_seed_id(corpus.id, row.seed) for row in connection.execute(_SEEDS, values)}
        return walked | set(connection.execute(_REJECTED_SEEDS, values).scalars())


def find_pending_walks(store: Store, corpus: Corpus, *, retry: Sequence[str] = ()) -> list[Walk]:
    """Return the walks over a corpus without a question and without a rejection, by name."""
    return _load_pending(store, Walk, _PENDING_WALKS, corpus, retry)


def find_pending_questions(store: Store, corpus: Corpus, *, retry: Sequence[str] = ()) -> list[Question]:
    """Return the questions over a corpus with neither certificate nor rejection, by name."""
    return _load_pending(store, Question, _PENDING_QUESTIONS, corpus, retry)


@dataclass(frozen=True, kw_only=True)
class ChainRound:
    """A round of the chain of a walk. `question`: its id; empty where evolution made none, for `reason`."""

    round: int
    question: str
    status: str
    reason: str | None


def list_chains(store: Store, corpus: Corpus) -> dict[str, list[ChainRound]]:
    """Return the rounds of each walk over a corpus with a question: id of the walk -> rounds in their order."""
    chains: dict[str, list[ChainRound]] = {}
    with store.read_transaction() as connection:
        for row in connection.execute(_CHAINS, {"corpus": corpus.id}):
            chain = ChainRound(round=row.round, question=row.id or "", status=row.status, reason=row.reason)
            chains.setdefault(row.walk, []).append(chain)
    return chains


def _load_pending(store: Store, kind: type[R], query: TextClause, corpus: Corpus, retry: Sequence[str]) -> list[R]:
    with store.read_transaction() as connection:
        keys = list(connection.execute(query, {"corpus": corpus.id, "retry": list(retry)}).scalars())
    records = store.get_many(kind, keys)
    return [records[key] for key in keys]


def _make_retried(query: str) -> TextClause:
    return text(query).bindparams(bindparam("retry", type_=String(), expanding=True))


_SEEDS = text("SELECT seed FROM walk WHERE parent = :corpus")
_REJECTED_SEEDS = _make_retried("""
    SELECT parent FROM question_rejection WHERE corpus = :corpus AND step = 'walk' AND reason NOT IN :retry""")
_PENDING_WALKS = _make_retried("""
    SELECT id FROM walks WHERE corpus = :corpus AND (status = 'waiting' OR status = 'rejected' AND reason IN :retry)
    ORDER BY name, id""")
_PENDING_QUESTIONS = _make_retried("""
    SELECT id FROM questions WHERE corpus = :corpus AND (status = 'waiting' OR status = 'rejected' AND reason IN :retry)
    ORDER BY name, id""")
# A round that evolution could not make has a rejection and no question; it counts as a round.
_CHAINS = text("""
    SELECT walk, round, id, status, reason, 0 AS unmade FROM questions WHERE corpus = :corpus
    UNION ALL SELECT walk, round, NULL, 'rejected', reason, 1 FROM question_rejections
    WHERE corpus = :corpus AND step = 'evolve' ORDER BY walk, round, unmade""")


# ---------------------------------------------------------------------------------------------------------- details


def load_certificate(store: Store, question: Question) -> QuestionCertificate | None:
    """Return the newest certificate of a question; None where it has none."""
    keys = _list_children(store, "question_certificate", question.id)
    return store.get(QuestionCertificate, keys[-1]) if keys else None


def load_rejection(store: Store, parent: str, step: ExploreStep) -> QuestionRejection | None:
    """Return the newest rejection of something by a step; None where there is none."""
    keys = _list_children(store, "question_rejection", parent)
    rejections = store.get_many(QuestionRejection, keys)
    return next((rejections[key] for key in reversed(keys) if rejections[key].step is step), None)


def load_best_questions(store: Store, names: Sequence[str] = (), corpus: str | None = None) -> list[Question]:
    """Return the best certified question of each walk, by name; only those of some names, ids or walks, if given."""
    with store.read_transaction() as connection:
        rows = connection.execute(_BEST, {"corpus": corpus or ""}).all()
    keys = [row.id for row in rows if not names or {row.id, row.name, row.walk_name} & set(names)]
    questions = store.get_many(Question, keys)
    return [questions[key] for key in keys]


def load_records(store: Store, kind: type[R], keys: Sequence[str]) -> list[R]:
    """Return records by id, in the order of the ids."""
    records = store.get_many(kind, keys)
    return [records[key] for key in keys]


def list_comparable_questions(store: Store, corpus: Corpus) -> list[tuple[str, str, int, bool, str]]:
    """Return name, walk (id), round, whether it is rejected, and id of each question over a corpus, by name.

    A question that came to the solvers does not count as rejected.
    """
    with store.read_transaction() as connection:
        rows = connection.execute(_COMPARABLE, {"corpus": corpus.id}).all()
    return [(row.name, row.walk, row.round, row.status == "rejected" and row.attempts is None, row.id) for row in rows]


def list_samples(store: Store, corpora: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return `walk`, `round`, `attempts`, `solved` and `mean_turns` of the questions that solvers attempted."""
    # Few enough to be read whole: a row for each question that solvers attempted.
    rows = _list_rows(store, _SAMPLES, {})
    return [row for row in rows if not corpora or row["corpus_name"] in corpora]


def list_walk_names(store: Store, keys: Sequence[str]) -> dict[str, str]:
    """Return id -> name of walks."""
    with store.read_transaction() as connection:
        return {row.id: row.name for row in execute_in_batches(connection, _WALK_NAMES, keys)}


def _list_children(store: Store, table: str, parent: str) -> list[str]:
    query = text(f"SELECT id FROM {table} WHERE parent = :parent ORDER BY seq")  # noqa: S608 - a constant
    with store.read_transaction() as connection:
        return list(connection.execute(query, {"parent": parent}).scalars())


_BEST = text("""
    SELECT id, name, walk_name FROM questions WHERE best = 1 AND (:corpus = '' OR corpus_name = :corpus)
    ORDER BY name, id""")
_COMPARABLE = text("""
    SELECT name, walk, round, status, attempts, id FROM questions WHERE corpus = :corpus ORDER BY name, id""")
_SAMPLES = text("""
    SELECT corpus_name, walk, round, attempts, solved, mean_turns FROM questions WHERE attempts > 0
    ORDER BY walk, round, added_at""")
_WALK_NAMES = text("SELECT id, name FROM walk WHERE id IN :keys").bindparams(bindparam("keys", expanding=True))
