"""Reads all pull requests of `github:ada/lib` in a process of its own: `python -m ... URL STORE`; count and memory."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from backends.clones import Clones
from backends.services import Services
from mergemill.config import Settings
from miner.changes import Change
from miner.github.source import changes_of_pull_requests
from taskdb.artifacts import Artifacts

if TYPE_CHECKING:
    from backends.sandbox.base import Sandbox


def main(url: str, store: Path) -> None:
    settings = Settings.model_validate({"store": store, "github_api": url, "github_tokens": "ghp_reader"})
    services = Services(
        settings=settings, sandbox=cast("Sandbox", None), clones=Clones(store / "clones"),
        artifacts=Artifacts(store / "artifacts"),
    )  # fmt: skip
    told = changes_of_pull_requests("github:ada/lib", services)
    count = sum(isinstance(one, Change) for one in told)
    # ru_maxrss would begin with what the process was that started this one.
    kilobytes = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert kilobytes
    sys.stdout.write(f"{count} {int(kilobytes[1]) // 1024}\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
