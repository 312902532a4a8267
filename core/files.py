"""Input files that a user names."""

from __future__ import annotations

import os
import re
import stat
from io import BufferedReader
from pathlib import Path

from core.errors import InputError

MAX_BYTES = 1 << 30
"""Size of a file that is read at once."""
_INHERITED = re.compile(r"/dev/(stdin|null|fd/\d+)|/proc/self/fd/\d+")
"""Files that the caller of the process opened, such as standard input and `<(command)`, and the empty file."""


def open_input(path: Path) -> BufferedReader:
    """Open a file for reading. Nothing is waited for: a named pipe has no end until somebody writes to it.

    Raises:
        InputError: it is neither a regular file nor standard input, `<(command)` or /dev/null.
        OSError: it is not there, or may not be read.
    """
    file = open(path, "rb", opener=_open_at_once)  # noqa: SIM115 - the caller closes it
    mode = os.fstat(file.fileno()).st_mode
    if not stat.S_ISREG(mode) and not _INHERITED.fullmatch(str(path)):
        file.close()
        raise InputError(f"{path} is not a regular file", advice="a command's output is read as <(command)")
    os.set_blocking(file.fileno(), True)
    return file


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def read_input(path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        InputError: see `open_input`; or it is larger than MAX_BYTES.
        OSError: it is not there, or may not be read.
    """
    with open_input(path) as file:
        # A pipe has the size 0 here: only its content shows how large it is.
        size = os.fstat(file.fileno()).st_size
        content = file.read(MAX_BYTES + 1) if size <= MAX_BYTES else b""
    if max(size, len(content)) > MAX_BYTES:
        raise InputError(f"{path} has more than {MAX_BYTES >> 20} MB")
    return content


def read_text(path: Path, what: str, *, encoding: str = "utf-8", advice: str = "") -> str:
    """Return the text of a file.

    Args:
        path: the file.
        what: beginning of the message where it cannot be read, such as `--system: cannot read notes.md`.
        encoding: encoding of the text.
        advice: advice of that message.

    Raises:
        InputError: it cannot be read, or is no text; or see `read_input`.
    """
    try:
        return read_input(path).decode(encoding)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{what}: {getattr(error, 'strerror', None) or 'it is no text'}", advice=advice) from error
