"""A command takes the result of a container of the same work, and no other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from backends.sandbox.docker import DockerSandbox
from backends.sandbox.execution import ExecResult, ResourceLimits
from tests import kept_runs
from tests.kept_runs import FOLDER, keep_runs

LIMITS = ResourceLimits(seconds=60, memory_mb=512, disk_mb=256, pids=128, cpus=1, output_bytes=1000)
SCRIPT = b"pytest\n"
FIRST, SECOND = "/mergemill-0123456789abcdef", "/mergemill-fedcba9876543210"


@dataclass
class CountingSandbox:
    """Runs commands of which each writes the number of its container, and ends for the reason `killed_by`."""

    images: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    killed_by: str | None = None

    @property
    def engine(self) -> Any:
        return self

    leases = engine

    def acquire(self, image: str) -> None:
        self.used.append(image)

    record_use = acquire

    @contextlib.contextmanager
    def open_pool(self, image: str, *, limits: ResourceLimits) -> Iterator[Any]:
        del limits
        self.images.append(image)
        yield self

    def run(self, command: Sequence[str], *, collect: Sequence[str] = (), **_: object) -> ExecResult:
        self.images.append("run")
        files = dict.fromkeys(collect, str(self.images.count("run")).encode())
        return ExecResult(
            exit_code=0, output=f"end of {command[-1]}", files=files, seconds=1.0, killed_by=self.killed_by
        )


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CountingSandbox:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setattr(DockerSandbox, "open_pool", DockerSandbox.open_pool)  # restored at the end
    monkeypatch.setattr(kept_runs, "open_pool", CountingSandbox.open_pool)
    return CountingSandbox()


def run(sandbox: Any, folder: str, script: bytes = SCRIPT, settings: bytes = b"5.0 7 UTC") -> dict[str, bytes]:
    """Return what a run collects."""
    files = {f"{folder}-1/run.sh": script, f"{folder}-1/settings": settings}
    with DockerSandbox.open_pool(sandbox, "image", limits=LIMITS) as pool:
        return dict(pool.run(["bash", folder], files=files, collect=[f"{folder}-1/report"]).files)


def test_the_second_command_takes_the_results_of_the_first_in_their_order(sandbox: CountingSandbox) -> None:
    keep_runs()
    assert [run(sandbox, FIRST), run(sandbox, FIRST)] == [{f"{FIRST}-1/report": b"1"}, {f"{FIRST}-1/report": b"2"}]
    assert sandbox.used == []
    opened = list(sandbox.images)
    keep_runs()  # as another process would
    repeated = [run(sandbox, SECOND), run(sandbox, SECOND, settings=b"9.5 7 UTC")]
    assert repeated == [{f"{SECOND}-1/report": b"1"}, {f"{SECOND}-1/report": b"2"}]
    assert (sandbox.images, set(sandbox.used)) == (opened, {"image"})
    assert run(sandbox, SECOND) == {f"{SECOND}-1/report": b"3"}


def test_output_has_the_names_that_were_drawn_for_the_command(sandbox: CountingSandbox) -> None:
    for folder in (FIRST, SECOND):
        keep_runs()
        with DockerSandbox.open_pool(sandbox, "image", limits=LIMITS) as pool:  # type: ignore[arg-type]
            assert pool.run(["bash", folder]).output == f"end of {folder}"
    assert sandbox.images.count("run") == 1


def test_other_work_is_done(sandbox: CountingSandbox) -> None:
    keep_runs()
    run(sandbox, FIRST)
    keep_runs()
    assert run(sandbox, FIRST, script=b"pytest -x\n") == {f"{FIRST}-1/report": b"2"}
    assert run(sandbox, FIRST, settings=b"5.0 8 UTC") == {f"{FIRST}-1/report": b"3"}


def test_the_result_of_a_container_that_was_killed_is_not_kept(sandbox: CountingSandbox) -> None:
    sandbox.killed_by = "memory"
    keep_runs()
    run(sandbox, FIRST)
    keep_runs()
    assert run(sandbox, FIRST) == {f"{FIRST}-1/report": b"2"}
