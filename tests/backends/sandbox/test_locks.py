"""Machine locks: one holder at a time among threads and processes, and released when the holder dies."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from backends.sandbox import locks
from backends.sandbox.locks import hold_machine_lock

HOLDER = """
import sys, time
from backends.sandbox import locks
locks.FOLDERS = (sys.argv[1],)
with locks.hold_machine_lock("engine", "base"):
    print("in", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "FOLDERS", (str(tmp_path / "none"), str(tmp_path)))


def test_only_one_thread_at_a_time_holds_a_lock() -> None:
    order = []

    def hold(name: str, begun: threading.Event) -> None:
        with hold_machine_lock("engine", "base"):
            begun.set()
            order.append(f"{name} in")
            time.sleep(0.2)
            order.append(f"{name} out")

    begun = threading.Event()
    first = threading.Thread(target=hold, args=("a", begun))
    first.start()
    begun.wait()
    hold("b", threading.Event())
    first.join()
    assert order == ["a in", "a out", "b in", "b out"]


def test_another_engine_or_name_is_another_lock() -> None:
    with (
        hold_machine_lock("engine", "base"),
        hold_machine_lock("other", "base"),
        hold_machine_lock("engine", "mergemill/deps:1"),
    ):
        pass


def test_a_holder_that_is_killed_leaves_the_lock_free(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"in\n"
        threading.Timer(0.5, holder.kill).start()
        started = time.monotonic()
        with hold_machine_lock("engine", "base"):
            assert time.monotonic() - started > 0.3
