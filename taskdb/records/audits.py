"""Records of audits of tasks: leaks, exploits and the strength of the tests."""

from __future__ import annotations

from typing import Annotated, Any

from taskdb.records.base import MEASURED, Record, Seconds


class Audit(Record):
    """Result of an audit of a task. Of several of a task the newest counts."""

    parent: str
    """Id of the Task."""
    name: str
    """Name of the task."""
    clean: bool
    """Whether the audit has no findings."""
    findings: tuple[dict[str, Any], ...] = ()
    """Facts that were found: `kind`, `location`, `description`."""
    probes: tuple[dict[str, Any], ...] = ()
    """Exploits that were tried, each with its result."""
    strength: dict[str, Any] | None = None
    """Strength of the tests as measured; null where it was not."""
    image_digest: Annotated[str, MEASURED] = ""
    at: str
    """Time of the audit (ISO 8601, UTC); part of the identity, so that each audit is kept."""
    seconds: Seconds = 0.0
