"""Container pools of the Docker backend: fresh containers, started ahead, with files that only root can read."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import threading
import time
from dataclasses import replace

import pytest

from backends.sandbox import container_names
from backends.sandbox.docker import DockerSandbox
from backends.sandbox.execution import ResourceLimits
from core.errors import CancelledRunError, Transient

pytestmark = pytest.mark.docker

LIMITS = ResourceLimits(seconds=30, memory_mb=256, disk_mb=100, pids=64, cpus=1, output_bytes=100_000)
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
from backends.sandbox import container_names
from backends.sandbox.docker import DockerSandbox
from tests.backends.sandbox.test_pool import LIMITS
container_names._hash_host = lambda: sys.argv[2]
with DockerSandbox().open_pool(sys.argv[1], limits=LIMITS) as pool:
    print(pool.run(["cat", "/proc/sys/kernel/hostname"], collect=["/none"]).output, flush=True)
    time.sleep(60)
"""


def containers(prefix: str, *options: str) -> list[str]:
    listed = ["docker", "ps", "--filter", f"name={prefix}", "--format", "{{.Names}}", *options]
    return subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()


def mine() -> str:
    return container_names.make_container_name().rpartition("-")[0]


def test_each_command_runs_as_root_in_a_fresh_container_with_private_files(sandbox, base):
    script = 'ls -A /tmp; id -un; pwd; stat -c %a /deep/in; cat /deep/in > /tmp/out; echo "$GREETING"; echo err >&2'
    with sandbox.open_pool(base, limits=LIMITS) as pool:
        for number in range(3):
            result = pool.run(
                ["bash", "-c", f"{script}; exit {number}"],
                files={"/deep/in": b"\xff\0%d" % number},
                collect=["/tmp/out", "/none", "/tmp", "/etc/passwd/x"],
                env={"GREETING": f"a 'b'\n {number}"},
            )
            assert result.output == f"root\n/\n600\na 'b'\n {number}\nerr\n"
            assert (result.exit_code, result.killed_by) == (number, None)
            assert result.files == {"/tmp/out": b"\xff\0%d" % number}


def test_a_container_of_a_pool_has_no_network_but_resolves_its_own_name(sandbox, base):
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
    with sandbox.open_pool(base, limits=LIMITS) as pool:
        result = pool.run(["python3", "-c", probe], last=True)
    assert result.output.split() == ["127.0.0.1", "127.0.0.1", "101"]


def test_links_and_forged_archives_of_the_test_user_are_not_collected(sandbox, base):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo("report/junit.xml")
        entry.size = 6
        tar.addfile(entry, io.BytesIO(b"forged"))
    script = f"mkdir /report; ln -s /etc/shadow /report/link; {' '.join(AS_MERGEMILL)} python3 /forge.py"
    with sandbox.open_pool(base, limits=LIMITS) as pool:
        result = pool.run(
            ["bash", "-c", f"chmod 644 /forge.py /tmp/forged; {script}"],
            last=True,
            files={"/forge.py": FORGE.encode(), "/tmp/forged": packed.getvalue().hex().encode()},
            collect=["/report/junit.xml", "/report/link"],
        )
    assert "report/junit.xml" in result.output, "nothing was forged"
    assert result.files == {}


def test_the_time_limit_starts_with_the_command(sandbox, base):
    with sandbox.open_pool(base, limits=replace(LIMITS, seconds=2)) as pool:
        time.sleep(2.5)
        assert pool.run(["sleep", "0.5"]).killed_by is None
        result = pool.run(["sleep", "20"], last=True)
    assert result.killed_by == "time"
    assert 2 <= result.seconds < 5


def test_exceeding_memory_is_reported(sandbox, base):
    hog = ["python3", "-c", "bytearray(2_000_000_000)"]
    with sandbox.open_pool(base, limits=LIMITS) as pool:
        assert pool.run(hog, last=True).killed_by == "memory"


def test_files_that_are_too_large_are_not_collected(sandbox, base):
    with sandbox.open_pool(base, limits=LIMITS) as pool:
        result = pool.run(["truncate", "-s", "80M", "/tmp/large"], collect=["/tmp/large"], last=True)
    assert (result.exit_code, dict(result.files)) == (0, {})


def test_a_stopped_pool_ends_at_once_and_leaves_no_container(base):
    sandbox = DockerSandbox()
    started = time.monotonic()
    with sandbox.open_pool(base, limits=LIMITS) as pool:
        threading.Timer(1.0, sandbox.stop).start()
        with pytest.raises(CancelledRunError):
            pool.run(["sleep", "60"])
        with pytest.raises(CancelledRunError):
            pool.run(["true"])
    assert time.monotonic() - started < 8
    sandbox.flush()
    assert containers(mine(), "-a") == []


def test_a_warm_container_that_was_removed_is_transient(sandbox, base):
    with sandbox.open_pool(base, limits=LIMITS) as pool:
        pool.run(["true"])
        while not (waiting := containers(mine())):
            time.sleep(0.05)
        subprocess.run(["docker", "rm", "-f", *waiting], check=True, capture_output=True)
        with pytest.raises(Transient):
            pool.run(["true"], last=True)


def test_a_warm_container_ends_with_its_driver_and_is_reaped(sandbox, base, own_host):
    with subprocess.Popen([sys.executable, "-c", DRIVER, base, own_host], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "mergemill\n"
        name = f"{container_names.PREFIX}{own_host}.{driver.pid}."
        while not containers(name):
            time.sleep(0.05)
        driver.kill()
    for _ in range(100):
        if not containers(name):
            break
        time.sleep(0.05)
    assert containers(name) == []
    left = containers(name, "-a")
    assert sandbox.reap() == len(left) > 0
    assert containers(name, "-a") == []


def test_a_run_costs_less_than_starting_a_container(sandbox, base):
    def cost(run):
        started = time.monotonic()
        run()
        return time.monotonic() - started

    # The least of three: other work on the machine only adds to a cost.
    alone = min(cost(lambda: sandbox.run(base, ["sleep", "0.5"], limits=LIMITS)) for _ in range(3))
    with sandbox.open_pool(base, limits=LIMITS) as pool:
        pool.run(["sleep", "0.5"])
        together = min(cost(lambda: pool.run(["sleep", "0.5"])) for _ in range(3))
    assert together < alone
