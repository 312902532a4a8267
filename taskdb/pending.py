"""The queue as an index: which changes have pending work, without reading all of them.

What is pending for a change depends on its state alone: the records of its lineage, why it was rejected, its tasks and
the kinds it does not give. A million changes have some hundreds of different states. Each is stored once
(`change_state`) and decided on once; the changes of the open states are then read off an index.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from itertools import compress
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, func, or_, select, text

from taskdb.counts import count_candidates_of, list_sources
from taskdb.records import Stage
from taskdb.records.work import (
    STAGE_COLUMNS,
    ChangeState,
    DerivedState,
    PendingWork,
    Scope,
    find_pending_work,
    is_id_beginning,
)
from taskdb.schema.columns import CHANGE_LISTING as _LISTED
from taskdb.schema.word_lists import MAX_LISTED, match_numbers, match_words, select_words

_NEWEST_FIRST = (_LISTED.c.merged_at.desc(), _LISTED.c.name)
_PART = 500


def build_state(change: Mapping[str, Any], derived: Iterable[Mapping[str, Any]]) -> str:
    """Return the state of a row of `change_listing` and its rows of `derivation_listing`, as canonical JSON."""
    state = ChangeState.from_rows(change, derived)
    return json.dumps(
        [
            [state.rejected_by, state.reason] if state.rejected_by else None,
            [stage in state.passed for stage in STAGE_COLUMNS],
            state.set_aside,
            state.change_kind,
            state.brings_tests,
            sorted({(item.kind, item.is_derived, item.is_certified, item.reason or "") for item in state.derived}),
        ],
        separators=(",", ":"),
    )


@lru_cache(maxsize=4096)
def read_state(state: str) -> ChangeState:
    """Return the state that `build_state` wrote; a run reads the same states again and again."""
    rejection, passed, set_aside, change_kind, brings_tests, derived = json.loads(state)
    rejected_by, reason = rejection or (None, None)
    return ChangeState(
        rejected_by=Stage(rejected_by) if rejected_by else None,
        reason=reason,
        passed=frozenset(compress(STAGE_COLUMNS, passed)),
        set_aside=set_aside,
        change_kind=change_kind,
        brings_tests=brings_tests,
        derived=tuple(
            DerivedState(kind=kind, is_derived=is_derived, is_certified=is_certified, reason=reason_of_kind or None)
            for kind, is_derived, is_certified, reason_of_kind in derived
        ),
    )


def find_open_states(
    connection: Connection, scope: Scope, is_open: Callable[[PendingWork], bool], *, paired: bool = False
) -> set[int]:
    """Return the states (`seq`) whose pending work meets a condition; `paired` as for `find_pending_work`."""
    return find_states(connection, lambda state: is_open(find_pending_work(state, scope, paired=paired)))


def find_states(connection: Connection, is_wanted: Callable[[ChangeState], bool]) -> set[int]:
    """Return the states (`seq`) that meet a condition."""
    # Changes share few states, so the condition is checked for these and not for each change.
    rows = connection.execute(text("SELECT seq, state FROM change_state")).all()
    return {seq for seq, state in rows if is_wanted(read_state(state))}


def select_open_changes(
    connection: Connection, scope: Scope, states: set[int], where: ColumnElement[bool] | None = None
) -> list[int]:
    """Return the changes (`seq`) of a scope that are in any of some states, newest first.

    A limit of the scope counts all candidates of a source, those with nothing to do among them.

    Args:
        connection: the database.
        scope: the selection.
        states: open states.
        where: a further condition on `change_listing`, for changes that the limit counts.
    """
    conditions = _build_conditions(scope)
    if where is not None:
        conditions.append(where)
    if not states:
        return []
    if scope.limit is None:
        query = _select_open(select(_LISTED.c.change).where(*conditions), scope, states).order_by(*_NEWEST_FIRST)
        return list(connection.execute(query).scalars())
    return [row.change for row in _select_limited(connection, scope, states, conditions)]


def count_open_changes(connection: Connection, scope: Scope, states: set[int]) -> int:
    """Return the number of changes that `select_open_changes` selects."""
    conditions = _build_conditions(scope)
    if not states:
        return 0
    if scope.limit is not None:
        return len(_select_limited(connection, scope, states, conditions))
    query = _select_open(select(func.count()).select_from(_LISTED).where(*conditions), scope, states)
    return int(connection.execute(query).scalar_one())


def _select_limited(
    connection: Connection, scope: Scope, states: set[int], conditions: Sequence[ColumnElement[bool]]
) -> list[Any]:
    """Return the open changes among the newest candidates of each source, newest first."""
    rows = list[Any]()
    for source in _list_known_sources(connection, scope):
        query = select(_LISTED.c.change, _LISTED.c.state, _LISTED.c.merged_at, _LISTED.c.name)
        of_source = (_LISTED.c.source == source, _LISTED.c.candidate.is_not(None))
        newest = query.where(*conditions, *of_source).order_by(*_NEWEST_FIRST).limit(scope.limit)
        rows += [row for row in connection.execute(newest) if row.state in states]
    # Two stable sorts, since the keys have opposite directions.
    rows.sort(key=lambda row: row.name)
    rows.sort(key=lambda row: row.merged_at, reverse=True)
    return rows


def _list_known_sources(connection: Connection, scope: Scope) -> Sequence[str]:
    """Return the sources of a scope, each read by a query of its own: of many those that have changes."""
    if scope.sources and len(scope.sources) <= MAX_LISTED:
        return scope.sources
    known = list_sources(connection)
    wanted = set(scope.sources) or set(known)
    return [source for source in known if source in wanted]


def count_candidates(connection: Connection, scope: Scope) -> int:
    """Return the number of candidates in a scope."""
    conditions = _build_conditions(scope)
    if not conditions:
        sources = scope.sources or ([""] if scope.limit is None else list_sources(connection))
        return sum(_limit(scope, n) for n in count_candidates_of(connection, sources).values())
    query = select(_LISTED.c.source, func.count().label("n")).where(_LISTED.c.candidate.is_not(None), *conditions)
    if scope.sources:
        query = query.where(match_words(_LISTED.c.source, scope.sources))
    return sum(_limit(scope, row.n) for row in connection.execute(query.group_by(_LISTED.c.source)))


def _limit(scope: Scope, n: int) -> int:
    return n if scope.limit is None else min(n, scope.limit)


def _select_open(query: Select[Any], scope: Scope, states: set[int]) -> Select[Any]:
    """Return the query with the states and sources of a scope; a change that has a state has a candidate."""
    if scope.sources:
        query = query.where(match_words(_LISTED.c.source, scope.sources))
    return query.where(match_numbers(_LISTED.c.state, states))


def _build_conditions(scope: Scope) -> list[ColumnElement[bool]]:
    """Return the conditions of a scope but sources and limit; as `Scope.includes` decides for a candidate."""
    conditions: list[ColumnElement[bool]] = []
    if scope.only:
        conditions.append(or_(match_words(_LISTED.c.name, scope.only), _match_beginnings(scope.only)))
    if scope.since is not None:
        conditions.append(_LISTED.c.merged_at >= scope.since.isoformat())
    if scope.until is not None:
        # Dates are texts with a time of day, so the last day ends before the next begins.
        conditions.append(_LISTED.c.merged_at < (scope.until + timedelta(days=1)).isoformat())
    if scope.language is not None:
        conditions.append(_LISTED.c.language == scope.language)
    return conditions


def _match_beginnings(words: Collection[str]) -> ColumnElement[bool]:
    """Return the condition that the id of a change's candidate begins with any of some words."""
    beginnings = select_words(word for word in words if is_id_beginning(word)).subquery()
    other = _LISTED.alias()
    # `g` follows the hex digits, so the range has every id with this beginning and can use the index.
    is_in_range = and_(other.c.candidate >= beginnings.c.value, other.c.candidate < beginnings.c.value.concat("g"))
    return _LISTED.c.candidate.in_(select(other.c.candidate).select_from(beginnings.join(other, is_in_range)))


def find_older_neighbours(connection: Connection, change: Any, most: int) -> list[int]:
    """Return the changes (`seq`) before a change in its source that are judged and bring tests, nearest first."""
    behind = or_(
        _LISTED.c.merged_at < change.merged_at,
        and_(_LISTED.c.merged_at == change.merged_at, _LISTED.c.name > change.name),
    )
    query = (
        select(_LISTED.c.change)
        .where(_LISTED.c.source == change.source, _LISTED.c.merged_at <= change.merged_at, behind, CAN_PAIR)
        .order_by(*_NEWEST_FIRST)
        .limit(most)
    )
    return list(connection.execute(query).scalars())


CAN_PAIR = and_(_LISTED.c.verdict.is_not(None), _LISTED.c.test_lines > 0)
"""Condition on changes for tasks of several changes: they are judged and bring tests."""


def load_states(connection: Connection, states: Sequence[str]) -> dict[str, int]:
    """Return state -> `seq`; unknown states are added."""
    wanted = sorted(set(states))
    state_ids = _find_states(connection, wanted)
    if new := [{"state": state} for state in wanted if state not in state_ids]:
        connection.execute(_ADD_STATE, new)
        state_ids |= _find_states(connection, [row["state"] for row in new])
    return state_ids


def _find_states(connection: Connection, states: Sequence[str]) -> dict[str, int]:
    state_ids: dict[str, int] = {}
    for start in range(0, len(states), _PART):
        known = connection.execute(_KNOWN_STATES, {"keys": list(states[start : start + _PART])})
        state_ids.update({row.state: row.seq for row in known})
    return state_ids


_KNOWN_STATES = text("SELECT state, seq FROM change_state WHERE state IN :keys").bindparams(
    bindparam("keys", expanding=True)
)
_ADD_STATE = text("INSERT INTO change_state (state) VALUES (:state) ON CONFLICT (state) DO NOTHING")
