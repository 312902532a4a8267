"""Why a world or a scenario is rejected."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Reason of the stage `worlds`. Those of a running program have the values of `FaultReason`."""

    # A file of worlds
    MALFORMED = "malformed"
    """An entry cannot be read."""
    NO_WORLD = "no-world"
    """The file of environments has no world of a scenario."""
    WORLD_REJECTED = "world-rejected"
    """The world of a scenario is rejected."""

    # The program's text
    SYNTAX_ERROR = "syntax-error"
    NO_WORLD_CLASS = "no-world-class"
    """There is no class with tools, or more than one."""
    IMPORT_REFUSED = "import-refused"
    OPENS_FILE = "opens-file"
    OPENS_SOCKET = "opens-socket"
    STARTS_PROCESS = "starts-process"
    EVALUATES_CODE = "evaluates-code"
    DUNDER_ACCESS = "dunder-access"
    INTROSPECTION = "introspection"
    """Names of attributes are computed, or frames, modules and addresses are reached."""
    READS_CLOCK = "reads-clock"
    UNTYPED_TOOL = "untyped-tool"
    """No schema follows from a tool's signature."""
    UNDOCUMENTED_TOOL = "undocumented-tool"
    WRONG_FOREIGN_KEY = "wrong-foreign-key"
    """FOREIGN_KEYS is no literal, or names no attribute."""

    # The running program
    NO_STATE = "no-state"
    """The world has no initial state."""
    NOT_LOADED = "not-loaded"
    STATE_NOT_LOADED = "state-not-loaded"
    RAISES = "raises"
    NO_SUCCESS = "no-success"
    STATE_NOT_JSON = "state-not-json"
    ENDLESS_LOOP = "endless-loop"
    MEMORY = "memory"
    OUTPUT = "output"
    CRASHED = "crashed"
    WRONG_STATE_TYPE = "wrong-state-type"
    """A state is not as the annotations of the attributes have it."""
    DANGLING_KEY = "dangling-key"
    FAILED_CALL_MUTATES = "failed-call-mutates"
    QUERY_MUTATES = "query-mutates"
    NOT_REPEATABLE = "not-repeatable"
    """The same calls with the same seed led to another state or result."""
    HIDDEN_STATE = "hidden-state"
    """An episode that goes on from a saved state takes another way."""
    DEAD_TOOL = "dead-tool"
    """A tool never succeeds."""
    FEW_CHANGES = "few-changes"
    """Too few of the tools that change something ever did."""

    # The scenario
    NO_CHECKS = "no-checks"
    """It has no check, so it has no reward."""
    CHECKS_REFUSED = "checks-refused"
    """The text of a check breaks a rule of programs."""
    CHECKS_NOT_BOOLEAN = "checks-not-boolean"
    CHECKS_RAISE = "checks-raise"
    """A check raises, never ends or needs too much memory where the solution was run."""
    CHECKS_MUTATE = "checks-mutate"
    CHECKS_VARY = "checks-vary"
    CHECKS_ALREADY_HOLD = "checks-already-hold"
    CHECKS_BLIND = "checks-blind"
    CHECKS_TOO_NARROW = "checks-too-narrow"
    UNSOLVED = "unsolved"
