"""The real command line, as a process of its own, in a folder of the test's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Said:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its standard output as one JSON value."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Its standard output as one JSON object a line."""
        return [json.loads(line) for line in self.out.splitlines()]


def environment(**variables: str) -> dict[str, str]:
    """The environment of commands under test: the user's, without settings of mergemill's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MERGEMILL_")}
    return kept | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "200"} | variables


def mergemill(*arguments: str, cwd: Path, **variables: str) -> Said:
    """Run `mergemill ARGUMENTS` in `cwd` to its end."""
    done = subprocess.run(
        ["mergemill", *arguments], cwd=cwd, env=environment(**variables), capture_output=True, text=True, check=False
    )
    return Said(done.returncode, done.stdout, done.stderr)
