"""Several drivers on one database, and drivers that are killed: each record once, and the tasks of a calm run.

The drivers are real processes on real repositories. Review tasks are complete without an engine.
"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli import make_command_environment, run_mergemill
from tests.history import make_history
from tests.taskdb.conftest import db, postgresql, server  # noqa: F401 - the databases of those tests
from tests.taskdb.content import read_content
from tests.taskdb.lineages import make_url

CHANGES = 12


def start_driver(folder: Path, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["mergemill", "run", "git:ada__sums", "--kind", "review", "--db", url, "--workers", "2", "--json"],
        cwd=folder,
        env=make_command_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


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
    db: str,  # noqa: F811
    calm: tuple[Path, dict[str, list[str]]],
) -> None:
    folder, content = calm
    seed = random.randrange(1 << 32)
    killed = start_driver(folder, db)
    assert killed.stdout
    killed.stdout.readline()  # one of its records is stored
    undisturbed = start_driver(folder, db)
    time.sleep(random.Random(seed).uniform(0, 0.3))
    killed.send_signal(signal.SIGKILL)
    _, errors = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, f"the driver ended before it was killed: {errors}"
    for driver in (undisturbed, start_driver(folder, db)):
        _, errors = driver.communicate(timeout=120)
        assert (driver.returncode, errors) == (0, ""), f"seed {seed}"
    assert read_content(db) == content, f"seed {seed}"
