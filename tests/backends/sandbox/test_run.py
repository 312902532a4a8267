"""Commands in containers of the Docker backend: limits, users, network and clean-up."""

from __future__ import annotations

import statistics
import subprocess
import threading
import time
from dataclasses import replace

import pytest

from backends.sandbox import container_names
from backends.sandbox.container import Container
from backends.sandbox.docker import DockerSandbox
from backends.sandbox.execution import ResourceLimits
from core.errors import Transient

pytestmark = pytest.mark.docker

LIMITS = ResourceLimits(seconds=30, memory_mb=256, disk_mb=100, pids=64, cpus=1, output_bytes=100_000)


def sh(sandbox: DockerSandbox, image: str, script: str, **options):
    return sandbox.run(image, ["bash", "-c", script], **{"limits": LIMITS, **options})


def test_files_are_readable_by_all_users_and_collected(sandbox, base):
    result = sh(
        sandbox,
        base,
        "cat /run/mergemill/deep/in > /tmp/out; printf '\\0' >> /tmp/out",
        user="mergemill",
        files={"/run/mergemill/deep/in": b"\xff\n"},
        collect=["/tmp/out", "/tmp/none", "/tmp", "/etc/passwd/x"],
    )
    assert result.exit_code == 0, result.output
    assert result.files == {"/tmp/out": b"\xff\n\0"}


def test_a_file_put_into_an_existing_folder_leaves_the_folder_as_it_is(sandbox, base):
    result = sh(sandbox, base, "stat -c '%a %U' /tmp /home/mergemill", files={"/tmp/a": b"", "/home/mergemill/b": b""})
    assert result.output.split() == ["1777", "root", "700" if "700" in result.output else "755", "mergemill"]


def test_a_command_has_the_given_environment_and_user(sandbox, base):
    result = sh(sandbox, base, 'echo "$GREETING"; id -un', env={"GREETING": "a 'b' $c"}, user="mergemill")
    assert result.output == "a 'b' $c\nmergemill\n"


def test_a_container_has_no_network_by_default(sandbox, base):
    probe = 'ls /sys/class/net; python3 -c "import socket; print(socket.gethostbyname(socket.gethostname()))"'
    assert sh(sandbox, base, probe).output.split() == ["lo", "127.0.0.1"]
    assert "eth0" in sh(sandbox, base, probe, network=True).output.split()


def test_exceeding_memory_is_reported_even_when_the_parent_survives(sandbox, base):
    hog = "python3 -c 'x = bytearray(10**9)'"
    assert sh(sandbox, base, f"exec {hog}").killed_by == "memory"
    survived = sh(sandbox, base, f"{hog}; echo went on")
    assert (survived.killed_by, survived.exit_code) == ("memory", 0)


def test_half_of_the_memory_is_the_size_of_shm_and_its_files_count_as_memory(sandbox, base):
    assert sh(sandbox, base, "df --output=size -BM /dev/shm | tail -1").output.strip() == "128M"
    hog = "for n in 1 2; do head -c 60000000 /dev/zero > /dev/shm/$n; done; exec python3 -c 'x = bytearray(2 * 10**8)'"
    assert sh(sandbox, base, hog).killed_by == "memory"


def test_memory_that_ran_out_is_reported_where_the_engine_reports_the_end_first(sandbox, base, monkeypatch):
    answers = iter([False, False])
    has_lacked_memory = Container.has_lacked_memory
    monkeypatch.setattr(Container, "has_lacked_memory", lambda self: next(answers, True) and has_lacked_memory(self))
    assert sh(sandbox, base, "exec python3 -c 'x = bytearray(10**9)'").killed_by == "memory"
    assert sh(sandbox, base, "exit 137").killed_by is None


def test_a_fork_bomb_is_limited_and_ends_with_its_time(sandbox, base):
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    result = sandbox.run(base, ["python3", "-c", bomb], limits=replace(LIMITS, seconds=2))
    assert result.killed_by == "time"
    assert result.seconds < 20


@pytest.mark.parametrize(
    "filler",
    [
        "i=0; while :; do i=$((i+1)); head -c 20000000 /dev/zero > /tmp/f$i; done",
        "sleep 1.1; head -c 500000000 /dev/zero > /tmp/one",
    ],
    ids=["many files", "one file"],
)
def test_a_command_that_fills_the_disk_is_killed(sandbox, base, filler):
    result = sh(sandbox, base, filler)
    assert result.killed_by == "disk"
    assert result.exit_code != 0


def test_much_output_is_reduced_to_head_and_tail(sandbox, base):
    result = sh(sandbox, base, "echo first; head -c 200000000 /dev/zero; echo last")
    assert result.exit_code == 0
    assert result.output.startswith("first\n\0")
    assert result.output.endswith("\0last\n")
    assert 99_000 < len(result.output) < 101_000


def test_a_command_that_removes_all_files_is_a_result(sandbox, base):
    result = sh(sandbox, base, "rm -rf /usr /bin /lib* /etc 2>/dev/null; echo gone", collect=["/etc/passwd", "/gone/x"])
    assert (result.output, dict(result.files)) == ("gone\n", {})


def test_a_container_killed_from_outside_is_a_result_and_a_removed_one_is_transient(sandbox, base):
    assert _meanwhile(sandbox, base, "kill").exit_code == 137
    with pytest.raises(Transient):
        _meanwhile(sandbox, base, "rm", "-f")


def _meanwhile(sandbox, base, *command):
    """Run a long sleep and, when it runs, `docker COMMAND` on it."""
    mark = f"sleep 30.{time.monotonic_ns()}"

    def act():
        for _ in range(100):
            seen = subprocess.run(["docker", "ps", "-q", "--no-trunc"], capture_output=True, text=True, check=True)
            for container in seen.stdout.split():
                shown = subprocess.run(["docker", "inspect", container], capture_output=True, text=True, check=False)
                if mark in shown.stdout:
                    subprocess.run(["docker", *command, container], capture_output=True, check=True)
                    return
            time.sleep(0.05)

    other = threading.Thread(target=act)
    other.start()
    try:
        return sh(sandbox, base, f"exec {mark}")
    finally:
        other.join()


def test_a_run_costs_less_than_a_second_and_leaves_no_container(sandbox, base):
    costs = []
    for _ in range(5):
        started = time.monotonic()
        sandbox.run(base, ["true"], limits=LIMITS)
        costs.append(time.monotonic() - started)
    assert statistics.median(costs) < 1
    sandbox.flush()
    mine = f"name={container_names.make_container_name().rpartition('-')[0]}"
    left = subprocess.run(["docker", "ps", "-aq", "--filter", mine], capture_output=True, text=True, check=True)
    assert left.stdout == ""
