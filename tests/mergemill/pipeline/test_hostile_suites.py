"""Test suites that misbehave end as rejections with a reason; nothing hangs, nothing fills the machine."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cli import WITHOUT_CONTROLS, run_mergemill
from tests.sample import COUNT_RIGHT, TEST_COUNT_RIGHT, make_sample

LIMITS = {
    "MERGEMILL_MEMORY_MB": "256",
    "MERGEMILL_DISK_MB": "64",
    "MERGEMILL_PIDS": "64",
    "MERGEMILL_OUTPUT_MB": "1",
}
"""Limits far below what the suites take."""
HOSTILE = {
    "never ends": "import time\n\ndef test_hostile():\n    time.sleep(10_000)\n",
    "forks without end": "import os\n\ndef test_hostile():\n    while True:\n        try:\n            os.fork()\n"
    "        except OSError:\n            pass\n",
    "eats memory": "def test_hostile():\n    kept = []\n    while True:\n        kept.append(bytearray(10_000_000))\n",
    "fills the disk": "def test_hostile(tmp_path):\n    n = 0\n    while True:\n        n += 1\n"
    "        (tmp_path / str(n)).write_bytes(b'x' * 10_000_000)\n",
}
HARMLESS = {
    "prints 64 megabytes": "import sys\n\ndef test_hostile(capfd):\n    with capfd.disabled():\n"
    "        for _ in range(64):\n            sys.stdout.write('x' * 1048576)\n",
    "removes its own tests": "import pathlib, shutil\n\ndef test_hostile():\n"
    "    shutil.rmtree(pathlib.Path(__file__).parent)\n",
}


def add_change(folder: Path, hostile: str) -> None:
    repo = make_sample(folder / "ada__greet")
    text = {
        "greet/words.py": COUNT_RIGHT.replace("words.", "words.lower()."),
        "tests/test_words.py": TEST_COUNT_RIGHT + "\n\n" + hostile,
    }
    repo.commit("Make the count right once more (#9)\n\nIt was wrong for texts of many words, as everybody saw.", text)


SLOW_SUITES = ("never ends", "removes its own tests")
"""Suites that end as others do: test_verify.py has both, too, without the command line."""


@pytest.mark.docker
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW_SUITES else name for name in HOSTILE]
)
def test_a_hostile_suite_is_rejected_with_its_reason(name: str, tmp_path: Path) -> None:
    add_change(tmp_path, HOSTILE[name])
    started = time.monotonic()
    done = run_mergemill(
        "run", "git:ada__greet", "--only", "ada__greet-9", "--test-timeout", "8", cwd=tmp_path, **LIMITS
    )
    why = run_mergemill("why", "ada__greet-9", "--json", cwd=tmp_path).json

    assert done.exit_code == 0, done.stderr
    assert time.monotonic() - started < 240
    assert why["events"][-1]["stage"] == "verify", why
    assert not why["events"][-1]["ok"]
    assert why["events"][-1]["reason"], why


@pytest.mark.docker
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW_SUITES else name for name in HARMLESS]
)
def test_a_badly_behaved_but_harmless_suite_is_verified(name: str, tmp_path: Path) -> None:
    add_change(tmp_path, HARMLESS[name])
    variables = LIMITS | WITHOUT_CONTROLS
    done = run_mergemill("run", "git:ada__greet", "--only", "ada__greet-9", cwd=tmp_path, **variables)
    why = run_mergemill("why", "ada__greet-9", "--json", cwd=tmp_path).json

    assert done.exit_code == 0, done.stderr
    assert why["events"][-1]["stage"] in ("verify", "derive", "certify"), why
