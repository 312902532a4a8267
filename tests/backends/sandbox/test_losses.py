"""Containers that are ended from outside are lost; what a command does to its own container is its result."""

from __future__ import annotations

import subprocess
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from backends.sandbox import archive
from backends.sandbox.docker import DockerSandbox
from backends.sandbox.execution import ContainerLossError
from backends.sandbox.kubernetes.pod import _find_kill_reason
from backends.sandbox.kubernetes.script import parse_report
from backends.sandbox.pool import END_MARK, WarmContainer, WarmContainerPool
from benchmarks.losses import KILL_METHODS
from tests.backends.sandbox.test_pool import AS_MERGEMILL, LIMITS

pytestmark = pytest.mark.docker

MARK = "sleep 61"
"""Process whose start shows that the container has come so far."""
STUCK_TAR = f"""
echo content > /report
mv /bin/tar /bin/real-tar
printf '#!/bin/bash\\n/bin/real-tar "$@" | head -c 700; exec {MARK}\\n' > /bin/tar
chmod 755 /bin/tar
"""
"""Has the container hang while its files are returned, half of which the host already has."""
PHASES = {
    "while it runs": MARK,
    "while a process of the tests runs": f"{' '.join(AS_MERGEMILL)} {MARK}; exit 1",
    "while it returns files": STUCK_TAR,
}


def find_warm(pool: WarmContainerPool) -> WarmContainer:
    """Return the container that waits for the pool's next command."""
    assert pool._next is not None
    container = pool._next.result()
    assert isinstance(container, WarmContainer)
    return container


def end_when_it_runs(warm: WarmContainer, *method: str) -> threading.Thread:
    """End a container from outside once MARK runs in it."""

    def end() -> None:
        top = ["docker", "top", warm.id, "-o", "pid,args"]
        while MARK not in subprocess.run(top, capture_output=True, text=True, check=True).stdout:
            time.sleep(0.05)
        subprocess.run([*method, warm.id], capture_output=True, check=True)

    thread = threading.Thread(target=end)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("phase", "method"),
    [
        *((phase, method) for phase in PHASES for method in KILL_METHODS),
        ("while it runs", ("docker", "stop", "-t", "1")),
    ],
)
def test_a_container_that_is_ended_from_outside_is_lost(
    sandbox: DockerSandbox, base: str, phase: str, method: tuple[str, ...]
) -> None:
    with sandbox.open_pool(base, limits=LIMITS) as pool:
        thread = end_when_it_runs(find_warm(pool), *method)
        with pytest.raises(ContainerLossError):
            pool.run(["bash", "-c", PHASES[phase]], collect=["/report"], last=True)
        thread.join()


@pytest.mark.parametrize("method", KILL_METHODS, ids=" ".join)
def test_a_container_that_is_ended_before_its_command_is_lost(
    sandbox: DockerSandbox, base: str, method: tuple[str, ...]
) -> None:
    with sandbox.open_pool(base, limits=LIMITS) as pool:
        subprocess.run([*method, find_warm(pool).id], capture_output=True, check=True)
        with pytest.raises(ContainerLossError):
            pool.run(["true"], last=True)


FORK_BOMB = f"{' '.join(AS_MERGEMILL)} bash -c 'for i in $(seq 200); do sleep 60 & done' 2>/dev/null"
MANY_HOGS = """
import os, time
for _ in range(40):
    if os.fork() == 0:
        data = bytearray(20_000_000)
        time.sleep(60)
time.sleep(60)
"""
OWN_ENDS = {
    "the exit code of a killed program": ("exit 137", None, 137),
    "a program that kills itself": ("bash -c 'kill -KILL $$'", None, 137),
    "root kills all other processes": ("kill -KILL -1; exit 3", None, None),
    "the tests' user kills all it can": (f"{' '.join(AS_MERGEMILL)} bash -c 'kill -KILL -1'; exit 3", None, 3),
    "the first process gets every signal": ("for n in $(seq 31); do kill -$n 1; done; exit 3", None, 3),
    "no further process can be started": (f"{FORK_BOMB}; exit 3", None, None),
    "too much memory": ("python3 -c 'bytearray(2_000_000_000)'; exit 3", "memory", 3),
    "too much memory by many small processes": (
        f"{' '.join(AS_MERGEMILL)} timeout 4 python3 -c '{MANY_HOGS}'; exit 3",
        "memory",
        None,
    ),
}
"""Description -> script, the limit that ends it, and its exit code; None where that depends on the moment."""


@pytest.mark.parametrize("name", OWN_ENDS)
def test_what_a_command_does_to_its_own_container_is_its_result(sandbox: DockerSandbox, base: str, name: str) -> None:
    script, killed_by, exit_code = OWN_ENDS[name]
    with sandbox.open_pool(base, limits=LIMITS) as pool:
        result = pool.run(["bash", "-c", f"echo content > /report; {script}"], collect=["/report"], last=True)
    assert result.killed_by == killed_by, result
    assert exit_code is None or result.exit_code == exit_code, result


def test_files_beyond_the_disk_limit_are_the_callers_doing(sandbox: DockerSandbox, base: str) -> None:
    limits = replace(LIMITS, disk_mb=2)
    with sandbox.open_pool(base, limits=limits) as pool:
        result = pool.run(["true"], files={"/large": bytes(4_000_000)}, last=True)
    assert (result.killed_by, result.exit_code) == ("disk", 137)


def test_a_session_whose_container_is_killed_from_outside_is_lost(base: str) -> None:
    sandbox = DockerSandbox()
    with sandbox.open_session(base, limits=LIMITS) as shell:
        assert shell.run("echo 1 > /tmp/a", seconds=10).exit_code == 0
        container = shell._container
        assert container is not None
        subprocess.run(["docker", "kill", container.id], capture_output=True, check=True)
        with pytest.raises(ContainerLossError):
            shell.run("cat /tmp/a", seconds=10)


def test_a_session_whose_command_ends_its_container_is_not_lost(base: str) -> None:
    with DockerSandbox().open_session(base, limits=LIMITS) as shell:
        shell.run("kill -KILL -1", seconds=10)
        assert shell.run("true", seconds=10).killed_by == "time"
        assert shell.run("true", seconds=10).exit_code == 0


def test_a_session_whose_engine_has_not_yet_seen_the_end_of_the_container_is_not_lost(
    base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DockerSandbox().open_session(base, limits=LIMITS) as shell:
        shell.run("true", seconds=10)
        container = shell._container
        assert container is not None
        client, is_running, answers = container.client, container.is_running, iter([True, True])
        with monkeypatch.context() as patch:
            patch.setattr(client, "exec_create", lambda *_, create=client.exec_create, **__: create(container.id, "/a"))
            patch.setattr(container, "is_running", lambda: next(answers, False) and is_running())
            assert shell.run("true", seconds=10).killed_by == "time"
        assert shell.run("true", seconds=10).exit_code == 0


def test_a_session_that_is_killed_as_its_command_begins_is_lost(base: str) -> None:
    with DockerSandbox().open_session(base, limits=LIMITS) as shell:
        container = shell._start_container()
        follow = shell._follow

        def end_and_follow(*arguments: Any) -> Any:
            subprocess.run(["docker", "kill", container.id], capture_output=True, check=True)
            return follow(*arguments)

        shell._follow = end_and_follow  # type: ignore[method-assign]
        with pytest.raises(ContainerLossError):
            shell.run("true", seconds=10)


@pytest.mark.parametrize(
    ("status", "killed_by"),
    [
        ({"reason": "Evicted", "message": "ephemeral local storage usage exceeds"}, "disk"),
        ({"reason": "DeadlineExceeded"}, "time"),
        ({"ended": {"exitCode": 137, "reason": "OOMKilled"}}, "memory"),
        ({"ended": {"exitCode": 143, "reason": "Error"}}, None),
    ],
)
def test_a_pod_that_its_command_or_a_limit_ended_is_not_lost(status: dict[str, Any], killed_by: str | None) -> None:
    assert _find_kill_reason(make_pod_status(**status)) == killed_by


def test_a_pod_whose_first_process_was_killed_is_lost() -> None:
    with pytest.raises(ContainerLossError):
        _find_kill_reason(make_pod_status(ended={"exitCode": 137, "reason": "Error"}))


def make_pod_status(**fields: Any) -> dict[str, Any]:
    """Return the status of a pod that has ended, as the API server describes it."""
    ended = fields.pop("ended", {"exitCode": 137, "reason": "Error"})
    return {"phase": "Failed", **fields, "containerStatuses": [{"name": "main", "state": {"terminated": ended}}]}


def test_a_report_of_a_pod_that_breaks_off_is_no_report() -> None:
    tar = archive.build_tar({"/report": b"content"})
    complete = b"1 0\n" + tar + END_MARK
    report = parse_report(complete, ["/report"])
    assert report is not None
    assert (report.exit_code, report.files) == (1, {"/report": b"content"})
    assert [parse_report(complete[:size], ["/report"]) for size in (4, 600, len(complete) - 1)] == [None, None, None]
