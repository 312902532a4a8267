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

from taskdb.records.rollouts import Rollout
from tests.cli import run_mergemill, start_mergemill
from tests.command_server import NEW_GATEWAYS, RunningCommand
from tests.samplers.test_sampling import read_rollouts

PROCESSES = ("driver", "gateway", "upstream")
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


def make_command(upstream: UpstreamProcess, attempts: int, kind: str) -> list[str]:
    return [
        *("sample", "--scaffold", "react", "--model", "m", "--upstream", upstream.url, "--json"),
        *("--attempts", str(attempts), "--rollout-retries", "20", "--kind", kind),
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


def list_results(folder: Path) -> list[tuple[str, int, float | None, int, str]]:
    """Return plan, attempt, value, number of requests and verdicts of each rollout that is done."""
    done = [rollout for rollout in read_rollouts(folder) if rollout.status != "infrastructure"]
    return sorted(
        (rollout.plan, rollout.attempt, rollout.value, rollout.requests, write_verdicts(rollout)) for rollout in done
    )


def write_verdicts(rollout: Rollout) -> str:
    """Return the verdicts on the instructions of a rollout's task; none for tasks of other kinds."""
    return json.dumps(rollout.score.verdicts if rollout.score else {}, sort_keys=True)


def check_kills(certified: Path, tmp_path: Path, kills: int, attempts: int, kind: str = "bugfix") -> None:
    """Compare a calm run with one in which each process is killed as often as the others, `kills` times in all."""
    shutil.copytree(certified, tmp_path / "calm")
    shutil.copytree(certified, tmp_path / "stormy")
    with run_upstream(tmp_path / "calm-upstream") as upstream:
        done = run_mergemill(*make_command(upstream, attempts, kind), cwd=tmp_path / "calm")
        assert done.exit_code == 0, done.stderr
        paid = upstream.count_paid()
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    victims = [victim for _ in range(kills) for victim in moments.sample(PROCESSES, len(PROCESSES))][:kills]
    with run_upstream(tmp_path / "stormy-upstream") as upstream:
        command = make_command(upstream, attempts, kind)
        while victims:
            if not storm(tmp_path / "stormy", upstream, command, moments, victims):
                shutil.rmtree(tmp_path / "stormy")  # all rollouts were done before all kills: the next round
                shutil.copytree(certified, tmp_path / "stormy")
                upstream.paid_log.unlink()
        last = run_mergemill(*command, cwd=tmp_path / "stormy")
        assert last.exit_code == 0, (seed, last.stderr)
        stormy = upstream.count_paid()
    assert list_results(tmp_path / "stormy") == list_results(tmp_path / "calm"), seed
    assert set(stormy.values()) == {1}, seed
    assert len(stormy) == len(paid), seed


def storm(
    folder: Path, upstream: UpstreamProcess, command: list[str], moments: random.Random, victims: list[str]
) -> bool:
    """Run the driver and kill victims until it is dead or done, or none is left; return whether it is not done."""
    with start_mergemill(*command, cwd=folder, **{NEW_GATEWAYS: "yes"}) as driver:
        while victims:
            try:
                driver.wait(moments.uniform(0.5, 4))
            except subprocess.TimeoutExpired:
                if kill(victims[0], driver, upstream, moments):
                    victims.pop(0)
            else:
                return driver.returncode != 0
    return True


def kill(victim: str, driver: RunningCommand, upstream: UpstreamProcess, moments: random.Random) -> bool:
    """Kill a process; return whether it was there."""
    if victim == "driver":
        driver.kill()
    elif victim == "upstream":
        upstream.kill()
        time.sleep(moments.uniform(0, 1))
        upstream.start()
    elif gateway := find_gateway(driver):
        os.kill(gateway, signal.SIGKILL)
    else:
        return False
    return True


@pytest.mark.docker
def test_a_kill_of_each_process_changes_no_rollout_and_costs_nothing(certified: Path, tmp_path: Path) -> None:
    check_kills(certified, tmp_path, 3, attempts=2)


@pytest.mark.slow
def test_twenty_kills_change_no_rollout_and_cost_nothing(certified: Path, tmp_path: Path) -> None:
    check_kills(certified, tmp_path, 20, attempts=3)
