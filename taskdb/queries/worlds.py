"""Queries over themes, worlds and scenarios: which are pending, which there are, and how people name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Integer,
    Row,
    String,
    TableClause,
    TextClause,
    bindparam,
    column,
    select,
    text,
)
from sqlalchemy import table as make_table

from core.errors import InputError
from taskdb.records import Record
from taskdb.records.worlds import (
    Scenario,
    ScenarioCertificate,
    Theme,
    World,
    WorldCertificate,
    WorldOrigin,
    WorldRejection,
    WorldStep,
)
from taskdb.schema.batches import execute_in_batches
from taskdb.schema.record_tables import TABLE_NAMES
from taskdb.schema.word_lists import match_words
from taskdb.store import Store

R = TypeVar("R", bound=Record)

LIST_KEYS = (
    "id",
    "name",
    "origin",
    "environment",
    "source",
    "license",
    "status",
    "reason",
    "n_tools",
    "n_queries",
    "n_changes",
    "rounds",
    "pass_rate",
    "score",
    "scenarios",
    "certified_scenarios",
)
"""Keys of a listed world."""
STATUSES = ("waiting", "certified", "rejected")


@dataclass(frozen=True, kw_only=True)
class WorldFilters:
    """Conditions on worlds; None and empty values select all."""

    name: str | None = None
    """A part of the name, in any case."""
    origin: Sequence[WorldOrigin] = ()
    status: Sequence[str] = ()
    """Some of STATUSES."""
    license: Sequence[str] = ()
    """SPDX expressions."""
    min_score: float | None = None
    """Least share of the rounds that passed or were warned of, 0..1."""
    min_tools: int | None = None
    max_tools: int | None = None


_WORLDS = make_table(
    "worlds",
    *(column(name, String()) for name in ("id", "name", "origin", "environment", "source", "license")),
    *(column(name, String()) for name in ("status", "reason")),
    *(column(name, Integer()) for name in ("n_tools", "n_queries", "n_changes", "rounds")),
    *(column(name, Float()) for name in ("pass_rate", "score")),
)


# ---------------------------------------------------------------------------------------------------------- listing


def list_worlds(store: Store, filters: WorldFilters, limit: int | None = None) -> list[dict[str, Any]]:
    """Return worlds under LIST_KEYS, by name and id."""
    known = _WORLDS.c
    query = select(*known).where(*_build_conditions(filters)).order_by(known.name, known.id).limit(limit)
    with store.read_transaction() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
        counted = {row.world: row for row in connection.execute(_COUNT_SCENARIOS)}
    for row in rows:
        counts = counted.get(row["id"])
        row["scenarios"], row["certified_scenarios"] = (counts.n, counts.certified) if counts else (0, 0)
    return [{key: row[key] for key in LIST_KEYS} for row in rows]


def _build_conditions(filters: WorldFilters) -> list[ColumnElement[bool]]:
    known = _WORLDS.c
    conditions: list[ColumnElement[bool]] = []
    if filters.name is not None:
        conditions.append(known.name.icontains(filters.name, autoescape=True))
    if filters.origin:
        conditions.append(known.origin.in_([origin.value for origin in filters.origin]))
    if filters.status:
        conditions.append(match_words(known.status, filters.status))
    if filters.license:
        conditions.append(match_words(known.license, filters.license))
    if filters.min_score is not None:
        conditions.append(known.score >= filters.min_score)
    if filters.min_tools is not None:
        conditions.append(known.n_tools >= filters.min_tools)
    if filters.max_tools is not None:
        conditions.append(known.n_tools <= filters.max_tools)
    return conditions


_COUNT_SCENARIOS = text("""
    SELECT world, count(*) AS n, CAST(sum(CASE WHEN status = 'certified' THEN 1 ELSE 0 END) AS BIGINT) AS certified
    FROM scenarios GROUP BY world""")


# ---------------------------------------------------------------------------------------------------------- pending


def find_pending_themes(store: Store, *, retry: Sequence[str] = ()) -> list[Theme]:
    """Return the themes without a world and without a rejection, oldest first.

    Args:
        store: the database.
        retry: reasons of rejections that do not count.
    """
    return _load_all(store, Theme, _PENDING_THEMES, retry=list(retry))


def find_pending_worlds(store: Store, *, retry: Sequence[str] = ()) -> list[World]:
    """Return the current worlds with neither certificate nor rejection, oldest first; `retry` as for themes."""
    return _load_all(store, World, _PENDING_WORLDS, retry=list(retry))


def find_pending_scenarios(store: Store, *, retry: Sequence[str] = ()) -> list[Scenario]:
    """Return the current scenarios with neither certificate nor rejection, oldest first; `retry` as for themes."""
    return _load_all(store, Scenario, _PENDING_SCENARIOS, retry=list(retry))


def find_certified_worlds(store: Store) -> list[World]:
    """Return the current worlds with a certificate, oldest first."""
    return _load_all(store, World, _CERTIFIED_WORLDS)


def list_rejected_names(store: Store, parent: str, step: WorldStep, *, retry: Sequence[str] = ()) -> list[str]:
    """Return the names under which a step rejected something of a parent; `retry` as for pending worlds."""
    with store.read_transaction() as connection:
        values = {"parent": parent, "step": step.value, "retry": list(retry)}
        return list(connection.execute(_REJECTED_NAMES, values).scalars())


def list_scenarios(store: Store, world: World, *, certified: bool = False) -> list[Scenario]:
    """Return the current scenarios of a world, oldest first; only the certified scenarios, if `certified`."""
    with store.read_transaction() as connection:
        rows = connection.execute(_SCENARIOS_OF, {"world": world.id}).all()
    keys = [row.id for row in rows if row.status == "certified" or not certified]
    scenarios = store.get_many(Scenario, keys)
    return [scenarios[key] for key in keys]


def list_scenario_rows(store: Store, world: World) -> list[dict[str, Any]]:
    """Return `id`, `name`, `status`, `reason` and `n_checks` of the current scenarios of a world, by name."""
    with store.read_transaction() as connection:
        return [dict(row) for row in connection.execute(_SCENARIO_ROWS, {"world": world.id}).mappings()]


def find_state(store: Store, record: World | Scenario) -> dict[str, Any]:
    """Return `status` and `reason` of a world or scenario; `superseded` where a newer record has taken its place."""
    view = "worlds" if isinstance(record, World) else "scenarios"
    # The name of a view cannot be a bound parameter; both are constants.
    query = text(f"SELECT status, reason FROM {view} WHERE id = :id")  # noqa: S608
    with store.read_transaction() as connection:
        row = connection.execute(query, {"id": record.id}).mappings().first()
    return dict(row) if row else {"status": "superseded", "reason": None}


def find_current_scenarios(store: Store, *, certified: bool) -> list[Scenario]:
    """Return the current scenarios of all worlds, oldest first; only the certified scenarios, if `certified`."""
    return _load_all(store, Scenario, _CERTIFIED_SCENARIOS if certified else _CURRENT_SCENARIOS)


def find_scenario_ids(store: Store, worlds: Sequence[str]) -> set[str]:
    """Return the ids of all scenarios of some worlds, given by name or id, earlier versions of both among them.

    Raises:
        InputError: there is no world of a name or id.
    """
    with store.read_transaction() as connection:
        ids = [row.id for word in worlds for row in _find_world_rows(connection, word)]
        return {row.id for row in execute_in_batches(connection, _SCENARIOS_OF_ALL, ids)}


def _find_world_rows(connection: Connection, word: str) -> Sequence[Row[Any]]:
    whole = _make_clause("world")
    rows = connection.execute(select(whole.c.id).where((whole.c.name == word) | (whole.c.id == word))).all()
    if not rows:
        raise InputError(f"there is no world {word}", advice="`mergemill worlds list` lists the worlds")
    return rows


@dataclass(frozen=True, kw_only=True)
class SolutionFacts:
    """Solution of a certified scenario: its calls, the different tools among them, and its calls of queries."""

    n_calls: int
    n_tools: int
    n_queries: int


def find_solution_facts(store: Store, scenarios: Sequence[str]) -> dict[str, SolutionFacts]:
    """Return scenario (id) -> the facts of its solution, from its newest certificate, for those that have one."""
    with store.read_transaction() as connection:
        rows = list(execute_in_batches(connection, _SOLUTIONS, list(scenarios)))
    # The newest certificate comes last, so it replaces earlier certificates of the same scenario.
    return {
        row.parent: SolutionFacts(n_calls=row.n_calls, n_tools=row.n_tools, n_queries=row.n_queries)
        for row in sorted(rows, key=lambda row: row.seq)
    }


def find_world_certificate(store: Store, world: World) -> WorldCertificate | None:
    """Return the newest certificate of a world; None where there is none."""
    return _load_newest_child(store, WorldCertificate, world)


def find_scenario_certificate(store: Store, scenario: Scenario) -> ScenarioCertificate | None:
    """Return the newest certificate of a scenario; None where there is none."""
    return _load_newest_child(store, ScenarioCertificate, scenario)


def find_world_rejection(store: Store, record: World | Scenario) -> WorldRejection | None:
    """Return the newest rejection of a world in its assessment, or of a scenario; None where there is none."""
    step = WorldStep.ASSESS if isinstance(record, World) else WorldStep.SCENARIOS
    query = text("SELECT id FROM world_rejection WHERE parent = :key AND step = :step ORDER BY seq DESC LIMIT 1")
    with store.read_transaction() as connection:
        key = connection.execute(query, {"key": record.id, "step": step.value}).scalar()
    return None if key is None else store.get(WorldRejection, key)


def _load_all(store: Store, kind: type[R], query: TextClause, **values: Any) -> list[R]:
    with store.read_transaction() as connection:
        keys = list(connection.execute(query, values).scalars())
    records = store.get_many(kind, keys)
    return [records[key] for key in keys]


def _load_newest_child(store: Store, kind: type[R], parent: Record) -> R | None:
    query = text(f"SELECT id FROM {TABLE_NAMES[kind]} WHERE parent = :key ORDER BY seq DESC LIMIT 1")  # noqa: S608
    with store.read_transaction() as connection:
        key = connection.execute(query, {"key": parent.id}).scalar()
    return None if key is None else store.get(kind, key)


def _build_pending_query(view: str, rejected: str) -> TextClause:
    """Return the query for records of a view that are waiting, or rejected for reasons to retry alone."""
    query = f"""
        SELECT v.id FROM {view} v
        WHERE v.status = 'waiting' OR v.status = 'rejected' AND NOT EXISTS (
            SELECT 1 FROM world_rejection r WHERE r.parent = v.id AND {rejected} AND r.reason NOT IN :retry)
        ORDER BY v.added_at, v.id"""  # noqa: S608 - constant names
    return text(query).bindparams(bindparam("retry", type_=String(), expanding=True))


_PENDING_THEMES = _build_pending_query("themes", "r.step IN ('discover', 'build')")
_PENDING_WORLDS = _build_pending_query("worlds", "r.step = 'assess'")
_PENDING_SCENARIOS = _build_pending_query("scenarios", "r.step = 'scenarios'")
_REJECTED_NAMES = text("""
    SELECT name FROM world_rejection
    WHERE parent = :parent AND step = :step AND reason NOT IN :retry ORDER BY name""").bindparams(
    bindparam("retry", type_=String(), expanding=True)
)
_CERTIFIED_WORLDS = text("SELECT id FROM worlds WHERE status = 'certified' ORDER BY added_at, id")
_SCENARIO_ROWS = text("SELECT id, name, status, reason, n_checks FROM scenarios WHERE world = :world ORDER BY name, id")
_CURRENT_SCENARIOS = text("SELECT id FROM scenarios ORDER BY added_at, id")
_CERTIFIED_SCENARIOS = text("SELECT id FROM scenarios WHERE status = 'certified' ORDER BY added_at, id")
_SCENARIOS_OF_ALL = text("SELECT id FROM scenario WHERE parent IN :keys").bindparams(bindparam("keys", expanding=True))
_SOLUTIONS = text(
    "SELECT parent, seq, n_calls, n_tools, n_queries FROM scenario_certificate WHERE parent IN :keys"
).bindparams(bindparam("keys", expanding=True))
_SCENARIOS_OF = text("SELECT id, status FROM scenarios WHERE world = :world ORDER BY added_at, id")


# ------------------------------------------------------------------------------------------------------------ names


VIEWS = {"theme": "themes", "world": "worlds", "scenario": "scenarios"}
"""Table -> view of its current records."""


def resolve_theme(store: Store, word: str) -> Theme:
    """Return the theme of a name, an id or an unambiguous prefix of an id.

    Raises:
        InputError: none or several match.
    """
    return store.get(Theme, _resolve(store, "theme", word))


def resolve_world(store: Store, word: str) -> World:
    """Return the world of a name, an id or an unambiguous prefix of an id; of a name the current.

    Raises:
        InputError: none or several match.
    """
    return store.get(World, _resolve(store, "world", word))


def resolve_scenario(store: Store, word: str) -> Scenario:
    """Return the scenario of a name, an id or an unambiguous prefix of an id; of a name the current.

    Raises:
        InputError: none or several match.
    """
    return store.get(Scenario, _resolve(store, "scenario", word))


def _resolve(store: Store, kind: str, word: str) -> str:
    matching = find_matches(store, kind, word)
    if word in matching or len(matching) == 1:
        return word if word in matching else next(iter(matching))
    if not matching:
        raise InputError(f"there is no {kind} {word}", advice="`mergemill worlds list` lists the worlds")
    matches = ", ".join(f"{key[:16]} ({name})" for key, name in sorted(matching.items())[:5])
    raise InputError(f"{word} is ambiguous, {len(matching)} {kind}s match: {matches}", advice="name one by its id")


def find_matches(store: Store, kind: str, word: str) -> dict[str, str]:
    """Return id -> name of the records that a word names: current records of that name, else those whose id begins so.

    Args:
        store: the database.
        kind: `theme`, `world` or `scenario`.
        word: a name, an id or the beginning of an id.
    """
    current, whole = _make_clause(VIEWS[kind]), _make_clause(kind)
    by_name = select(current.c.id, current.c.name).where(current.c.name == word)
    by_id = select(whole.c.id, whole.c.name).where(whole.c.id >= word, whole.c.id < f"{word}g").limit(9)
    with store.read_transaction() as connection:
        named = {row.id: row.name for row in connection.execute(by_name)}
        return named or {row.id: row.name for row in connection.execute(by_id)}


def _make_clause(name: str) -> TableClause:
    return make_table(name, column("id", String()), column("name", String()))
