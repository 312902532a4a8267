"""Exchange with the simulated programs of a container: a folder with two pipes, which is mounted there read-only.

The bytes that a container writes into a pipe are foreign: a request is a line, and a line that is not a request is left
out. The folder's files are this process's own, so no link leads a read or write anywhere else.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import re
import select
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

log = logging.getLogger(__name__)

TARGET = "/run/exchange"
"""The folder in the container."""
REQUESTS, ANSWERS, LOCK = "requests", "answers", "lock"
MAX_REQUEST_BYTES = 2 * 1024 * 1024
"""A longer line is not a request."""
ANSWER_SECONDS = 60.0
"""Time that a program has to read its answer; a program that was killed never does."""
POLL_SECONDS = 0.2
JOIN_SECONDS = 2.0
_ID = re.compile(rb"[0-9]+-[0-9]+")
_N_FIELDS = 5


@dataclass(frozen=True, kw_only=True)
class ProgramCall:
    """Command line of a simulated program."""

    argv: tuple[str, ...]
    """Its name first."""
    folder: str
    """Working directory."""
    stdin: str = ""
    context: str = ""
    """Command of the shell that started it, as far as it is known."""


@dataclass(frozen=True, kw_only=True)
class ProgramAnswer:
    """Output that a simulated program prints and leaves behind.

    `files`: absolute path -> content, None for a removed file.
    """

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    files: Mapping[str, bytes | None] = field(default_factory=dict)


class ProgramExchange:
    """Answers the calls of a container on a thread of its own; a context manager.

    Args:
        folder: new folder of this machine, to be mounted at `TARGET`.
        answer: function that returns the answer to a call; an exception is logged, and answered as a failure.
    """

    def __init__(self, folder: Path, answer: Callable[[ProgramCall], ProgramAnswer]) -> None:
        self.folder = folder
        self._answer = answer
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="mergemill-programs", daemon=True)

    def __enter__(self) -> Self:
        self.folder.mkdir()
        self.folder.chmod(0o755)
        for name in (REQUESTS, ANSWERS):
            os.mkfifo(self.folder / name)
            (self.folder / name).chmod(0o666)  # a container's root may be another user of this machine
        (self.folder / LOCK).touch()
        self._requests, self._answers = (
            os.open(self.folder / name, os.O_RDWR | os.O_NONBLOCK) for name in (REQUESTS, ANSWERS)
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(JOIN_SECONDS)  # a model that answers late is not waited for

    def _serve(self) -> None:
        try:
            self._answer_all()
        finally:
            for pipe in (self._requests, self._answers):
                os.close(pipe)

    def _answer_all(self) -> None:
        pending = b""
        while not self._stop.is_set():
            if not select.select([self._requests], [], [], POLL_SECONDS)[0]:
                continue
            pending += _read(self._requests)
            *lines, pending = pending.split(b"\n")
            if len(pending) > MAX_REQUEST_BYTES:
                pending = b""
            for line in lines:
                if (parsed := parse_call(line)) is not None and not self._stop.is_set():
                    key, call = parsed
                    self._send(format_answer(key, self._run(call)))

    def _run(self, call: ProgramCall) -> ProgramAnswer:
        try:
            return self._answer(call)
        except Exception:
            log.exception("a simulated program failed through a bug")
            return ProgramAnswer(stderr=f"{call.argv[0]}: not available\n", exit_code=1)

    def _send(self, data: bytes) -> None:
        """Write an answer.

        The part that is left of an answer whose program was killed is skipped by the next program.
        """
        deadline = time.monotonic() + ANSWER_SECONDS
        while data and time.monotonic() < deadline and not self._stop.is_set():
            if select.select([], [self._answers], [], POLL_SECONDS)[1]:
                try:
                    data = data[os.write(self._answers, data) :]
                except BlockingIOError:  # the pipe has less room than the rest of it
                    time.sleep(POLL_SECONDS / 10)


def parse_call(line: bytes) -> tuple[bytes, ProgramCall] | None:
    """Return id and call of a request's line, None where it is none."""
    fields = line.split(b" ")
    if len(fields) != _N_FIELDS or not _ID.fullmatch(fields[0]):
        return None
    try:
        folder, argv, stdin, context = map(_decode, fields[1:])
    except (binascii.Error, ValueError):
        return None
    words = tuple(argv.removesuffix("\0").split("\0"))
    call = ProgramCall(argv=words, folder=folder.rstrip("\n"), stdin=stdin, context=_read_context(context))
    return fields[0], call


def format_answer(key: bytes, answer: ProgramAnswer) -> bytes:
    """Return the line of an answer."""
    files = "".join(
        f"{_encode(path.encode(errors='surrogateescape'))} {'!' if content is None else _encode(content)}\n"
        for path, content in answer.files.items()
    )
    texts = [_encode(text.encode(errors="replace")) for text in (answer.stdout, answer.stderr, files)]
    return b"\n" + key + f" {answer.exit_code & 0xFF} {' '.join(texts)}\n".encode()


def _read_context(cmdline: str) -> str:
    """Return the script of a shell from its command line, `bash -c SCRIPT`; a parent that is not a shell has none."""
    words = cmdline.removesuffix("\0").split("\0")
    is_shell = words[0].rpartition("/")[2] in ("bash", "sh", "dash")
    return words[words.index("-c") + 1] if is_shell and "-c" in words[:-1] else ""


def _read(pipe: int) -> bytes:
    try:
        return os.read(pipe, 1 << 16)
    except BlockingIOError:
        return b""


def _decode(text: bytes) -> str:
    return "" if text == b"-" else base64.b64decode(text, validate=True).decode(errors="surrogateescape")


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode() or "-"
