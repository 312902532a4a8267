"""What became of seed tasks, themes, worlds and scenarios: counts by step, and the history of a single one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, String, TextClause, bindparam, text

from core.errors import InputError
from core.text import format_count
from taskdb.records.worlds import WorldRejection, WorldStep
from taskdb.schema.batches import execute_in_batches
from taskdb.store import Store, load_field

# ----------------------------------------------------------------------------------------------------------- counts


@dataclass
class StepCounts:
    """How many things came to a step, and the fate of them."""

    passed: int = 0
    waiting: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """Reason -> number."""
    examples: dict[str, str] = field(default_factory=dict)
    """Reason -> name of the newest that was rejected so."""

    def add(self, row: Row[Any], name: str = "") -> None:
        """Count something with `status` and `reason`; rows come oldest first."""
        if row.status == "rejected":
            self.rejected[row.reason] += 1
            self.examples[row.reason] = name or row.name
        elif row.status == "waiting":
            self.waiting += 1
        else:
            self.passed += 1

    def to_row(self, step: str) -> dict[str, Any]:
        """Return the counts, the most frequent reasons first."""
        return {
            "step": step,
            "in": self.passed + self.waiting + self.rejected.total(),
            "out": self.passed,
            "waiting": self.waiting,
            "rejected": dict(sorted(self.rejected.items(), key=lambda item: (-item[1], item[0]))),
        }


def compute_world_funnel(
    store: Store, sources: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], dict[tuple[str, str], str]]:
    """Return a row for each step, and an example for each (step, reason).

    `discover` counts seed tasks, `build` the themes chosen, `assess` worlds, written and imported worlds among them,
    and `scenarios` scenarios. In each row `in` is the sum of `out`, `waiting` and all that were rejected.
    """
    wanted = set(sources)
    with store.read_transaction() as connection:
        themes, worlds, scenarios, rejections = (
            [row for row in connection.execute(query) if not wanted or row.source in wanted] for query in _COUNTED
        )
    counts = {step: StepCounts() for step in WorldStep}
    chosen = [row for row in themes if not (row.status == "rejected" and row.rejected_by == WorldStep.DISCOVER)]
    passed = {row.seed_task for row in chosen}
    # Of one seed task only the newest theme is counted.
    unchosen = {row.seed_task: row for row in themes if row.seed_task not in passed}
    counts[WorldStep.DISCOVER].passed = len(passed)
    for step, rows in (
        (WorldStep.DISCOVER, unchosen.values()),
        (WorldStep.BUILD, chosen),
        (WorldStep.ASSESS, worlds),
        (WorldStep.SCENARIOS, scenarios),
    ):
        for row in rows:
            counts[step].add(row)
    for row in rejections:
        counts[WorldStep(row.step)].add(row)
    examples = {(step.value, reason): name for step, of in counts.items() for reason, name in of.examples.items()}
    return [counts[step].to_row(step.value) for step in WorldStep], examples


_COUNTED = tuple(
    text(f"{query} ORDER BY added_at, id")
    for query in (
        "SELECT id, name, source, seed_task, status, rejected_by, reason FROM themes",
        "SELECT id, name, source, status, reason FROM worlds",
        "SELECT id, name, source, status, reason FROM scenarios",
        # seed tasks without a theme, and scenarios that were never written: nothing else has a state of its own
        """SELECT r.id, r.name, r.source, r.step, r.reason, 'rejected' AS status FROM world_rejections r
           WHERE r.step = 'discover' AND NOT EXISTS (SELECT 1 FROM theme t WHERE t.id = r.parent)
              OR r.step = 'scenarios' AND EXISTS (SELECT 1 FROM worlds w WHERE w.id = r.parent)""",
    )
)


# ---------------------------------------------------------------------------------------------------------- histories


EVENT_KEYS = ("at", "step", "thing", "name", "ok", "reason", "detail", "record")


@dataclass
class _History:
    """Ids of the records that a word names and of those that they descend from or became."""

    seed_tasks: set[str] = field(default_factory=set)
    themes: set[str] = field(default_factory=set)
    worlds: set[str] = field(default_factory=set)
    scenarios: set[str] = field(default_factory=set)
    unwritten: set[str] = field(default_factory=set)
    """Rejections of scenarios that never were."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found."""
        return not (self.seed_tasks or self.themes or self.worlds or self.scenarios or self.unwritten)


def look_up_world(store: Store, word: str) -> dict[str, Any] | None:
    """Return the fate of a seed task, theme, world or scenario; None where a word names none.

    Args:
        store: the database.
        word: a name, an id or the beginning of an id. All records of a name are in the report, superseded records
            included.

    Returns:
        `of` (`worlds`), `name`, `source`, `environment` (`synthetic`), `events` under EVENT_KEYS, oldest first, `log`
        (artifact of the newest rejection or null), and `scenarios` (name, status, reason) of the worlds.

    Raises:
        InputError: the beginning of an id is ambiguous.
    """
    with store.read_transaction() as connection:
        history = _find_history(connection, word)
        if history.is_empty:
            return None
        is_about_worlds = not (history.scenarios or history.unwritten)
        _follow(connection, history)
        events = sorted(_iterate_events(connection, history), key=lambda event: (event["at"], _place(event)))
        worlds = sorted(history.worlds) if is_about_worlds else []
        scenarios = [dict(row._mapping) for row in execute_in_batches(connection, _STATES, worlds)]
        rejections = [event["record"] for event in events if not event["ok"]]
        log = load_field(connection, WorldRejection, rejections[-1], "log") if rejections else None
    return {
        "of": "worlds",
        "name": word if any(event["name"] == word for event in events) else events[-1]["name"],
        "source": next((event["source"] for event in events if event["source"]), ""),
        "environment": "synthetic",
        "events": [{key: event[key] for key in EVENT_KEYS} for event in events],
        "scenarios": scenarios,
        "log": log,
    }


def _find_history(connection: Connection, word: str) -> _History:
    """Return the records of a name; else the one of an id or its beginning."""
    rows = [(row.kind, row.id) for row in connection.execute(_NAMED, {"word": word})]
    if not rows:
        rows = [(row.kind, row.id) for row in connection.execute(_BY_ID, {"word": word, "beyond": f"{word}g"})]
        if len(rows) > 1 and word not in (key for _, key in rows):
            advice = "name it, or give more digits"
            raise InputError(f"{word} is ambiguous, {len(rows)} records match", advice=advice)
    history = _History()
    for kind, key in rows:
        getattr(history, kind).add(key)
    return history


def _follow(connection: Connection, history: _History) -> None:
    """Add the records that those of a history became, up to worlds, and those that they descend from."""

    def find(query: str, keys: set[str]) -> set[str]:
        return {row.id for row in execute_in_batches(connection, _FOLLOWED[query], sorted(keys)) if row.id}

    history.themes |= find("themes of seed tasks", history.seed_tasks)
    history.worlds |= find("worlds of themes", history.themes)
    history.worlds |= find("worlds of scenarios", history.scenarios) | find("worlds of rejections", history.unwritten)
    history.themes |= find("themes of worlds", history.worlds)
    history.seed_tasks |= find("seed tasks of themes", history.themes)


def _iterate_events(connection: Connection, history: _History) -> Iterator[dict[str, Any]]:
    """Yield an event for each record of a history, its certificates and its rejections."""
    for thing, keys in (
        ("theme", history.themes),
        ("world", history.worlds),
        ("world certificate", history.worlds),
        ("scenario", history.scenarios),
        ("scenario certificate", history.scenarios),
    ):
        for row in execute_in_batches(connection, _EVENTS[thing], sorted(keys)):
            yield {
                "at": row.added_at,
                "step": _STEP_OF[thing].value,
                "thing": thing,
                "name": row.name,
                "source": getattr(row, "source", ""),
                "ok": True,
                "reason": None,
                "detail": _DETAILS[thing](row),
                "record": row.id,
            }
    parents = {
        **dict.fromkeys(history.seed_tasks, "seed task"),
        **dict.fromkeys(history.themes, "theme"),
        **dict.fromkeys(history.worlds, "world"),
        **dict.fromkeys(history.scenarios, "scenario"),
    }
    for row in execute_in_batches(connection, _REJECTIONS, sorted(parents)):
        is_unwritten = row.step == WorldStep.SCENARIOS and row.parent in history.worlds
        if is_unwritten and row.id not in history.unwritten:
            # A rejection of a scenario that was never written has the world as its parent; this one is of another
            # scenario.
            continue
        yield {
            **{key: getattr(row, key) for key in ("step", "name", "source", "reason", "detail")},
            "at": row.added_at,
            "thing": "scenario" if is_unwritten else parents[row.parent],
            "ok": False,
            "record": row.id,
        }


def _place(event: Mapping[str, Any]) -> tuple[int, bool, bool]:
    """Return the place of an event among those of a second.

    The record that was made is followed by the event that became of it.
    """
    return list(WorldStep).index(event["step"]), "certificate" in event["thing"], not event["ok"]


def _describe_world_certificate(row: Row[Any]) -> str:
    gates = f"gates passed, {format_count(row.n_calls, 'call')} of each tool"
    if not row.rounds:
        return f"{gates}; no agents"
    agents = f"{row.passed} passed, {row.warned} warned, {row.failed} failed"
    return f"{gates}; {format_count(row.rounds, 'round')}: {agents}; score {row.score:.2f}"


_STEP_OF = {
    "theme": WorldStep.DISCOVER,
    "world": WorldStep.BUILD,
    "world certificate": WorldStep.ASSESS,
    "scenario": WorldStep.SCENARIOS,
    "scenario certificate": WorldStep.SCENARIOS,
}
_DETAILS: Mapping[str, Callable[[Row[Any]], str]] = {
    "theme": lambda row: f"usefulness {row.usefulness}, modelability {row.modelability}",
    "world": lambda row: f"{row.origin}, {format_count(row.n_tools, 'tool')}",
    "world certificate": _describe_world_certificate,
    "scenario": lambda row: format_count(row.n_checks, "check"),
    "scenario certificate": lambda row: (
        f"{row.solution_origin} solution of {format_count(row.n_calls, 'call')}; "
        f"{row.mutations_noticed} of {format_count(row.mutations, 'mutation')} noticed"
    ),
}


def _make_keyed(query: str) -> TextClause:
    return text(query).bindparams(bindparam("keys", type_=String(), expanding=True))


_EVENTS = {
    "theme": _make_keyed("SELECT id, name, source, usefulness, modelability, added_at FROM theme WHERE id IN :keys"),
    "world": _make_keyed("SELECT id, name, source, origin, n_tools, added_at FROM world WHERE id IN :keys"),
    "world certificate": _make_keyed("""
        SELECT id, name, n_calls, rounds, passed, warned, failed, score, added_at FROM world_certificate
        WHERE parent IN :keys ORDER BY seq"""),
    "scenario": _make_keyed("SELECT id, name, n_checks, added_at FROM scenario WHERE id IN :keys"),
    "scenario certificate": _make_keyed("""
        SELECT id, name, solution_origin, n_calls, mutations, mutations_noticed, added_at FROM scenario_certificate
        WHERE parent IN :keys ORDER BY seq"""),
}
_REJECTIONS = _make_keyed("""
    SELECT id, name, source, step, reason, detail, parent, added_at FROM world_rejection WHERE parent IN :keys
    ORDER BY seq""")
_STATES = _make_keyed("""
    SELECT name, status, reason FROM scenarios WHERE world IN :keys
    UNION ALL SELECT name, 'rejected' AS status, reason FROM world_rejections
    WHERE step = 'scenarios' AND parent IN :keys ORDER BY name""")
_FOLLOWED = {
    "themes of seed tasks": _make_keyed("SELECT id FROM theme WHERE parent IN :keys"),
    "worlds of themes": _make_keyed("SELECT id FROM world WHERE parent IN :keys"),
    "worlds of scenarios": _make_keyed("SELECT parent AS id FROM scenario WHERE id IN :keys"),
    "worlds of rejections": _make_keyed("SELECT parent AS id FROM world_rejection WHERE id IN :keys"),
    "themes of worlds": _make_keyed("SELECT parent AS id FROM world WHERE id IN :keys"),
    "seed tasks of themes": _make_keyed("SELECT parent AS id FROM theme WHERE id IN :keys"),
}
_NAMED = text("""
    SELECT 'themes' AS kind, id FROM theme WHERE name = :word
    UNION SELECT 'worlds', id FROM world WHERE name = :word
    UNION SELECT 'scenarios', id FROM scenario WHERE name = :word
    UNION SELECT 'seed_tasks', r.parent FROM world_rejection r WHERE r.name = :word AND r.step = 'discover'
                 AND NOT EXISTS (SELECT 1 FROM theme t WHERE t.id = r.parent)
    UNION SELECT 'unwritten', r.id FROM world_rejection r JOIN world w ON w.id = r.parent
                 WHERE r.name = :word AND r.step = 'scenarios'""")
_BY_ID = text("""
    SELECT 'themes' AS kind, id FROM theme WHERE id >= :word AND id < :beyond
    UNION SELECT 'worlds', id FROM world WHERE id >= :word AND id < :beyond
    UNION SELECT 'scenarios', id FROM scenario WHERE id >= :word AND id < :beyond
    UNION SELECT 'seed_tasks', parent FROM theme WHERE parent >= :word AND parent < :beyond
    UNION SELECT 'seed_tasks', r.parent FROM world_rejection r
                 WHERE r.parent >= :word AND r.parent < :beyond AND r.step = 'discover'
                 AND NOT EXISTS (SELECT 1 FROM theme t WHERE t.id = r.parent)""")
