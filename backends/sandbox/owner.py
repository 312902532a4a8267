"""Who made a container: containers are named after the process that drives them, so that a dead one's can be found.

`mergemill-HOST.PID.START-NUMBER`: HOST a hash of the machine, START the process's start time within this boot. The name
carries it and not a label, since labels of a container go into the image made of it.
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


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _host() -> str:
    return hashlib.sha256((platform.node() + _read("/etc/machine-id")).encode()).hexdigest()[:8]


def _start(pid: int) -> str | None:
    """When the process started, as a short hash, or None when there is no such process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    # The fields after the command's name, which may itself hold blanks and parentheses; the 22nd of all is the start.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if fields and fields[0] == "Z":
        return None
    ticks = fields[19] if fields else ""
    boot = _read("/proc/sys/kernel/random/boot_id")
    return hashlib.sha256(f"{boot}{ticks}".encode()).hexdigest()[:8]


def new_name() -> str:
    """A container name that says this process made it."""
    pid = os.getpid()
    return f"{PREFIX}{_host()}.{pid}.{_start(pid)}-{next(_numbers)}"


def is_orphan(name: str) -> bool:
    """Whether a container of that name was made on this machine by a process that no longer lives."""
    match = _NAME.match(name)
    return match is not None and match["host"] == _host() and _start(int(match["pid"])) != match["start"]
