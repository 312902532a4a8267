"""`mergemill serve` as a process."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cli import make_command_environment
from tests.web.seed import SeededDatabase


@contextmanager
def run_server(seeded: SeededDatabase, *options: str) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """Run a server; yield the process, its address and the lines that it printed before."""
    settings = seeded.settings
    command = [
        "mergemill",
        "serve",
        "--db",
        settings.storage.db,
        "--store",
        str(settings.storage.store),
        "--port",
        "0",
        *options,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=make_command_environment()) as process:
        assert process.stderr is not None
        lines = []
        try:
            for line in process.stderr:
                if match := re.search(r"http://\S+", line):
                    yield process, match[0], lines
                    break
                lines.append(line)
        finally:
            process.kill()
