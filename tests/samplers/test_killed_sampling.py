"""Driver, gateway and upstream are killed at random moments: the same rollouts, no request paid twice, none lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli import run_mergemill, start_mergemill
from tests.command_server import RunningCommand
from tests.samplers.test_sampling import read_rollouts

ATTEMPTS = 3
TURNS = [
    {"text": "Look.", "calls": [{"name": "bash", "arguments": {"command": "cat greet/*.py"}}], "delay": 0.3},
    {
        "calls": [{"name": "bash", "arguments": {"command": "sed -i \"s/split(' ')/split()/\" greet/words.py"}}],
        "delay": 0.3,
    },
    {"calls": [{"name": "bash", "arguments": {"command": "git diff"}}], "delay": 0.3},
    {"calls": [{"name": "submit", "arguments": {}}], "delay": 0.3},
]


class UpstreamProcess:
    """The scripted model as a process that can be killed and started again at the same port."""

    def __init__(self, folder: Path) -> None:
        self.paid_log = folder / "paid.jsonl"
        self.script = folder / "turns.json"
        self.script.write_text(json.dumps(TURNS))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        options = ["--port", str(self.port), "--script", str(self.script), "--paid", str(self.paid_log)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.samplers.scripted_model", *options],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout
        assert self.process.stdout.readline()

    def kill(self) -> None:
        assert self.process
        assert self.process.stdout
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def count_paid(self) -> Counter[str]:
        return Counter(json.loads(line)["key"] for line in self.paid_log.read_text().splitlines())


@contextmanager
def run_upstream(folder: Path) -> Iterator[UpstreamProcess]:
    folder.mkdir()
    upstream = UpstreamProcess(folder)
    upstream.start()
    try:
        yield upstream
    finally:
        upstream.kill()


def make_command(upstream: UpstreamProcess) -> list[str]:
    return [
        *("sample", "--scaffold", "react", "--model", "m", "--upstream", upstream.url, "--json"),
        *("--attempts", str(ATTEMPTS), "--rollout-retries", "20"),
    ]


def find_gateway(driver: RunningCommand) -> int | None:
    """Return the process of the driver's gateway."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_gateway = b"samplers.gateway" in (process / "cmdline").read_bytes()
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if is_gateway and parent == driver.pid:
            return int(process.name)
    return None


def list_results(folder: Path) -> list[tuple[str, int, float | None, int]]:
    done = [rollout for rollout in read_rollouts(folder) if rollout.status != "infrastructure"]
    return sorted((rollout.plan, rollout.attempt, rollout.value, rollout.requests) for rollout in done)


def check_kills(certified: Path, tmp_path: Path, kills: int) -> None:
    shutil.copytree(certified, tmp_path / "calm")
    shutil.copytree(certified, tmp_path / "stormy")
    with run_upstream(tmp_path / "calm-upstream") as upstream:
        done = run_mergemill(*make_command(upstream), cwd=tmp_path / "calm")
        assert done.exit_code == 0, done.stderr
        paid = upstream.count_paid()
    seed = random.randrange(1 << 32)
    moments, victims = random.Random(seed), Counter[str]()
    with run_upstream(tmp_path / "stormy-upstream") as upstream:
        while sum(victims.values()) < kills:
            if not storm(tmp_path / "stormy", upstream, moments, victims, kills):
                shutil.rmtree(tmp_path / "stormy")  # all rollouts were done before all kills: the next round
                shutil.copytree(certified, tmp_path / "stormy")
                upstream.paid_log.unlink()
        last = run_mergemill(*make_command(upstream), cwd=tmp_path / "stormy")
        assert last.exit_code == 0, (seed, last.stderr)
        stormy = upstream.count_paid()
    assert list_results(tmp_path / "stormy") == list_results(tmp_path / "calm"), (seed, victims)
    assert set(stormy.values()) == {1}, (seed, victims)
    assert len(stormy) == len(paid), (seed, victims)


def storm(folder: Path, upstream: UpstreamProcess, moments: random.Random, victims: Counter[str], kills: int) -> bool:
    """Run the driver and kill until it is dead or done, or enough was killed; return whether it is not done."""
    with start_mergemill(*make_command(upstream), cwd=folder) as driver:
        while sum(victims.values()) < kills:
            try:
                driver.wait(moments.uniform(0.5, 4))
            except subprocess.TimeoutExpired:
                victim = moments.choice(["driver", "gateway", "upstream"])
                if victim == "driver":
                    driver.kill()
                elif victim == "upstream":
                    upstream.kill()
                    time.sleep(moments.uniform(0, 1))
                    upstream.start()
                elif gateway := find_gateway(driver):
                    os.kill(gateway, signal.SIGKILL)
                else:
                    continue
                victims[victim] += 1
            else:
                return driver.returncode != 0
    return True


@pytest.mark.docker
def test_five_kills_change_no_rollout_and_cost_nothing(certified: Path, tmp_path: Path) -> None:
    check_kills(certified, tmp_path, 5)


@pytest.mark.slow
def test_twenty_kills_change_no_rollout_and_cost_nothing(certified: Path, tmp_path: Path) -> None:
    check_kills(certified, tmp_path, 20)
