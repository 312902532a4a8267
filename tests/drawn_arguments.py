"""Arguments of tools that are drawn once in a test run: the same worlds are assessed by many tests and commands.

Hypothesis takes a second or more for the tools of a world, and draws the same arguments for the same input.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from worlds.gates import arguments

FOLDER = "TESTS_DRAWN_ARGUMENTS"
"""Variable of the environment with the folder that all processes of a test run share."""

run_generator = arguments.run_generator


def run_generator_once(request: str) -> str:
    """Return the output of the generator, from the folder where a process has drawn the same before."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return run_generator(request)
    kept = Path(folder) / hashlib.sha256(request.encode()).hexdigest()
    if not kept.exists():
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:  # others draw the same meanwhile
            file.write(run_generator(request))
        Path(file.name).rename(kept)
    return kept.read_text()


def keep_drawn_arguments() -> None:
    """Let this process, and those forked from it, draw no arguments that were drawn before in the test run."""
    arguments.run_generator = run_generator_once
