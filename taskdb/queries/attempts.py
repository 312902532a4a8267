"""Attempts to build a change's environment."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, text

from taskdb.records import Attempt, Environment, PullRequest, Rejection
from taskdb.store import Store, load_field

_CURRENT = text("SELECT environment, rejection FROM changes WHERE pull_request = :id")


def load_attempts(store: Store, change: PullRequest) -> tuple[Attempt, ...]:
    """Return the attempts at the change's current environment or rejection, oldest first."""
    with store.read_transaction() as connection:
        row = connection.execute(_CURRENT, {"id": change.id}).first()
        return read_attempts(connection, row.environment, row.rejection) if row else ()


def read_attempts(connection: Connection, environment: str | None, rejection: str | None) -> tuple[Attempt, ...]:
    """Return the attempts at an environment (id), or else at a rejection, oldest first."""
    rows: list[Any] = []
    if environment:
        rows = load_field(connection, Environment, environment, "attempts") or []
    elif rejection:
        rows = load_field(connection, Rejection, rejection, "attempts") or []
    return tuple(Attempt.model_validate(row) for row in rows)


def find_transcript(store: Store, change: PullRequest) -> str | None:
    """Return the artifact hash of a model's conversation about the build, or None where there is none."""
    return next((attempt.transcript for attempt in reversed(load_attempts(store, change)) if attempt.transcript), None)
