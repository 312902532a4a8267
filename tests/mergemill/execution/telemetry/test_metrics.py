"""Metrics: scraped over HTTP while a run works, and from `mergemill serve`."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from core.errors import MachineError, MergemillError, Transient
from mergemill.execution.progress import MessageProgress
from mergemill.execution.telemetry.metrics import MachineGauges, RunMetrics, read_work
from mergemill.web.application import make_application
from mergemill.web.request_guard import make_access_rules
from taskdb.records import Record, Rejection, Stage
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.mergemill.stages import FakeStages, run
from tests.web.seed import seed_database

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
NO_DISK: Mapping[str, Any] = {"disk": None, "engine": None}


def parse_samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def find_sample(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((f"mergemill_{name}", frozenset(labels.items())))


def find_free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class ScrapedStages(FakeStages):
    """Stages of which the last certification requests the metrics, until the driver has counted its derivation."""

    port = 0
    samples: Samples

    def certify(self, it: Any, services: Any) -> Record | Rejection:
        n_derived = sum(stage is Stage.DERIVE for stage, _ in self.calls)
        while it.candidate.name == "ada__greet-1":
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
                self.samples = parse_samples(answer.read().decode())
            if find_sample(self.samples, "stage_seconds_count", stage="derive") == n_derived:
                break
        return super().certify(it, services)


def test_a_run_is_scraped_while_it_works(tmp_path: Path) -> None:
    faults: dict[tuple[Stage, str], Exception | str] = {
        (Stage.BUILD, "ada__greet-4"): "build-failed",
        (Stage.VERIFY, "ada__greet-2"): Transient("no network"),
    }
    stages = ScrapedStages(faults)
    stages.port = find_free_port()
    observe = partial(RunMetrics, command="run", host="127.0.0.1", port=stages.port, measure=lambda: NO_DISK)
    run(tmp_path, stages, workers=1, observe=observe)
    samples = stages.samples
    assert find_sample(samples, "results_total", stage="mine", verdict="passed", reason="") == 3
    assert find_sample(samples, "results_total", stage="build", verdict="rejected", reason="build-failed") == 1
    assert find_sample(samples, "failures_total", stage="verify", kind="Transient") == 1
    assert find_sample(samples, "stage_seconds_count", stage="build") == 3
    assert find_sample(samples, "stage_seconds_count", stage="verify") == 1
    assert find_sample(samples, "running", stage="certify") == 1
    assert find_sample(samples, "changes", state="running") == 1
    assert find_sample(samples, "changes", state="done") == 2
    assert (find_sample(samples, "seconds_left") or 0) > 0
    assert find_sample(samples, "draining") == 0
    assert find_sample(samples, "run_info", command="run") == 1


def test_no_label_names_a_change_or_a_repository(tmp_path: Path) -> None:
    stages = ScrapedStages()
    stages.port = find_free_port()
    observe = partial(RunMetrics, command="run", host="127.0.0.1", port=stages.port, measure=lambda: NO_DISK)
    run(tmp_path, stages, workers=1, observe=observe)
    assert not [key for key in stages.samples if "greet" in str(key)]


def test_the_port_is_free_after_the_run() -> None:
    port = find_free_port()
    for _ in range(2):
        with RunMetrics(MessageProgress(), "run", "127.0.0.1", port, lambda: NO_DISK):
            pass


def test_a_free_port_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with RunMetrics(MessageProgress(), "run", "127.0.0.1", 0, lambda: NO_DISK):
        pass
    assert "metrics at http://127.0.0.1:" in capsys.readouterr().err


def test_a_run_that_is_drained_says_so() -> None:
    progress = MessageProgress()
    for is_draining in (False, True):
        progress.work.is_draining = is_draining
        values = {gauge.name: gauge.values for gauge in read_work(progress.work)}
        assert values["draining"] == {"": is_draining}


def test_disk_and_engine_are_measured_once_in_a_while() -> None:
    calls: list[int] = []

    def measure() -> Mapping[str, Any]:
        calls.append(1)
        disk = {"free_bytes": 10, "total_bytes": 20}
        return {"disk": disk, "engine": {"disk": None, "containers": 3, "leftovers": 1, "image_bytes": 50}}

    gauges = MachineGauges(measure)
    assert [{gauge.name: dict(gauge.values) for gauge in gauges.read()} for _ in range(2)] == 2 * [
        {
            "disk_free_bytes": {"store": 10},
            "disk_total_bytes": {"store": 20},
            "engine_containers": {"": 3},
            "engine_leftover_containers": {"": 1},
            "engine_image_bytes": {"": 50},
        }
    ]
    assert calls == [1]


def test_an_engine_that_does_not_answer_costs_only_its_own_gauges() -> None:
    def measure() -> Mapping[str, Any]:
        raise MachineError("no engine")

    assert [gauge.values for gauge in MachineGauges(measure).read()] == [{}, {}]
    assert issubclass(MachineError, MergemillError)


def test_a_port_in_use_ends_the_command_with_one_line(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        done = run_mergemill("mine", "git:greet", "--metrics-port", port, cwd=tmp_path)
    assert done.exit_code == 4
    assert done.stderr == f"mergemill: port {port} of 127.0.0.1 is in use (choose another with --metrics-port)\n"


def test_serve_has_the_state_of_the_database(tmp_path: Path) -> None:
    seeded = seed_database(tmp_path)
    with Store.open(seeded.settings.storage.db, create=False) as store:
        application = make_application(store, seeded.settings, make_access_rules("127.0.0.1", None))
        answer = TestClient(application, base_url="http://127.0.0.1:8400").get("/metrics")
        funnel = TestClient(application, base_url="http://127.0.0.1:8400").get("/api/v1/funnel").json()["stages"]
    samples = parse_samples(answer.text)
    assert answer.headers["content-type"].startswith("text/plain; version=")
    for row in funnel[1:]:
        assert find_sample(samples, "waiting", stage=row["stage"]) == row["waiting"]
    assert find_sample(samples, "certified_tasks") == funnel[-1]["out"] > 0
    assert find_sample(samples, "runs", state="running") is not None
    assert (find_sample(samples, "disk_free_bytes", disk="store") or 0) > 0
