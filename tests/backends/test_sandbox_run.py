"""What any sandbox promises of a run; here on the real engine."""

from __future__ import annotations

import statistics
import subprocess
import threading
import time
from dataclasses import replace

import pytest

from backends.sandbox import owner
from backends.sandbox.base import Limits
from backends.sandbox.docker import DockerSandbox
from mergemill.errors import InputError, Transient

pytestmark = pytest.mark.docker

LIMITS = Limits(seconds=30, memory_mb=256, disk_mb=100, pids=64, cpus=1, output_bytes=100_000)


def sh(sandbox: DockerSandbox, image: str, script: str, **options):
    return sandbox.run(image, ["bash", "-c", script], **{"limits": LIMITS, **options})


def test_exit_code_and_both_streams_come_back(sandbox, base):
    ran = sh(sandbox, base, "echo out; echo err >&2; exit 3")
    assert (ran.exit_code, sorted(ran.output.split()), ran.killed_by) == (3, ["err", "out"], None)


def test_files_go_in_readable_for_everybody_and_come_out(sandbox, base):
    ran = sh(
        sandbox, base, "cat /run/mergemill/deep/in > /tmp/out; printf '\\0' >> /tmp/out", user="mergemill",
        files={"/run/mergemill/deep/in": b"\xff\n"}, collect=["/tmp/out", "/tmp/none", "/tmp", "/etc/passwd/x"],
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    assert ran.files == {"/tmp/out": b"\xff\n\0"}


def test_a_file_put_into_an_existing_folder_leaves_the_folder_as_it_is(sandbox, base):
    ran = sh(sandbox, base, "stat -c '%a %U' /tmp /home/mergemill", files={"/tmp/a": b"", "/home/mergemill/b": b""})
    assert ran.output.split() == ["1777", "root", "700" if "700" in ran.output else "755", "mergemill"]


def test_a_link_to_a_file_is_not_followed_out(sandbox, base):
    assert sh(sandbox, base, "ln -s /etc/shadow /tmp/out", collect=["/tmp/out"]).files == {}


def test_the_command_sees_its_environment_and_user(sandbox, base):
    ran = sh(sandbox, base, 'echo "$GREETING"; id -un', env={"GREETING": "a 'b' $c"}, user="mergemill")
    assert ran.output == "a 'b' $c\nmergemill\n"


def test_there_is_no_network_unless_asked_for(sandbox, base):
    probe = 'ls /sys/class/net; python3 -c "import socket; print(socket.gethostbyname(socket.gethostname()))"'
    assert sh(sandbox, base, probe).output.split() == ["lo", "127.0.0.1"]
    assert "eth0" in sh(sandbox, base, probe, network=True).output.split()


def test_a_missing_command_is_a_result(sandbox, base):
    assert sandbox.run(base, ["no-such-command"], limits=LIMITS).exit_code == 127
    assert sandbox.run(base, ["/etc/passwd"], limits=LIMITS).exit_code == 126


def test_a_missing_image_is_an_input_error(sandbox):
    with pytest.raises(InputError, match="no such image"):
        sandbox.run("mergemill-test/absent:1", ["true"], limits=LIMITS)


def test_endless_work_ends_with_its_time(sandbox, base):
    ran = sh(sandbox, base, "echo begun; sleep 1000", limits=replace(LIMITS, seconds=1.5))
    assert (ran.killed_by, ran.exit_code, ran.output) == ("time", 137, "begun\n")
    assert ran.seconds < 10


def test_work_that_closed_its_output_still_ends_with_its_time(sandbox, base):
    ran = sh(sandbox, base, "exec >&- 2>&-; sleep 1000", limits=replace(LIMITS, seconds=1.5))
    assert ran.killed_by == "time"


def test_a_memory_hog_is_killed_even_when_its_parent_goes_on(sandbox, base):
    hog = "python3 -c 'x = bytearray(10**9)'"
    assert sh(sandbox, base, f"exec {hog}").killed_by == "memory"
    survived = sh(sandbox, base, f"{hog}; echo went on")
    assert (survived.killed_by, survived.exit_code) == ("memory", 0)


def test_a_fork_bomb_cannot_grow_and_ends_with_its_time(sandbox, base):
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    ran = sandbox.run(base, ["python3", "-c", bomb], limits=replace(LIMITS, seconds=2))
    assert ran.killed_by == "time"
    assert ran.seconds < 20


@pytest.mark.parametrize(
    "filler",
    [
        "i=0; while :; do i=$((i+1)); head -c 20000000 /dev/zero > /tmp/f$i; done",
        "sleep 1.1; head -c 500000000 /dev/zero > /tmp/one",
    ],
    ids=["many files", "one file"],
)
def test_a_disk_filler_is_stopped_soon(sandbox, base, filler):
    ran = sh(sandbox, base, filler)
    assert ran.killed_by == "disk"
    assert ran.exit_code != 0


def test_of_a_gigabyte_of_output_head_and_tail_are_kept(sandbox, base):
    ran = sh(sandbox, base, "echo first; head -c 1000000000 /dev/zero; echo last")
    assert ran.exit_code == 0
    assert ran.output.startswith("first\n\0")
    assert ran.output.endswith("\0last\n")
    assert 99_000 < len(ran.output) < 101_000


def test_a_box_that_removes_everything_is_a_result(sandbox, base):
    ran = sh(sandbox, base, "rm -rf /usr /bin /lib* /etc 2>/dev/null; echo gone", collect=["/etc/passwd", "/gone/x"])
    assert (ran.output, dict(ran.files)) == ("gone\n", {})


def test_nothing_of_one_box_is_in_the_next(sandbox, base):
    sh(sandbox, base, "echo x > /tmp/left")
    assert sh(sandbox, base, "ls /tmp").output == ""


def test_a_box_killed_from_outside_is_a_result_and_a_removed_one_is_transient(sandbox, base):
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


def test_two_workers_share_one_sandbox(sandbox, base):
    results = {}

    def work(number):
        results[number] = [sh(sandbox, base, f"echo {number}").output for _ in range(3)]

    workers = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == {0: ["0\n"] * 3, 1: ["1\n"] * 3}


def test_a_run_costs_less_than_a_second_and_leaves_no_container(sandbox, base):
    costs = []
    for _ in range(5):
        started = time.monotonic()
        sandbox.run(base, ["true"], limits=LIMITS)
        costs.append(time.monotonic() - started)
    assert statistics.median(costs) < 1
    sandbox.flush()
    mine = f"name={owner.new_name().rpartition('-')[0]}"
    left = subprocess.run(["docker", "ps", "-aq", "--filter", mine], capture_output=True, text=True, check=True)
    assert left.stdout == ""
