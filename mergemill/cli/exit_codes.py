"""Exit codes of the `mergemill` command. `EXIT_CODES` is the complete list, from which the reference is written."""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import CancelledRunError, InputError, MachineError, MergemillError, Transient, UsageError

DONE = 0
INTERRUPTED = CancelledRunError.exit_code
"""After Ctrl-C."""
DRAINED = 143
"""After SIGTERM, as of a process that the signal ended."""

EXIT_CODES: Mapping[int, str] = {
    DONE: "done",
    MergemillError.exit_code: "some records failed through a bug",
    UsageError.exit_code: "the command line is wrong",
    InputError.exit_code: (
        "an input is unusable: not a repository, an unknown task, not a database, a malformed line (the others are"
        " processed first), a task or bundle with findings of an audit"
    ),
    MachineError.exit_code: "the machine lacks a requirement; the message names the command that provides it",
    Transient.exit_code: (
        "try the same command again later: engine, network or disk failed; finished results are stored"
    ),
    INTERRUPTED: "Ctrl-C: running containers are stopped within seconds, and the same command continues",
    DRAINED: "SIGTERM: a run was drained; what ran is stored, and the same command continues",
}
"""Exit code -> description."""
