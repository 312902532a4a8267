"""Fields of log records: the subjects of the process, and of the current thread or task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

_PROCESS_FIELDS: dict[str, str] = {}
_FIELDS: ContextVar[Mapping[str, str]] = ContextVar("mergemill_log_fields", default=MappingProxyType({}))


def set_process_fields(**fields: str) -> None:
    """Add fields to all further records of this process, such as the id of its run."""
    _PROCESS_FIELDS.update(fields)


@contextmanager
def log_fields(**fields: str) -> Iterator[None]:
    """Add fields to the records that this thread logs within the block."""
    token = _FIELDS.set({**_FIELDS.get(), **fields})
    try:
        yield
    finally:
        _FIELDS.reset(token)


def read_fields() -> dict[str, str]:
    """Return the fields of a record that is logged here."""
    return {**_PROCESS_FIELDS, **_FIELDS.get()}
