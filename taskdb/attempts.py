"""What was tried to get a change's environment: each attempt's edits, who proposed them, and what came of it."""

from __future__ import annotations

from sqlalchemy import text

from taskdb.records import Attempt, Environment, PullRequest, Rejection
from taskdb.store import Store

_STANDS = text("SELECT environment, rejection FROM changes WHERE pull_request = :id")


def attempts_of(store: Store, change: PullRequest) -> tuple[Attempt, ...]:
    """All attempts at the environment at which the change stands, oldest first; none where it was not built."""
    with store.reading() as connection:
        row = connection.execute(_STANDS, {"id": change.id}).first()
    if row and row.environment:
        return store.get(Environment, row.environment).attempts
    return store.get(Rejection, row.rejection).attempts if row and row.rejection else ()


def conversation_of(store: Store, change: PullRequest) -> str | None:
    """Artifact hash of all that a model said on the way, or None: none was asked."""
    return next((one.transcript for one in reversed(attempts_of(store, change)) if one.transcript), None)
