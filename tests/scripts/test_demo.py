"""`scripts/demo simulate` and `scripts/demo worlds`: from seeds or worlds to rows that LLaMA-Factory takes, in time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_SECONDS = 120.0


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder like a clone whose environment is set up: the one that runs this test."""
    root = tmp_path / "clone"
    root.mkdir()
    for path in ROOT.iterdir():
        if path.name not in ("scripts", "demo", ".venv", ".git"):
            (root / path.name).symlink_to(path)
    shutil.copytree(ROOT / "scripts", root / "scripts")
    (root / ".venv").mkdir()
    (root / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    content = (ROOT / "pyproject.toml").read_bytes() + (ROOT / "requirements.lock").read_bytes()
    (root / ".venv" / "mergemill-fingerprint").write_text(hashlib.sha256(content).hexdigest())
    return root


def run_demo(clone: Path, system: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MERGEMILL_")}
    started = time.monotonic()
    done = subprocess.run(
        [clone / "scripts" / "demo", system],
        env=kept | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        cwd=clone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if os.getloadavg()[0] < 2 * (os.cpu_count() or 1):  # else others have the processors
        assert time.monotonic() - started < MOST_SECONDS
    return done.stdout


def count_trained(output: str) -> dict[str, tuple[int, int]]:
    """Return folder -> (rows that are trained, rows)."""
    matches = re.findall(r"LLaMA-Factory trains (\d+) of (\d+) rows, \d+ answers, of (\S+)", output)
    return {folder: (int(trained), int(rows)) for trained, rows, folder in matches}


def test_simulated_conversations_are_trained_row_for_row(clone: Path) -> None:
    output = run_demo(clone, "simulate")
    counts = count_trained(output)
    assert set(counts) == {"demo/simulate/sft/sharegpt", "demo/simulate/sft/sharegpt-hermes"}
    assert all(trained == rows > 0 for trained, rows in counts.values())
    assert "unknown-tool" in output, "the scripted server makes mistakes, which a step drops"
    assert count_trained(run_demo(clone, "simulate")) == counts, "a repetition continues"


@pytest.mark.docker
def test_worlds_are_trained_row_for_row(clone: Path) -> None:
    counts = count_trained(run_demo(clone, "worlds"))
    assert set(counts) == {"demo/worlds/alpaca", "demo/worlds/sharegpt"}
    assert all(trained == rows > 0 for trained, rows in counts.values())
    scenarios = json.loads((clone / "demo" / "worlds" / "envscaler" / "scenarios.json").read_text())
    assert len(scenarios) == counts["demo/worlds/sharegpt"][1] == 6
    assert len(list((clone / "demo" / "worlds" / "harbor").glob("*/task.toml"))) == 6


def test_an_unknown_system_is_a_usage_error(clone: Path) -> None:
    done = subprocess.run([clone / "scripts" / "demo", "poems"], capture_output=True, text=True, check=False)
    assert (done.returncode, "scripts/demo [tasks|simulate|worlds]" in done.stderr) == (2, True)


MERGEMILL = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
    run*) code=$(head -n 1 "$CODES"); sed -i 1d "$CODES"; echo "no answer" >&2; exit "${code:-0}" ;;
    "tasks list --status"*) echo '{"name": "ada__greet-3.bugfix"}' ;;
    funnel) echo "mine 6" ;;
esac
"""
"""A command that notes how it is called, and whose `run` ends with the next of the exit codes of a file."""


@pytest.mark.parametrize(
    ("codes", "exit_code", "n_runs", "last"),
    [
        ([0], 0, 1, ""),
        ([75, 0], 0, 2, "trying once more in 20 seconds"),
        ([75, 75], 75, 2, "failed twice through network, disk or engine (exit code 75)"),
        ([75, 3], 3, 2, "failed (exit code 3)"),
        ([4], 4, 1, "failed (exit code 4)"),
        ([130], 130, 1, "was stopped"),
    ],
)
def test_a_failure_that_may_pass_is_tried_once_more(
    codes: list[int], exit_code: int, n_runs: int, last: str, clone: Path, tmp_path: Path
) -> None:
    programs, calls, file = tmp_path / "programs", tmp_path / "calls", tmp_path / "codes"
    programs.mkdir()
    for name, text in (("mergemill", MERGEMILL), ("sleep", '#!/bin/sh\necho "sleep $1" >> "$CALLS"\n')):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (clone / ".venv" / "bin").unlink()
    (clone / ".venv" / "bin").symlink_to(programs)
    with (clone / "scripts" / "lib.sh").open("a") as library:
        library.write("setup_env() { :; }\nsetup_docker() { :; }\nsetup_debian() { :; }\n")
    file.write_text("".join(f"{code}\n" for code in codes))
    variables = {"PATH": f"{programs}:{os.environ['PATH']}", "CALLS": str(calls), "CODES": str(file)}
    done = subprocess.run(
        [clone / "scripts" / "demo"], env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == exit_code, done.stderr
    lines = calls.read_text().splitlines()
    assert [line.partition(" ")[0] for line in lines if line.startswith(("run", "sleep"))] == (
        ["run", "sleep", "run"] if n_runs == 2 else ["run"]
    )
    message = done.stderr.splitlines()[-1] if exit_code or n_runs == 1 else done.stderr
    assert last in message
    if exit_code:
        assert "the same command continues from here: scripts/demo tasks" in message
        assert "mergemill run pypi:python-slugify" in message
        assert "mine 6" in done.stderr
        assert not any(line.startswith("--quiet export") for line in lines)
    else:
        assert sum(line.startswith("--quiet export") for line in lines) == 2
