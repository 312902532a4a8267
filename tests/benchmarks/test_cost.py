"""The benchmark of what a certified task costs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import docker
import pytest

from benchmarks import cost
from benchmarks.cost import STAGES, PhaseCost, Usage, UsageLog, render_table, run_phase
from benchmarks.isolated_engine import ControlGroup, start_engine
from benchmarks.run_meter import meter_tests
from tests.sample import make_sample

BASES = ("python3.11-*",)
"""Base image that the sample needs: a machine may have twenty others, and copying them takes minutes."""


def make_phase(cpu: float, wall: float) -> PhaseCost:
    stages = {"mine": Usage(1, 1, 0, 0), "verify": Usage(cpu - 1, wall - 1, 2e9, 40)}
    return PhaseCost("warm", stages, tasks=2)


@pytest.mark.parametrize(
    ("files", "seconds"),
    [
        ({"cpuacct/group/cpuacct.usage": "2500000000\n"}, 2.5),
        ({"cgroup.controllers": "cpu\n", "group/cpu.stat": "usage_usec 3500000\nuser_usec 3000000\n"}, 3.5),
    ],
    ids=["version 1", "version 2"],
)
def test_cpu_seconds_are_read_from_control_groups(tmp_path: Path, files: dict[str, str], seconds: float) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert ControlGroup("group", tmp_path).read_cpu_seconds() == seconds


def test_costs_are_per_task_and_decide_by_either_goal() -> None:
    cheap = make_phase(cpu=160, wall=100)
    assert cheap.cpu_beyond_tests == 60
    assert not cheap.misses_goal(0.04, 2)
    assert make_phase(cpu=162, wall=100).misses_goal(0.04, 2)
    assert make_phase(cpu=160, wall=1000).misses_goal(0.04, 2)
    assert render_table([cheap], 0.036, 2).splitlines()[2:] == [
        "| warm | mine | 0.5 | 0.0 | 0.5 | 0.000 | 0.00001 | 0.00000 |",
        "| warm | verify | 79.5 | 20.0 | 49.5 | 1.000 | 0.00099 | 0.00079 |",
        "| warm | all, 2 tasks | 80.0 | 20.0 | 50.0 | 1.000 | 0.00100 | 0.00080 |",
        "| warm | beyond the tests | 60.0 | | | | | |",
    ]


def measure(log: UsageLog, name: str, cpu: list[float], disk: list[float], *, fails: bool = False) -> None:
    """Measure a stage that uses the CPU and disk from the first to the last of some values."""
    values = iter(disk)
    with (
        suppress(KeyboardInterrupt),
        log.measure(name, lambda: cpu[0] if len(cpu) == 1 else cpu.pop(0), lambda: cpu[0] / 4, values.__next__),
    ):
        if fails:
            raise KeyboardInterrupt


def test_an_interrupted_stage_goes_on_with_what_it_has_used(tmp_path: Path) -> None:
    path, pipeline = tmp_path / "usage.json", ["git:greet", "--limit", "10"]
    measure(UsageLog.open(path, pipeline), "cold build", [5, 5, 9], [100, 150], fails=True)
    log = UsageLog.open(path, pipeline)
    assert (log.stages["cold build"].cpu_seconds, log.stages["cold build"].disk_bytes) == (4, 50)
    assert log.stages["cold build"].test_cpu_seconds == 1
    measure(log, "cold build", [20, 20, 23], [180])
    again = UsageLog.open(path, pipeline)
    assert (again.stages["cold build"].cpu_seconds, again.stages["cold build"].disk_bytes) == (7, 80)
    with pytest.raises(SystemExit, match="other sources or settings"):
        UsageLog.open(path, ["git:greet", "--limit", "11"])


def test_a_killed_stage_loses_no_more_than_what_was_used_since_the_last_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "SAVE_SECONDS", 0.01)
    path, used = tmp_path / "usage.json", [1.0]
    log = UsageLog.open(path, [])
    with log.measure("cold build", lambda: used[0], lambda: 0.0, lambda: 0.0):
        used[0] = 6.0
        end = time.monotonic() + 10
        while (killed := UsageLog.open(path, [])).stages["cold build"].cpu_seconds < 5 and time.monotonic() < end:
            time.sleep(0.01)
    assert killed.stages["cold build"].cpu_seconds == 5


@pytest.mark.docker
@pytest.mark.slow
def test_a_killed_engine_leaves_its_images_and_nothing_else(tmp_path: Path) -> None:
    program = "import sys, time; from pathlib import Path; from benchmarks.isolated_engine import start_engine\n"
    program += "with start_engine(Path(sys.argv[1]), sys.argv[2:], keep=True):\n"
    program += "    print('ready', flush=True)\n    time.sleep(600)\n"
    folder = tmp_path / "engine"
    with subprocess.Popen([sys.executable, "-c", program, folder, *BASES], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.kill()
    with start_engine(folder, BASES, keep=True) as engine:
        client = docker.DockerClient(base_url=engine.host, version="auto")
        assert client.images.list("mergemill/base")
    assert (folder / "data").is_dir()
    names = {container.name for container in docker.from_env(version="auto").containers.list(all=True)}
    assert engine.group.name not in names
    assert not engine.group.folder.exists()
    assert str(folder) not in Path("/proc/mounts").read_text()


@pytest.mark.docker
@pytest.mark.slow
def test_every_stage_is_measured_on_an_engine_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_sample(tmp_path / "ada__greet")
    monkeypatch.chdir(tmp_path)
    log = UsageLog.open(tmp_path / "usage.json", ["git:ada__greet"])
    with start_engine(tmp_path / "engine", BASES) as engine, meter_tests() as meter:
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        cold = run_phase("cold", ["git:ada__greet"], tmp_path / "cold", engine=engine, meter=meter, log=log)
        warm = run_phase("warm", ["git:ada__greet"], tmp_path / "warm", engine=engine, meter=meter, log=log)
        counted = engine.group.read_cpu_seconds()
        monkeypatch.delenv("DOCKER_HOST")
        busy = ["sh", "-c", "i=0; while [ $i -lt 2000000 ]; do i=$((i+1)); done"]
        client = docker.from_env(version="auto")
        client.containers.run(client.images.list("mergemill/base")[0].tags[0], busy, remove=True)
        assert engine.group.read_cpu_seconds() - counted < 1  # seconds; the loop needs some
    assert not (tmp_path / "engine").exists()
    for phase in (cold, warm):
        assert tuple(phase.stages) == STAGES
        assert phase.tasks == 2
        assert 1 < phase.stages["verify"].cpu_seconds < phase.stages["verify"].wall_seconds * (os.cpu_count() or 1)
        assert 0 < phase.total.test_cpu_seconds < phase.total.cpu_seconds
        assert all(phase.stages[stage].test_cpu_seconds > 0 for stage in ("build", "verify", "certify"))
    assert warm.stages["build"].cpu_seconds < cold.stages["build"].cpu_seconds
