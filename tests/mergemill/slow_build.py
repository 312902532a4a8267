"""A program: `mergemill build` with one worker, whose builds wait for the file `finish` in the current folder."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from mergemill import cli
from mergemill.pipeline import runs
from taskdb.records import Record, Rejection
from tests.mergemill.stages import FakeStages


class SlowStages(FakeStages):
    """Stages whose builds wait."""

    def build(self, it: Any, services: Any) -> Record | Rejection:
        sys.stdout.write("building\n")
        sys.stdout.flush()
        while not Path("finish").exists():
            time.sleep(0.01)
        return super().build(it, services)


def main() -> None:
    """Run the command with these stages, which need no engine."""
    stages = SlowStages()
    runs.list_steps = stages.steps  # type: ignore[assignment]
    runs._needs_engine = lambda scope: False
    sys.argv[1:] = ["build", "--workers", "1", *sys.argv[1:]]
    cli.main()


if __name__ == "__main__":
    main()
