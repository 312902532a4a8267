"""Reasons for which a request gets no answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from backends.llm.conversations.parts import ConversationError


class ExchangeFailure(StrEnum):
    """Kind of a failure, as recorded."""

    RATE_LIMIT = "rate-limit"
    SERVER = "server"
    """The upstream reports an error of its own (5xx)."""
    CONNECTION = "connection"
    """The upstream refuses or resets the connection before anything is answered."""
    TIMEOUT = "timeout"
    CUT = "cut"
    """The answer ends in its middle."""
    NONSENSE = "nonsense"
    """The answer is not an answer of the upstream's dialect."""
    TOO_LARGE = "too-large"
    KEY = "key"
    """The upstream rejects the key."""
    CONTEXT = "context"
    """The conversation exceeds the model's context length."""
    REJECTED = "rejected"
    """The upstream rejects the request for another reason."""
    REFUSED = "refused"
    """The gateway cannot pass the request on: not JSON, or a request that no upstream can do."""
    BUDGET = "budget"
    DISK = "disk"
    """The record cannot be written."""
    CLOSING = "closing"
    """The gateway or the rollout takes no more requests."""
    BUG = "bug"


RETRYABLE_KINDS = frozenset(
    (
        ExchangeFailure.RATE_LIMIT,
        ExchangeFailure.SERVER,
        ExchangeFailure.CONNECTION,
        ExchangeFailure.TIMEOUT,
        ExchangeFailure.CUT,
    )
)
_PERHAPS_PAID = frozenset(
    (ExchangeFailure.CONNECTION, ExchangeFailure.TIMEOUT, ExchangeFailure.CUT, ExchangeFailure.SERVER)
)


def is_perhaps_paid(kind: str, attempts: int) -> bool:
    """Return whether the upstream may have an answer under the key of an exchange that failed.

    Args:
        kind: kind of the failure, which is that of the last attempt, or of the reason that kept the next attempt from
            being made.
        attempts: attempts that were made. An attempt that failed before the last may have been answered without our
            knowing.
    """
    attempts_that_failed_so = 0 if kind == ExchangeFailure.CLOSING else 1
    return kind in _PERHAPS_PAID or attempts > attempts_that_failed_so


class GatewayFailure(Exception):  # noqa: N818 - a result of a request, which is recorded and passed on
    """A request gets no answer.

    Args:
        kind: kind as recorded.
        detail: a line for people.
        status: HTTP status for the client.
        retry_after: seconds the upstream wants to be left alone.
    """

    def __init__(self, kind: ExchangeFailure, detail: str, status: int, *, retry_after: float = 0.0) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.status = status
        self.retry_after = retry_after


def refuse(message: str) -> GatewayFailure:
    """Return the failure of a request that cannot be passed on."""
    return GatewayFailure(ExchangeFailure.REFUSED, message, 400)


@contextmanager
def refuse_unreadable() -> Iterator[None]:
    """Raise the failure of a request for a conversation that cannot be read.

    Raises:
        GatewayFailure: the conversation cannot be read.
    """
    try:
        yield
    except ConversationError as error:
        raise refuse(str(error)) from error
