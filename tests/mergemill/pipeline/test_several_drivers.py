"""Several drivers on one database, and drivers that are killed: each record once, and the tasks of a calm run.

The drivers are real processes on real repositories. Review tasks are complete without an engine.
"""

from __future__ import annotations

import random
import signal
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.cli import OpenCommand, open_mergemill, run_mergemill
from tests.history import make_history
from tests.taskdb.conftest import empty_db, empty_postgresql, server  # noqa: F401 - the databases of those tests
from tests.taskdb.content import read_content
from tests.taskdb.lineages import make_url

CHANGES = 12


def open_driver(folder: Path, url: str) -> AbstractContextManager[OpenCommand]:
    words = ("run", "git:ada__sums", "--kind", "review", "--db", url, "--workers", "2", "--json")
    return open_mergemill(*words, cwd=folder)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """Folder with the repository, and the content of a database that one undisturbed driver wrote."""
    folder = tmp_path_factory.mktemp("drivers")
    make_history(folder / "ada__sums", CHANGES)
    url = make_url(folder)
    done = run_mergemill("run", "git:ada__sums", "--kind", "review", "--db", url, cwd=folder)
    assert done.exit_code == 0, done.stderr
    content = read_content(url)
    assert len(content["tasks"]) >= CHANGES
    return folder, content


def test_drivers_on_one_source_store_each_record_once_and_a_killed_one_is_resumed(
    empty_db: str,  # noqa: F811
    calm: tuple[Path, dict[str, list[str]]],
) -> None:
    folder, content = calm
    seed = random.randrange(1 << 32)
    with open_driver(folder, empty_db) as killed:
        killed.stdout.readline()  # one of its records is stored
        with open_driver(folder, empty_db) as undisturbed:
            time.sleep(random.Random(seed).uniform(0, 0.3))
            killed.process.kill()
            errors = killed.stderr.read()
            assert killed.process.returncode == -signal.SIGKILL, f"the driver ended before it was killed: {errors}"
            with open_driver(folder, empty_db) as resuming:
                for driver in (undisturbed, resuming):
                    driver.stdout.read()
                    errors = driver.stderr.read()
                    assert (driver.process.wait(120), errors) == (0, ""), f"seed {seed}"
    assert read_content(empty_db) == content, f"seed {seed}"
