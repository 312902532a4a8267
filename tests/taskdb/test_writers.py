"""Several writers of the same records at once, one of them killed: each record and event once, no error."""

from __future__ import annotations

import random
import signal
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from tests.cli import OpenCommand, open_mergemill
from tests.taskdb.content import read_content
from tests.taskdb.lineages import make_url
from tests.taskdb.writer import write_chains

ROOT = Path(__file__).parents[2]
WRITERS = 4


def open_writer(url: str, seed: int) -> AbstractContextManager[OpenCommand]:
    return open_mergemill(url, str(seed), cwd=ROOT, module="tests.taskdb.writer")


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
    with ExitStack() as stack:
        writers = [stack.enter_context(open_writer(empty_db, seed + n)) for n in range(WRITERS)]
        with open_writer(empty_db, seed) as killed:
            for _ in range(random.Random(seed).randrange(1, 12)):
                assert killed.stdout.readline()
            killed.process.kill()
            assert killed.process.returncode == -signal.SIGKILL, f"it had ended: {killed.stderr.read()}"
        for writer in (*writers, stack.enter_context(open_writer(empty_db, seed))):
            code = writer.process.wait(timeout=120)
            assert (code, writer.stderr.read()) == (0, ""), f"seed {seed}"
    assert read_content(empty_db) == calm, f"seed {seed}"
