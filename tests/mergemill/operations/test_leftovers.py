"""`mergemill gc` removes what killed processes left, and nothing of living ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.config import Settings
from mergemill.execution.run_status import list_runs
from mergemill.operations.leftovers import GRACE_SECONDS, find_leftovers
from tests.cli import make_command_environment, run_mergemill
from tests.sample import make_sample

ROOT = Path(__file__).parents[3]
HALF = "0123456789abcdef" * 2

SCRATCH = """
import sys
from pathlib import Path
from backends.git import GitRepository
from backends.index import ScratchIndex

repository = GitRepository(Path(sys.argv[1]))
with ScratchIndex(repository, repository.run_git("rev-parse", "HEAD").decode().strip()):
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has a scratch repository open below `tmp`."""
    make_sample(tmp_path / "greet")
    (tmp_path / "tmp").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", SCRATCH, str(tmp_path / "greet")],
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def collect(folder: Path, *words: str) -> list[dict[str, Any]]:
    """Run `mergemill gc` without an engine and return its rows."""
    done = run_mergemill("gc", "--json", "--sandbox", "bubblewrap", *words, cwd=folder, TMPDIR=str(folder / "tmp"))
    assert done.exit_code == 0, done.stderr
    return done.lines


def test_a_folder_of_a_killed_process_is_removed(tmp_path: Path, scratch: subprocess.Popen[str]) -> None:
    (left,) = (tmp_path / "tmp").iterdir()
    assert collect(tmp_path) == []
    scratch.kill()
    scratch.wait()
    (row,) = collect(tmp_path, "--dry-run")
    assert (row["kind"], row["name"], row["removed"]) == ("folder", str(left), False)
    assert row["bytes"] > 0
    assert [row["removed"] for row in collect(tmp_path)] == [True]
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with half-written things, and finished ones with similar names."""
    clone = tmp_path / "mergemill-store" / "clones" / "git" / "ada__greet-1.git"
    for path in (
        clone / "packed-refs.lock",
        clone / "objects" / "pack" / "tmp_pack_1",
        clone / "objects" / "pack" / "pack-1.pack",
        clone / "objects" / "ab" / "tmp_obj_1",
        clone.parent / f".half-{HALF}" / "HEAD",
        clone.parent / "fetching.lock",
        tmp_path / "mergemill-store" / "artifacts" / "ab" / f".{HALF}",
        tmp_path / "mergemill-store" / "artifacts" / "ab" / f"{HALF}.zst",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return tmp_path / "mergemill-store"


def find_in_store(store: Path, later: float) -> set[str]:
    settings = Settings(store=store, sandbox="bubblewrap")
    leftovers = find_leftovers(settings.sandbox, settings.storage, now=lambda: time.time() + later)
    return {
        str(Path(leftover.name).relative_to(store)) for leftover in leftovers if leftover.name.startswith(str(store))
    }


def test_what_was_not_finished_in_the_store_is_left_after_an_hour(store: Path) -> None:
    assert find_in_store(store, GRACE_SECONDS - 60) == set()
    assert find_in_store(store, GRACE_SECONDS + 60) == {
        "clones/git/ada__greet-1.git/packed-refs.lock",
        "clones/git/ada__greet-1.git/objects/pack/tmp_pack_1",
        f"clones/git/.half-{HALF}",
        f"artifacts/ab/.{HALF}",
    }


def test_a_clone_that_grows_is_kept(store: Path) -> None:
    old = time.time() - 2 * GRACE_SECONDS
    half = store / "clones" / "git" / f".half-{HALF}"
    os.utime(half, (old, old))
    assert f"clones/git/.half-{HALF}" not in find_in_store(store, 0)
    os.utime(half / "HEAD", (old, old))
    assert f"clones/git/.half-{HALF}" in find_in_store(store, 0)


def test_the_other_leftovers_are_removed_where_no_engine_answers(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    left = tmp_path / "mergemill-store" / f".{HALF}"
    left.parent.mkdir()
    left.touch()
    os.utime(left, (0, 0))
    nowhere = {"DOCKER_HOST": "unix:///nonexistent/docker.sock", "TMPDIR": str(tmp_path / "tmp")}
    done = run_mergemill("gc", "--json", cwd=tmp_path, **nowhere)
    assert (done.exit_code, [row["name"] for row in done.lines]) == (4, [f"mergemill-store/.{HALF}"])
    assert not left.exists()
    assert "no Docker engine answers" in done.stderr


# ------------------------------------------------------------------------------------------------ killed runs


def list_containers(pid: int) -> list[str]:
    command = ["docker", "ps", "-a", "--filter", f"name=\\.{pid}\\.", "--format", "{{.Names}}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def find_running(folder: Path) -> set[str]:
    return {step["stage"] for run in list_runs(folder / "mergemill-store" / "runs") for step in run["running"]}


@pytest.mark.docker
@pytest.mark.parametrize("stage", ["build", "verify"])
def test_a_run_killed_in_a_build_or_in_tests_leaves_nothing_after_the_collection(stage: str, tmp_path: Path) -> None:
    make_sample(tmp_path / "greet")
    (tmp_path / "tmp").mkdir()
    with subprocess.Popen(
        ["mergemill", "run", "git:greet"],
        cwd=tmp_path,
        env=make_command_environment(TMPDIR=str(tmp_path / "tmp")),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as driver:
        try:
            wait_until(lambda: stage in find_running(tmp_path) and list_containers(driver.pid) != [])
        finally:
            driver.send_signal(signal.SIGKILL)
    assert list_containers(driver.pid)
    done = run_mergemill("gc", "--json", cwd=tmp_path, TMPDIR=str(tmp_path / "tmp"))
    assert done.exit_code == 0, done.stderr
    assert list_containers(driver.pid) == []
    assert list((tmp_path / "tmp").iterdir()) == []


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.1)
