"""A server of worlds as a process of this machine instead of a container: for our own example worlds alone.

It confines the processes of worlds as it does in a container, for which it must be root.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator

import pytest

from backends.sandbox.local import IMAGE, LocalSandbox
from worlds.server.connection import ServerConnection
from worlds.server.limits import ServerLimits
from worlds.server.service import BOOT, CODE_FOLDER, WorldServer, collect_server_files

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a server of worlds outside a container must be root")
LIMITS = ServerLimits(call_seconds=10.0, check_seconds=10.0)


@contextlib.contextmanager
def open_local_server() -> Iterator[WorldServer]:
    """Start a server in a folder of its own."""
    boot = BOOT.replace(CODE_FOLDER, CODE_FOLDER.lstrip("/"))
    command = [sys.executable, "-S", "-s", "-B", "-c", boot, json.dumps(LIMITS.to_json())]
    with (
        LocalSandbox().open_process(
            IMAGE,
            command,
            limits=LIMITS.build_container_limits(),
            files=collect_server_files(),
            env={"PYTHONHASHSEED": "0"},
        ) as process,
        ServerConnection(process) as connection,
    ):
        yield WorldServer(connection)
