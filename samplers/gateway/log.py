"""Append-only log of a rollout. A line that is appended has left the process, so a killed gateway loses none of it."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from core.errors import InputError, MachineError, make_write_error
from samplers.gateway.exchanges import LogContent, read_log
from samplers.gateway.failures import ExchangeFailure, GatewayFailure
from samplers.gateway.json_text import Json

LOCK_NAME = ".gateway-lock"
LOG_SUFFIX = ".jsonl"
_NOT_RECALLED = frozenset(("received", "request", "prompt_token_ids", "completion_token_ids", "logprobs"))
"""Keys of exchanges that the gateway does not need again."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


class ExchangeLog:
    """The log of a rollout, open for appending. A torn last line is cut when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_closed = False
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self.content = self._recover()
            self._size = os.fstat(self._file).st_size
        except OSError as error:
            raise make_write_error(f"cannot write the log {path}", error) from error

    def _recover(self) -> LogContent:
        """Return the records that the log holds, after the torn last line was cut."""
        whole = 0

        def read_lines() -> Iterator[bytes]:
            nonlocal whole
            with open(self._file, "rb", closefd=False) as reader:
                for line in reader:
                    whole += len(line) if line.endswith(b"\n") else 0
                    yield line

        try:
            content = read_log(read_lines(), _NOT_RECALLED)
        except (ValueError, KeyError, AttributeError) as error:
            raise InputError(f"{self.path} is not a log of the gateway: {error}") from error
        os.ftruncate(self._file, whole)
        return content

    def append(self, event: Json) -> None:
        """Write a line.

        Raises:
            GatewayFailure: the disk is full or fails; nothing of the line is kept.
        """
        line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            os.ftruncate(self._file, self._size)
            detail = f"cannot write the log {self.path}: {error.strerror}"
            raise GatewayFailure(ExchangeFailure.DISK, detail, 507) from error
        self._size += len(line)

    def close(self) -> None:
        """Close the file."""
        self.is_closed = True
        os.close(self._file)


class LogFolder:
    """The folder of all logs, locked by a single gateway."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise make_write_error(f"cannot use the log folder {folder}", error) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            advice = "end it, or choose another folder"
            raise MachineError(f"another gateway writes to {folder}", advice=advice) from error
        self.folder = folder

    def find_path(self, rollout: str) -> Path:
        """Return the file of a rollout.

        Raises:
            InputError: its name cannot be that of a file.
        """
        if not _NAME.fullmatch(rollout):
            raise InputError(f"{rollout!r} is not a rollout's name: letters, digits, `.`, `_` and `-`")
        return self.folder / f"{rollout}{LOG_SUFFIX}"

    def close(self) -> None:
        """Unlock the folder."""
        os.close(self._lock)


def format_now() -> str:
    """Return the time as of ISO 8601, in UTC."""
    return datetime.now(UTC).isoformat()
