"""Fate of seeds, walks and questions: counts by step, and the history of a single walk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, text

from core.text import format_count
from taskdb.queries.world_histories import EVENT_KEYS, StepCounts
from taskdb.records.questions import CORPUS, ExploreStep, QuestionRejection
from taskdb.store import Store, load_field


def compute_question_funnel(
    store: Store, corpora: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], dict[tuple[str, str], str]]:
    """Return a row for each step, and an example for each (step, reason).

    `walk` counts seeds, `write` walks, `evolve` the rounds that were to be made, and `gate` the questions of all
    rounds. In each row `in` is the sum of `out`, `waiting` and all that were rejected.
    """
    counts = {step: StepCounts() for step in ExploreStep}
    with store.read_transaction() as connection:
        for row in connection.execute(_COUNTED):
            if not corpora or row.corpus_name in corpora:
                counts[ExploreStep(row.step)].add(row)
    examples = {(step.value, reason): name for step, of in counts.items() for reason, name in of.examples.items()}
    return [counts[step].to_row(step.value) for step in ExploreStep], examples


_COUNTED = text("""
    SELECT 'walk' AS step, name, corpus_name, 'passed' AS status, NULL AS reason, added_at, id FROM walks
    UNION ALL SELECT 'walk', r.name, k.name, 'rejected', r.reason, r.added_at, r.id
              FROM question_rejections r JOIN corpus k ON k.id = r.corpus WHERE r.step = 'walk'
    UNION ALL SELECT 'write', name, corpus_name, CASE WHEN status = 'written' THEN 'passed' ELSE status END, reason,
                     added_at, id FROM walks
    UNION ALL SELECT 'evolve', name, corpus_name, 'passed', NULL, added_at, id FROM questions WHERE round > 0
    UNION ALL SELECT 'evolve', r.name, k.name, 'rejected', r.reason, r.added_at, r.id
              FROM question_rejections r JOIN corpus k ON k.id = r.corpus WHERE r.step = 'evolve'
    UNION ALL SELECT 'gate', name, corpus_name, CASE WHEN status = 'certified' THEN 'passed' ELSE status END, reason,
                     added_at, id FROM questions
    ORDER BY 6, 7""")


def look_up_question(store: Store, word: str) -> dict[str, Any] | None:
    """Return the fate of a seed, a walk or a question; None where a word names none.

    Args:
        store: the database.
        word: name of a walk or question, id or its beginning, or the text of a seed. The report has the whole chain.

    Returns:
        `of` (`questions`), `name`, `source` (name of the corpus), `environment` (`corpus`), `events` under EVENT_KEYS,
        oldest first, and `log` (artifact of the newest rejection or null).
    """
    with store.read_transaction() as connection:
        names = {"word": word, "beyond": f"{word}g"}
        walks = [row.walk for row in connection.execute(_NAMED, names)]
        unwalked = [row.parent for row in connection.execute(_UNWALKED, names)]
        if not walks and not unwalked:
            return None
        events = [event for walk in walks for event in _iterate_events(connection, walk)]
        events += [
            _make_rejection_event(row) for key in unwalked for row in connection.execute(_OF_PARENT, {"parent": key})
        ]
        rejections = [event["record"] for event in events if not event["ok"]]
        log = load_field(connection, QuestionRejection, rejections[-1], "log") if rejections else None
    return {
        "of": "questions",
        "name": word,
        "source": events[-1]["source"],
        "environment": CORPUS,
        "events": [{key: event[key] for key in EVENT_KEYS} for event in events],
        "log": log,
    }


def _iterate_events(connection: Connection, walk: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a walk and its questions: each question is followed by the event that became of it."""
    keys = {"walk": walk}
    rejections = [_make_rejection_event(row) for row in connection.execute(_REJECTIONS, keys)]
    for row in connection.execute(_WALK, keys):
        yield _make_event(row, "walk", "walk", f"{row.n_calls} calls, {format_count(row.n_facts, 'fact')}")
    yield from (event for event in rejections if event["step"] == ExploreStep.WRITE)
    questions = list(connection.execute(_QUESTIONS, keys))
    for row in questions:
        step = ExploreStep.EVOLVE if row.round else ExploreStep.WRITE
        yield _make_event(row, step.value, "question", format_count(row.n_clues, "clue"))
        yield from (event for event in rejections if event["parent"] == row.id and event["step"] == ExploreStep.GATE)
        for certificate in connection.execute(_CERTIFICATES, {"parent": row.id}):
            detail = f"{certificate.solved} of {certificate.attempts} samples, {certificate.mean_turns:.1f} turns"
            yield _make_event(certificate, "gate", "question certificate", detail, row.corpus_name)
        yield from (event for event in rejections if event["parent"] == row.id and event["step"] == ExploreStep.EVOLVE)


def _make_event(row: Row[Any], step: str, thing: str, detail: str, source: str = "") -> dict[str, Any]:
    return {
        "at": row.added_at,
        "step": step,
        "thing": thing,
        "name": row.name,
        "source": source or row.corpus_name,
        "ok": True,
        "reason": None,
        "detail": detail,
        "record": row.id,
    }


def _make_rejection_event(row: Row[Any]) -> dict[str, Any]:
    things: Mapping[str, str] = {"walk": "seed", "write": "walk"}
    return {
        "at": row.added_at,
        "step": row.step,
        "thing": things.get(row.step, "question"),
        "name": row.name,
        "source": row.corpus_name,
        "ok": False,
        "reason": row.reason,
        "detail": row.detail,
        "record": row.id,
        "parent": row.parent,
    }


_NAMED = text("""
    SELECT id AS walk FROM walk WHERE name = :word OR seed = :word OR id >= :word AND id < :beyond
    UNION SELECT walk FROM question WHERE name = :word OR id >= :word AND id < :beyond ORDER BY walk""")
_UNWALKED = text("""
    SELECT DISTINCT parent FROM question_rejection WHERE step = 'walk' AND (name = :word OR parent = :word)
    AND NOT EXISTS (SELECT 1 FROM walk w WHERE w.name = question_rejection.name)""")
_WALK = text("""
    SELECT id, name, corpus AS corpus_name, n_calls, n_facts, added_at FROM walk WHERE id = :walk""")
_QUESTIONS = text("""
    SELECT q.id, q.name, w.corpus AS corpus_name, q.round, q.n_clues, q.added_at
    FROM question q JOIN walk w ON w.id = q.walk WHERE q.walk = :walk ORDER BY q.round, q.seq""")
_CERTIFICATES = text("""
    SELECT id, name, attempts, solved, mean_turns, added_at FROM question_certificate WHERE parent = :parent
    ORDER BY seq""")
_REJECTION = """
    SELECT r.id, r.name, k.name AS corpus_name, r.step, r.reason, r.detail, r.parent, r.added_at
    FROM question_rejection r JOIN corpus k ON k.id = r.corpus"""
_REJECTIONS = text(f"{_REJECTION} WHERE r.walk = :walk ORDER BY r.seq")
_OF_PARENT = text(f"{_REJECTION} WHERE r.parent = :parent ORDER BY r.seq")
