"""Container names that identify the process that created them, so that those of dead processes can be removed.

`mergemill-HOST.PID.START-NUMBER`: HOST is a hash of the machine, START of the process's start time within this boot. It
is a name and not a label because labels of a container become labels of an image committed from it.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import platform
import re
from pathlib import Path

PREFIX = "mergemill-"
_NAME = re.compile(rf"^/?{PREFIX}(?P<host>[0-9a-f]+)\.(?P<pid>\d+)\.(?P<start>[0-9a-f]+)-\d+$")
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
    pid = os.getpid()
    return f"{PREFIX}{_hash_host()}.{pid}.{_hash_start_time(pid)}-{next(_numbers)}"


def is_orphan(name: str) -> bool:
    """Return whether a process of this machine that is now dead created the container of that name."""
    match = _NAME.match(name)
    return match is not None and match["host"] == _hash_host() and _hash_start_time(int(match["pid"])) != match["start"]
