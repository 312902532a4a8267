"""`mergemill serve` as a process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli import OpenCommand, open_mergemill
from tests.web.seed import SeededDatabase


@contextmanager
def run_server(seeded: SeededDatabase, *options: str) -> Iterator[tuple[OpenCommand, str, list[str]]]:
    """Run a server; yield the command, its address and the lines that it printed before."""
    storage = seeded.settings.storage
    words = ("serve", "--db", storage.db, "--store", str(storage.store), "--port", "0", *options)
    with open_mergemill(*words, cwd=Path.cwd()) as command:
        lines = []
        for line in command.stderr:
            if match := re.search(r"http://\S+", line):
                yield command, match[0], lines
                break
            lines.append(line)
