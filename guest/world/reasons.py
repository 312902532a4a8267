"""Why a process of a world or a check was ended, and the result that a check gave."""

from __future__ import annotations

from enum import StrEnum


class FaultReason(StrEnum):
    """Fault of a world's program that ends an episode."""

    NOT_LOADED = "not-loaded"
    """The module cannot be executed, or has no such class."""
    STATE_NOT_LOADED = "state-not-loaded"
    """The class cannot be made from the initial state."""
    RAISES = "raises"
    NO_SUCCESS = "no-success"
    """A tool returned no dict with a boolean `success`."""
    STATE_NOT_JSON = "state-not-json"
    ENDLESS_LOOP = "endless-loop"
    """A call exceeded its time."""
    MEMORY = "memory"
    OUTPUT = "output"
    """Too much was printed or returned."""
    CRASHED = "crashed"
    """The process ended or broke the protocol."""


class CheckOutcome(StrEnum):
    """Result that a check function gave; PASSED alone earns anything."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_BOOLEAN = "not-boolean"
    """It returned something else than True or False."""
    ALTERED = "altered"
    """It altered its input."""
    RAISES = "raises"
    ENDLESS_LOOP = "endless-loop"
    MEMORY = "memory"
    OUTPUT = "output"
    CRASHED = "crashed"
