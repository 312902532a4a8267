"""Read all pull requests of `github:ada/lib` in a subprocess: `python -m ... URL STORE`; print count and memory."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from backends.clones import CloneStore
from backends.services import Services
from core.config import Settings
from miner.changes import Change
from miner.github.source import read_pull_requests
from taskdb.artifacts import Artifacts

if TYPE_CHECKING:
    from backends.sandbox.base import Sandbox


def main(url: str, store: Path) -> None:
    settings = Settings.model_validate({"store": store, "github_api": url, "github_tokens": "ghp_reader"})
    services = Services(
        settings=settings,
        sandbox=cast("Sandbox", None),
        clones=CloneStore(store / "clones"),
        artifacts=Artifacts(store / "artifacts"),
    )
    changes = read_pull_requests("github:ada/lib", services)
    count = sum(isinstance(change, Change) for change in changes)
    # ru_maxrss would begin with what the process was that started this one.
    kilobytes = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert kilobytes
    sys.stdout.write(f"{count} {int(kilobytes[1]) // 1024}\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
