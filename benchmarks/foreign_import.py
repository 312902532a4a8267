"""Seconds and memory of an import of a published set without a forge: rows in SWE-bench's fields, listed and exported.

    python -m benchmarks.foreign_import --rows 20000 --repositories 60

Each command runs as a process of its own, in a folder that is removed at the end.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PATCH = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-value = {1}\n+value = {2}\n"
N_PASSING = 20
"""Tests of PASS_TO_PASS."""


class Measure(NamedTuple):
    """A command with its exit code, wall seconds and peak memory (MiB)."""

    command: str
    exit_code: int
    seconds: float
    mebibytes: float


def make_rows(rows: int, repositories: int) -> Iterator[dict[str, Any]]:
    """Yield rows in SWE-bench's fields, each a patch of a file of its own."""
    for number in range(rows):
        owner, name = f"owner{number % repositories}", f"project{number % repositories}"
        tests = f"tests/test_m{number}.py"
        yield {
            "instance_id": f"{owner}__{name}-{number}",
            "repo": f"{owner}/{name}",
            "base_commit": hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest(),
            "patch": PATCH.format(f"src/m{number}.py", number, number + 1),
            "test_patch": PATCH.format(tests, number, number + 1),
            "problem_statement": f"The value of module {number} is off by one. It should be {number + 1}.",
            "hints_text": "",
            "created_at": "2024-03-01T10:00:00Z",
            "version": "1.0",
            "FAIL_TO_PASS": json.dumps([f"{tests}::test_value"]),
            "PASS_TO_PASS": json.dumps([f"{tests}::test_{other}" for other in range(N_PASSING)]),
        }


def measure(folder: Path, words: Sequence[str]) -> Measure:
    """Run a command of mergemill; its output goes to files."""
    environment = os.environ | {"MERGEMILL_DB": f"sqlite:///{folder}/m.db"}
    started = time.perf_counter()
    with (folder / "out.txt").open("wb") as out, (folder / "errors.txt").open("wb") as errors:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("mergemill"), *words],
            cwd=folder,
            env=environment,
            stdout=out,
            stderr=errors,
        )
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    return Measure(" ".join(words[:2]), os.waitstatus_to_exitcode(status), seconds, _get_mebibytes(usage))


def _get_mebibytes(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss / 1024


def measure_import(rows: int, repositories: int) -> list[Measure]:
    """Import a generated set, import it again, list, search and export it; return the measures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "rows.jsonl").open("w") as file:
            file.writelines(json.dumps(row) + "\n" for row in make_rows(rows, repositories))
        commands = (
            ("bundle", "import", "rows.jsonl", "--format", "swebench", "--json"),
            ("tasks", "list", "--limit", "20"),
            ("tasks", "search", "module", str(rows - 1)),
            ("export", "--format", "swebench", "--status", "imported", "--out", "bundle"),
            ("bundle", "verify", "bundle"),
            ("bundle", "import", "rows.jsonl", "--format", "swebench", "--json"),
        )
        return [measure(folder, words) for words in commands]


def main(words: Sequence[str] | None = None) -> int:
    """Print a table of the measures; return 1 if a command failed, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repositories", type=int, default=60)
    arguments = parser.parse_args(words)
    measures = measure_import(arguments.rows, arguments.repositories)
    print("| command | exit code | seconds | peak MiB |\n|---|--:|--:|--:|")
    for command, exit_code, seconds, mebibytes in measures:
        print(f"| `{command}` | {exit_code} | {seconds:.1f} | {mebibytes:.0f} |")
    return int(any(row.exit_code for row in measures))


if __name__ == "__main__":
    sys.exit(main())
