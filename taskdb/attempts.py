"""Attempts to build a change's environment."""

from __future__ import annotations

from sqlalchemy import text

from taskdb.records import Attempt, Environment, PullRequest, Rejection
from taskdb.store import Store

_CURRENT = text("SELECT environment, rejection FROM changes WHERE pull_request = :id")


def load_attempts(store: Store, change: PullRequest) -> tuple[Attempt, ...]:
    """Return the attempts at the change's current environment or rejection, oldest first."""
    with store.read_transaction() as connection:
        row = connection.execute(_CURRENT, {"id": change.id}).first()
    if row and row.environment:
        return store.get(Environment, row.environment).attempts
    return store.get(Rejection, row.rejection).attempts if row and row.rejection else ()


def find_transcript(store: Store, change: PullRequest) -> str | None:
    """Return the artifact hash of a model's conversation about the build, or None without one."""
    return next((one.transcript for one in reversed(load_attempts(store, change)) if one.transcript), None)
