"""Names of containers and folders that identify the process that made them, so that those of dead ones can be removed.

`mergemill-HOST.PID.START-NUMBER`, of folders for temporary files `mergemill-HOST.PID.START-WORD-RANDOM`: HOST is a hash
of the machine, START of the process's start time within this boot. It is a name and not a label because labels of a
container become labels of an image committed from it.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import platform
import re
import tempfile
from pathlib import Path

PREFIX = "mergemill-"
_NAME = re.compile(rf"^/?{PREFIX}(?P<host>[0-9a-f]+)\.(?P<pid>\d+)\.(?P<start>[0-9a-f]+)-[\w-]+$")
_numbers = itertools.count(1)


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _hash_host() -> str:
    return hashlib.sha256((platform.node() + _read_text("/etc/machine-id")).encode()).hexdigest()[:8]


def _hash_start_time(pid: int) -> str | None:
    """Return a short hash of the process's start time, or None when there is no such process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    # Fields after the command's name, which may contain blanks and parentheses; field 22 of all is the start time.
    fields = _read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if fields and fields[0] == "Z":
        return None
    ticks = fields[19] if fields else ""
    boot = _read_text("/proc/sys/kernel/random/boot_id")
    return hashlib.sha256(f"{boot}{ticks}".encode()).hexdigest()[:8]


def make_container_name() -> str:
    """Return a new container name of this process."""
    return f"{_make_process_prefix()}{next(_numbers)}"


def make_folder_prefix(word: str) -> str:
    """Return the beginning of the name of a folder that `tempfile` makes for this process for the purpose `word`."""
    return f"{_make_process_prefix()}{word}-"


def _make_process_prefix() -> str:
    pid = os.getpid()
    return f"{PREFIX}{_hash_host()}.{pid}.{_hash_start_time(pid)}-"


def find_orphaned_folders() -> list[Path]:
    """Return the folders for temporary files whose mergemill process, of this machine, is dead, sorted."""
    return sorted(path for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*") if is_orphan(path.name))


def is_orphan(name: str) -> bool:
    """Return whether a process of this machine that is now dead made the container or folder of that name."""
    match = _NAME.match(name)
    return match is not None and match["host"] == _hash_host() and _hash_start_time(int(match["pid"])) != match["start"]
