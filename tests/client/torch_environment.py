"""The environment in which the tests of training objectives run: torch is not among mergemill's own packages.

`python -m tests.client.torch_environment` makes it in the user's cache, as `scripts/test` does: 4 GB, since torch from
PyPI comes with CUDA.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import uv

REQUIREMENTS = Path(__file__).parent / "training" / "requirements.txt"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mergemill-tests"
ENVIRONMENT = CACHE / "torch"
ADVICE = "torch is not installed for the tests: python -m tests.client.torch_environment"


def find_python() -> Path | None:
    """Return the environment's interpreter, or None if it is not there or of other requirements."""
    whole = ENVIRONMENT / "requirements.txt"
    is_current = whole.is_file() and whole.read_text() == REQUIREMENTS.read_text()
    return ENVIRONMENT / "bin" / "python" if is_current else None


def make_environment() -> None:
    """Install the requirements unless they are."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "torch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if find_python():
            return
        overrides = CACHE / "torch.overrides"
        overrides.write_text("".join(line for line in REQUIREMENTS.open() if line.startswith("triton")))
        install = ["pip", "install", "--python", ENVIRONMENT, "--override", overrides, "-r", REQUIREMENTS]
        for command in (["venv", "--clear", "--python", sys.executable, ENVIRONMENT], install):
            subprocess.run([uv.find_uv_bin(), "--quiet", *command], check=True)
        (ENVIRONMENT / "requirements.txt").write_text(REQUIREMENTS.read_text())


if __name__ == "__main__":
    make_environment()
