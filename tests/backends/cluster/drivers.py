"""Drivers in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DRIVER = """
import sys, time
from functools import partial
from pathlib import Path
from backends.cluster.nodes import WorkerNeeds
from backends.cluster.ray_cluster.cluster import RayCluster
from core.errors import MachineError
from tests.backends.cluster.functions import *

url, folder = sys.argv[1], Path(sys.argv[2])
needs = WorkerNeeds(cpus=1, memory_bytes=100 << 20)
try:
    with RayCluster(
        address=url, needs=needs, functions=make_functions(folder), version=VERSION, notify=print
    ) as cluster:
        for result in cluster.map(partial(work, seconds=float(sys.argv[3])), range(8)):
            print(result.pid, flush=True)
except MachineError as error:
    print(f"MachineError: {error} ({error.advice})")
"""


def run_driver(url: str, folder: Path, env: dict[str, str]) -> str:
    command = [sys.executable, "-c", DRIVER, url, str(folder), "0"]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, check=True).stdout
