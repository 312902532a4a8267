"""The service `terminal`: tests run in a pseudo-terminal of a known size, and their output and exit status stay."""

from __future__ import annotations

import subprocess
from pathlib import Path

from evaluation.script.render import read_service_script

PROBE = """
import os, sys
print(os.get_terminal_size(), sys.stdin.isatty(), sys.stdin.read() == "")
print(os.get_terminal_size(os.open("/dev/tty", os.O_RDWR)).lines)
sys.exit(3)
"""


def run_in_terminal(tmp_path: Path, program: str) -> subprocess.CompletedProcess[bytes]:
    script = (
        'report="$1"; command=(python3 -c "$2")\n'
        f"start_terminal() {{\n{read_service_script('terminal')}}}\n"
        'start_terminal > "$report/log" 2>&1 || exit 9\n"${command[@]}" < /dev/null\n'
    )
    arguments = ["bash", "-c", script, "bash", str(tmp_path), program]
    return subprocess.run(arguments, capture_output=True, timeout=30, check=False, start_new_session=True)


def test_the_tests_have_a_terminal_and_their_output_stays(tmp_path: Path) -> None:
    done = run_in_terminal(tmp_path, PROBE)
    assert done.stdout == b"os.terminal_size(columns=80, lines=24) True True\n24\n"
    assert done.returncode == 3


def test_a_process_that_stays_behind_does_not_delay_the_end(tmp_path: Path) -> None:
    left = "import subprocess, sys\nsubprocess.Popen(['sleep', '50'], start_new_session=True)\nprint('x' * 100_000)\n"
    done = run_in_terminal(tmp_path, left)
    assert done.stdout == b"x" * 100_000 + b"\n"
    assert done.returncode == 0
