"""Several writers of the same records at once, one of them killed: each record and event once, no error."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.taskdb.content import read_content
from tests.taskdb.lineages import make_url
from tests.taskdb.writer import write_chains

ROOT = Path(__file__).parents[2]
WRITERS = 4


def start_writer(url: str, seed: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.taskdb.writer", url, str(seed)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Content of a database that one writer filled alone."""
    url = make_url(tmp_path_factory.mktemp("calm"))
    assert sum(1 for _ in write_chains(url, 0)) > 0
    content = read_content(url)
    assert (len(content["changes"]), len(content["tasks"])) == (24, 12)
    return content


def test_four_writers_store_each_record_once(empty_db: str, calm: dict[str, list[str]]) -> None:
    seed = random.randrange(1 << 32)
    writers = [start_writer(empty_db, seed + n) for n in range(WRITERS)]
    killed = start_writer(empty_db, seed)
    assert killed.stdout
    for _ in range(random.Random(seed).randrange(1, 12)):
        killed.stdout.readline()
    killed.send_signal(signal.SIGKILL)
    _, errors = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, f"the writer ended before it was killed: {errors}"
    for writer in (*writers, start_writer(empty_db, seed)):
        _, errors = writer.communicate(timeout=120)
        assert (writer.returncode, errors) == (0, ""), f"seed {seed}"
    assert read_content(empty_db) == calm, f"seed {seed}"
