"""What runs one after the other promise: each in a box of its own, made ready before, and nobody's but root's files."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import threading
import time
from dataclasses import replace

import pytest

from backends.sandbox import owner
from backends.sandbox.base import Limits
from backends.sandbox.docker import DockerSandbox
from mergemill.errors import InputError, Stopped, Transient

pytestmark = pytest.mark.docker

LIMITS = Limits(seconds=30, memory_mb=256, disk_mb=100, pids=64, cpus=1, output_bytes=100_000)
AS_MERGEMILL = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"]
FORGE = """
import glob, os
forged = bytes.fromhex(open("/tmp/forged").read())
for path in ["/dev/stdout", "/dev/console", *glob.glob("/proc/[0-9]*/fd/*")]:
    try:
        os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), forged)
    except OSError:
        pass
for number in range(64):
    try:
        os.write(number, forged)
    except OSError:
        pass
"""
DRIVER = """
import sys, time
from backends.sandbox.docker import DockerSandbox
from tests.backends.test_sandbox_series import LIMITS
with DockerSandbox().series(sys.argv[1], limits=LIMITS) as boxes:
    print(boxes.run(["cat", "/proc/sys/kernel/hostname"], collect=["/none"]).output, flush=True)
    time.sleep(60)
"""


def containers(prefix: str, *options: str) -> list[str]:
    listed = ["docker", "ps", "--filter", f"name={prefix}", "--format", "{{.Names}}", *options]
    return subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()


def mine() -> str:
    return owner.new_name().rpartition("-")[0]


def test_each_run_has_a_fresh_box_its_files_and_its_environment(sandbox, base):
    script = 'ls -A /tmp; id -un; pwd; stat -c %a /deep/in; cat /deep/in > /tmp/out; echo "$GREETING"; echo err >&2'
    with sandbox.series(base, limits=LIMITS) as boxes:
        for number in range(3):
            ran = boxes.run(
                ["bash", "-c", f"{script}; exit {number}"], files={"/deep/in": b"\xff\0%d" % number},
                collect=["/tmp/out", "/none", "/tmp", "/etc/passwd/x"], env={"GREETING": f"a 'b'\n {number}"},
            )  # fmt: skip
            assert ran.output == f"root\n/\n600\na 'b'\n {number}\nerr\n"
            assert (ran.exit_code, ran.killed_by) == (number, None)
            assert ran.files == {"/tmp/out": b"\xff\0%d" % number}


def test_a_box_of_a_series_has_no_network_but_knows_itself(sandbox, base):
    probe = """
import socket
for name in ("localhost", socket.gethostname()):
    print(socket.gethostbyname(name))
served = socket.create_server(("localhost", 0))
socket.create_connection(served.getsockname())
try:
    socket.create_connection(("192.0.2.1", 80), 5)
except OSError as error:
    print(error.errno)
"""
    with sandbox.series(base, limits=LIMITS) as boxes:
        ran = boxes.run(["python3", "-c", probe], last=True)
    assert ran.output.split() == ["127.0.0.1", "127.0.0.1", "101"]


def test_a_link_and_what_a_tests_user_writes_anywhere_are_no_results(sandbox, base):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo("report/junit.xml")
        entry.size = 6
        tar.addfile(entry, io.BytesIO(b"forged"))
    script = f"mkdir /report; ln -s /etc/shadow /report/link; {' '.join(AS_MERGEMILL)} python3 /forge.py"
    with sandbox.series(base, limits=LIMITS) as boxes:
        ran = boxes.run(
            ["bash", "-c", f"chmod 644 /forge.py /tmp/forged; {script}"], last=True,
            files={"/forge.py": FORGE.encode(), "/tmp/forged": packed.getvalue().hex().encode()},
            collect=["/report/junit.xml", "/report/link"],
        )  # fmt: skip
    assert "report/junit.xml" in ran.output, "nothing was forged"
    assert ran.files == {}


def test_a_time_limit_counts_from_the_run_and_not_from_the_waiting(sandbox, base):
    with sandbox.series(base, limits=replace(LIMITS, seconds=2)) as boxes:
        time.sleep(2.5)
        assert boxes.run(["sleep", "0.5"]).killed_by is None
        ran = boxes.run(["sleep", "20"], last=True)
    assert ran.killed_by == "time"
    assert 2 <= ran.seconds < 5


def test_a_memory_hog_is_named(sandbox, base):
    hog = ["python3", "-c", "bytearray(2_000_000_000)"]
    with sandbox.series(base, limits=LIMITS) as boxes:
        assert boxes.run(hog, last=True).killed_by == "memory"


def test_results_beyond_all_measure_are_none(sandbox, base):
    with sandbox.series(base, limits=LIMITS) as boxes:
        ran = boxes.run(["truncate", "-s", "80M", "/tmp/large"], collect=["/tmp/large"], last=True)
    assert (ran.exit_code, dict(ran.files)) == (0, {})


def test_a_missing_image_is_an_input_error(sandbox):
    with sandbox.series("mergemill-test/absent:1", limits=LIMITS) as boxes, pytest.raises(InputError):
        boxes.run(["true"])


def test_a_stopped_series_ends_at_once_and_leaves_nothing(base):
    sandbox = DockerSandbox()
    started = time.monotonic()
    with sandbox.series(base, limits=LIMITS) as boxes:
        threading.Timer(1.0, sandbox.stop).start()
        with pytest.raises(Stopped):
            boxes.run(["sleep", "60"])
        with pytest.raises(Stopped):
            boxes.run(["true"])
    assert time.monotonic() - started < 8
    sandbox.flush()
    assert containers(mine(), "-a") == []


def test_a_box_that_somebody_removed_while_it_waited_is_transient(sandbox, base):
    with sandbox.series(base, limits=LIMITS) as boxes:
        boxes.run(["true"])
        while not (waiting := containers(mine())):
            time.sleep(0.05)
        subprocess.run(["docker", "rm", "-f", *waiting], check=True, capture_output=True)
        with pytest.raises(Transient):
            boxes.run(["true"], last=True)


def test_a_waiting_box_ends_when_its_driver_is_killed_and_is_reaped(sandbox, base):
    with subprocess.Popen([sys.executable, "-c", DRIVER, base], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "mergemill\n"
        name = owner.new_name().partition(".")[0] + f".{driver.pid}."
        while not containers(name):
            time.sleep(0.05)
        driver.kill()
    for _ in range(100):
        if not containers(name):
            break
        time.sleep(0.05)
    assert containers(name) == []
    assert sandbox.reap() >= 1
    assert containers(name, "-a") == []


def test_a_run_costs_less_than_starting_a_container(sandbox, base):
    def cost(run):
        started = time.monotonic()
        run()
        return time.monotonic() - started

    alone = sorted(cost(lambda: sandbox.run(base, ["sleep", "0.5"], limits=LIMITS)) for _ in range(3))
    with sandbox.series(base, limits=LIMITS) as boxes:
        boxes.run(["sleep", "0.5"])
        together = sorted(cost(lambda: boxes.run(["sleep", "0.5"])) for _ in range(3))
    assert together[1] < alone[1]
