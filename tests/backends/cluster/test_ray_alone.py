"""Clusters without nodes, addresses without a cluster, a cluster of this machine: no other head may run meanwhile."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.backends.cluster.drivers import DRIVER, run_driver
from tests.ray_nodes import QUICK, find_port, start_ray_nodes

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]


def test_a_cluster_without_engines_is_an_error(tmp_path: Path) -> None:
    with start_ray_nodes() as bare:
        result = run_driver(bare.url, tmp_path, QUICK)
        assert "no node of the cluster has the resource 'docker'" in result
        without_token = {name: value for name, value in QUICK.items() if name != "RAY_AUTH_TOKEN"}
        result = run_driver(bare.url, tmp_path, without_token | {"RAY_AUTH_TOKEN": "f" * 32})
        assert f"MachineError: no Ray cluster answers at {bare.url}" in result


def test_an_address_where_nothing_answers_is_an_error(tmp_path: Path) -> None:
    result = run_driver(f"ray://127.0.0.1:{find_port()}", tmp_path, QUICK)
    assert "no Ray cluster answers" in result
    assert "Connection refused" in result


def test_a_head_that_has_just_been_started_is_waited_for() -> None:
    check = "import sys; from backends.cluster.ray_cluster.connection import require_port; print(flush=True)"
    with socket.socket() as head:
        head.bind(("127.0.0.1", 0))
        command = [sys.executable, "-c", f"{check}; require_port(sys.argv[1])"]
        url = f"ray://127.0.0.1:{head.getsockname()[1]}"
        with subprocess.Popen([*command, url], stdout=subprocess.PIPE) as driver:
            assert driver.stdout
            driver.stdout.readline()
            time.sleep(1)
            assert driver.poll() is None
            head.listen()
        assert driver.returncode == 0


def test_a_cluster_of_this_machine_is_started_and_ended(tmp_path: Path) -> None:
    result = run_driver_locally(tmp_path)
    assert len(set(result)) == 2


# In a process of its own: Ray reads the environment, which the tests of a cluster set, when it is imported.
NO_RECORDS = """
import sys
from pathlib import Path
from backends.cluster.nodes import WorkerNeeds
from backends.cluster.ray_cluster.cluster import RayCluster
from tests.backends.cluster.functions import VERSION, make_functions, work
needs = WorkerNeeds(cpus=1, memory_bytes=100 << 20, workers=1)
functions = make_functions(Path(sys.argv[1]))
with RayCluster(address=None, needs=needs, functions=functions, version=VERSION, notify=print) as cluster:
    print(list(cluster.map(work, [])), sys.modules["ray"].is_initialized())
"""


def test_a_cluster_of_this_machine_is_not_started_for_no_records(tmp_path: Path) -> None:
    command = [sys.executable, "-c", NO_RECORDS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "[] False\n"), done.stderr


def run_driver_locally(folder: Path) -> list[str]:
    script = DRIVER.replace("address=url", "address=None").replace("100 << 20)", "100 << 20, workers=2)")
    command = [sys.executable, "-c", script, "", str(folder), "0.1"]
    env = {**os.environ, "RAY_AUTH_MODE": "disabled"}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout.split()
