"""Queries over simulated conversations: lists, counts by rule, and the fate of a single conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Integer, Select, String, and_, column, func, select, table, text

from core.errors import InputError
from taskdb.records.simulations import PREFILTER, SimulatedConversation
from taskdb.schema.word_lists import match_words
from taskdb.store import Store

LIST_KEYS = (
    "id",
    "name",
    "environment",
    "seed",
    "domain",
    "profile",
    "simulator",
    "sample",
    "scenario",
    "failure",
    "license",
    "n_turns",
    "n_calls",
    "trajectory",
)
"""Keys of a listed conversation."""

_CONVERSATIONS = table(
    "simulated_conversations",
    *(column(name, String()) for name in ("id", "name", "environment", "seed", "domain", "pack_version", "profile")),
    *(column(name, String()) for name in ("simulator", "scenario", "failure", "license", "answer", "trajectory")),
    *(column(name, Integer()) for name in ("sample", "n_turns", "n_calls")),
)


@dataclass(frozen=True, kw_only=True)
class ConversationFilters:
    """Conditions on simulated conversations; None and empty values select all."""

    domain: Sequence[str] = ()
    profile: Sequence[str] = ()
    simulator: Sequence[str] = ()
    scenario: Sequence[str] = ()
    license: Sequence[str] = ()
    pack_version: str | None = None
    with_failure: bool | None = None
    """True: a tool failure was ordered; False: none was."""
    min_turns: int | None = None
    max_turns: int | None = None
    per_seed: int | None = None
    """At most this many of each seed and domain, those of the smallest samples."""


# ---------------------------------------------------------------------------------------------------------- listing


def list_conversations(
    store: Store, filters: ConversationFilters, limit: int | None = None, *, columns: Sequence[str] = LIST_KEYS
) -> list[dict[str, Any]]:
    """Return simulated conversations by domain, seed, sample and id."""
    query = _select(filters).limit(limit)
    with store.read_transaction() as connection:
        return [{key: row[key] for key in columns} for row in connection.execute(query).mappings()]


def load_conversations(store: Store, keys: Sequence[str]) -> list[SimulatedConversation]:
    """Return the conversations of some ids, in their order."""
    conversations = store.get_many(SimulatedConversation, keys)
    return [conversations[key] for key in keys]


def resolve_conversation(store: Store, word: str) -> SimulatedConversation:
    """Return the kept conversation of a name, or of the id of its record, its rows or its answer, or a beginning.

    Of several of the same name, such as those of two models, a conversation must be named by an id.

    Raises:
        InputError: none or several match.
    """
    keys = _CONVERSATIONS.c
    named = [
        keys.name == word,
        *(and_(key >= word, key < f"{word}g") for key in (keys.id, keys.trajectory, keys.answer)),
    ]
    query = select(keys.id, keys.name, keys.simulator).order_by(keys.id).limit(9)
    with store.read_transaction() as connection:
        hits = next((rows for condition in named if (rows := connection.execute(query.where(condition)).all())), [])
    if not hits:
        raise InputError(f"there is no simulated conversation {word}", advice="`mergemill simulate list` lists them")
    if len(hits) > 1:
        matches = ", ".join(f"{row.id[:16]} ({row.name} by {row.simulator})" for row in hits[:5])
        raise InputError(f"{word} is ambiguous: {matches}", advice="name one by its id")
    return store.get(SimulatedConversation, hits[0].id)


def _select(filters: ConversationFilters) -> Select[Any]:
    order = ("domain", "seed", "sample", "id")
    query = select(*_CONVERSATIONS.c).where(*_build_conditions(filters))
    if filters.per_seed is None:
        return query.order_by(*(_CONVERSATIONS.c[name] for name in order))
    inner = _CONVERSATIONS.c
    place = func.row_number().over(partition_by=[inner.domain, inner.seed], order_by=[inner.sample, inner.id])
    ranked = query.add_columns(place.label("place")).subquery()
    return select(ranked).where(ranked.c.place <= filters.per_seed).order_by(*(ranked.c[name] for name in order))


def _build_conditions(filters: ConversationFilters) -> list[ColumnElement[bool]]:
    known = _CONVERSATIONS.c
    conditions: list[ColumnElement[bool]] = [
        match_words(known[name], words)
        for name in ("domain", "profile", "simulator", "scenario", "license")
        if (words := getattr(filters, name))
    ]
    if filters.pack_version is not None:
        conditions.append(known.pack_version == filters.pack_version)
    if filters.with_failure is not None:
        conditions.append(known.failure.is_not(None) if filters.with_failure else known.failure.is_(None))
    if filters.min_turns is not None:
        conditions.append(known.n_turns >= filters.min_turns)
    if filters.max_turns is not None:
        conditions.append(known.n_turns <= filters.max_turns)
    return conditions


# ----------------------------------------------------------------------------------------------------------- counts


def compute_simulation_funnel(
    store: Store, steps: Sequence[str], domains: Sequence[str] = (), profiles: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], dict[tuple[str, str], str]]:
    """Return a row for the seeds and another for each step of conversations, and an example for each (step, reason).

    In each row `in` is the sum of `out` and all that were rejected; `out` of a step of conversations is `in` of the
    next. A seed is used if a conversation was made of it.

    Args:
        store: the database.
        steps: names of the steps of conversations, in their order; others that occur come last.
        domains: count only these; all, if empty.
        profiles: count only these; all, if empty.
    """
    with store.read_transaction() as connection:
        kept, rejected = (
            [
                row
                for row in connection.execute(query)
                if (not domains or row.domain in domains) and (not profiles or row.profile in profiles)
            ]
            for query in (_KEPT, _REJECTED)
        )
    dropped = [row for row in rejected if row.step != PREFILTER]
    used = {(row.domain, row.seed) for row in (*kept, *dropped)}
    unused = [row for row in rejected if row.step == PREFILTER and (row.domain, row.seed) not in used]
    reasons: dict[str, Counter[str]] = {}
    examples: dict[tuple[str, str], str] = {}
    for row in (*unused, *dropped):
        reasons.setdefault(row.step, Counter())[row.reason] += 1
        examples[row.step, row.reason] = row.name
    rows = [_make_step(PREFILTER, len(used) + len(unused), reasons.pop(PREFILTER, Counter()))]
    came = len(kept) + len(dropped)
    for step in (*steps, *sorted(set(reasons) - set(steps))):
        rows.append(_make_step(step, came, reasons.get(step, Counter())))
        came = rows[-1]["out"]
    return rows, examples


class SeedKey(NamedTuple):
    """Seed of conversations of a domain that were made by the rules of a profile."""

    domain: str
    profile: str
    seed: str


def count_outcomes(
    store: Store, simulator: str, domains: Sequence[str] = (), profiles: Sequence[str] = ()
) -> dict[SeedKey, tuple[int, int]]:
    """Return seed -> how many of the conversations that a simulator wrote of it were kept, and how many dropped.

    Args:
        store: the database.
        simulator: name of the model.
        domains: count only these; all, if empty.
        profiles: count only these; all, if empty.
    """
    counts: dict[SeedKey, list[int]] = {}
    with store.read_transaction() as connection:
        for place, query in enumerate((_KEPT_BY, _DROPPED_BY)):
            for row in connection.execute(query, {"simulator": simulator, "prefilter": PREFILTER}):
                if (not domains or row.domain in domains) and (not profiles or row.profile in profiles):
                    counts.setdefault(SeedKey(row.domain, row.profile, row.seed), [0, 0])[place] += row.n
    return {key: (kept, dropped) for key, (kept, dropped) in counts.items()}


def list_conversation_simulators(store: Store) -> list[str]:
    """Return the models that wrote conversations which were kept or dropped."""
    with store.read_transaction() as connection:
        return list(connection.execute(_SIMULATORS, {"prefilter": PREFILTER}).scalars())


def _make_step(step: str, came: int, reasons: Counter[str]) -> dict[str, Any]:
    rejected = dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
    return {"step": step, "in": came, "out": came - reasons.total(), "rejected": rejected}


_KEPT = text("SELECT domain, profile, seed FROM simulated_conversations")
_KEPT_BY = text("""
    SELECT domain, profile, seed, count(*) AS n FROM simulated_conversations WHERE simulator = :simulator
    GROUP BY domain, profile, seed""")
_DROPPED_BY = text("""
    SELECT domain, profile, seed, count(*) AS n FROM simulation_rejections
    WHERE simulator = :simulator AND step <> :prefilter GROUP BY domain, profile, seed""")
_SIMULATORS = text("""
    SELECT simulator FROM simulated_conversations
    UNION SELECT simulator FROM simulation_rejections WHERE step <> :prefilter ORDER BY simulator""")
_REJECTED = text("SELECT name, domain, profile, seed, step, reason FROM simulation_rejections ORDER BY added_at, id")


# ---------------------------------------------------------------------------------------------------------- stories


def look_up_simulation(store: Store, word: str) -> dict[str, Any] | None:
    """Return the fate of a seed or of a simulated conversation; None where a word names none.

    Args:
        store: the database.
        word: a conversation's name (`SEED-SAMPLE`), a seed's id, the id of a record, a row or an answer, or the
            beginning of an id.

    Returns:
        `of` (`simulations`), `name`, `environment` (`simulated`), and `events`, oldest first: at, step (empty for a
        conversation that was kept), name, ok, reason, detail, domain, profile, simulator, answer, record.

    Raises:
        InputError: the beginning of an id is ambiguous.
    """
    with store.read_transaction() as connection:
        rows = connection.execute(_NAMED, {"word": word}).mappings().all()
        if not rows and word:
            matches = connection.execute(_BY_ID, {"word": word, "beyond": f"{word}g"}).all()
            names, seeds = {row.name for row in matches}, {row.seed for row in matches}
            if len(seeds) > 1:
                raise InputError(f"{word} is ambiguous, {len(seeds)} seeds match", advice="give more digits")
            for key in names if len(names) == 1 else seeds:
                rows = connection.execute(_NAMED, {"word": key}).mappings().all()
    if not rows:
        return None
    names = {row["name"] for row in rows}
    events = [{**row, "ok": row["reason"] is None} for row in rows]
    return {
        "of": "simulations",
        "name": names.pop() if len(names) == 1 else rows[0]["seed"],
        "environment": "simulated",
        "events": [{key: event[key] for key in EVENT_KEYS} for event in events],
    }


EVENT_KEYS = ("at", "step", "name", "ok", "reason", "detail", "domain", "profile", "simulator", "answer", "record")
_NAMED = text("""
    SELECT name, parent AS seed, added_at AS at, '' AS step, NULL AS reason,
           'kept' AS detail, domain, profile, simulator, answer, id AS record
    FROM simulated_conversation WHERE name = :word OR parent = :word
    UNION ALL
    SELECT name, parent, added_at, step, reason, detail, domain, profile, simulator, answer, id
    FROM simulation_rejection WHERE name = :word OR parent = :word
    ORDER BY at, name""")
_BY_ID = text("""
    SELECT name, parent AS seed FROM simulated_conversation
    WHERE id >= :word AND id < :beyond OR parent >= :word AND parent < :beyond
       OR answer >= :word AND answer < :beyond OR trajectory >= :word AND trajectory < :beyond
    UNION
    SELECT name, parent FROM simulation_rejection
    WHERE id >= :word AND id < :beyond OR parent >= :word AND parent < :beyond
       OR answer >= :word AND answer < :beyond""")
