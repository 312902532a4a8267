"""The small plan of a training loop, run once for a module of tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.loop.workspace import ROOT
from taskdb.records.rollouts import Rollout
from taskdb.store import Store


def run_small_loop(module: str, out: Path) -> Path:
    """Run `python -m MODULE --small` into a folder; return the folder."""
    command = [sys.executable, "-m", module, "--small", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    log = out / "log.txt"
    assert done.returncode == 0, done.stderr[-2000:] + (log.read_text()[-2000:] if log.exists() else "")
    return out


def read_facts(small: Path, stage: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((small / "stages" / f"{stage}.json").read_text())["facts"]
    return facts


def load_rollouts(small: Path) -> list[Rollout]:
    with Store.open(f"sqlite:///{small / 'mergemill.db'}", create=False) as store:
        return store.load_all(Rollout)
