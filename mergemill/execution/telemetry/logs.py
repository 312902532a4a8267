"""Logs as text for people, or as a JSON object per line (`--log-format json`, `--log-file FILE`)."""

from __future__ import annotations

import json
import logging
import socket
import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TextIO

from core.errors import make_write_error
from core.log_fields import read_fields

RUN_LOGGER = "mergemill.run"
"""Logger of results, failures and messages of a run, which people see as a table or as lines of their own."""
_MESSAGES = logging.getLogger("mergemill.messages")


class LogFormat(StrEnum):
    """Values of `--log-format`."""

    TEXT = "text"
    JSON = "json"


class JsonFormatter(logging.Formatter):
    """Formatter of records as a JSON object: time, level, logger, message, ids, `error` for an exception."""

    def __init__(self) -> None:
        super().__init__()
        self._host = socket.gethostname()

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "host": self._host,
            "pid": record.process,
            "worker": record.threadName,
            **read_fields(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class LogStream:
    """Text stream in place of standard error that logs each line which is written to it."""

    encoding = "utf-8"

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._begun = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def isatty(self) -> bool:
        """Return False: nothing is drawn here."""
        return False

    def write(self, text: str) -> int:
        """Log the lines that are complete, without the program's name, and return the number of characters."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            if line.strip():
                _MESSAGES.info(line.removeprefix("mergemill: "))
        return len(text)

    def write_error(self, line: str) -> None:
        """Log the error that ends a command."""
        _MESSAGES.error(line)

    def flush(self) -> None:
        """Write the text that is buffered."""
        self.stream.flush()


def configure_logging(level: int, log_format: LogFormat, file: Path | None) -> None:
    """Send records of a level and above to standard error and to a file; called once by each command.

    With `json`, everything that is written to standard error is a JSON object a line.

    Raises:
        InputError: the file may not be written.
        Transient: its disk is full.
    """
    stderr = sys.stderr.stream if isinstance(sys.stderr, LogStream) else sys.stderr
    shown = logging.StreamHandler(stderr)
    handlers: list[logging.Handler] = [shown]
    if log_format is LogFormat.JSON:
        shown.setFormatter(JsonFormatter())
        stream: Any = LogStream(stderr)
        sys.stderr = stream
    else:
        shown.setFormatter(logging.Formatter("mergemill: %(message)s"))
        shown.addFilter(lambda record: record.name != RUN_LOGGER)
    if file is not None:
        try:
            handlers.append(logging.FileHandler(file, encoding="utf-8", errors="backslashreplace"))
        except OSError as error:
            raise make_write_error(f"cannot write the log {file}", error) from error
        handlers[-1].setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=handlers, force=True)
    _MESSAGES.setLevel(logging.INFO)  # who writes them heeds --quiet
    is_structured = len(handlers) > 1 or log_format is LogFormat.JSON
    logging.getLogger(RUN_LOGGER).setLevel(
        min(level, logging.INFO) if is_structured and level < logging.ERROR else level
    )


def is_structured() -> bool:
    """Return whether results of a run are to be logged."""
    return logging.getLogger(RUN_LOGGER).isEnabledFor(logging.INFO)
