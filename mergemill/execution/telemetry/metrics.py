"""Metrics in Prometheus' text format. The only file that imports prometheus_client.

A run counts its results and failures and serves them at `--metrics-port`; `mergemill serve` has the state of the
database at `/metrics`. Labels are stages, reasons, kinds and states, of which there are few; no change, task or
repository is one.
"""

from __future__ import annotations

import collections
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from wsgiref.simple_server import WSGIServer

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
    start_http_server,
)
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from core.errors import MachineError, MergemillError, UsageError
from core.sockets import bind_socket
from mergemill.execution.progress import Progress, WorkState, name_failure
from mergemill.execution.telemetry.observer import ProgressObserver
from taskdb.records import Stage
from taskdb.records.work import StageResult

log = logging.getLogger(__name__)

CONTENT_TYPE = CONTENT_TYPE_LATEST
STAGE_SECONDS = (0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600)
"""Upper bounds of the histogram of a stage's seconds."""
MEASURE_SECONDS = 15.0
"""Seconds for which a measurement of disk and engine is served again."""


@dataclass(frozen=True)
class Gauge:
    """A gauge: name without the prefix `mergemill_`, description, name of the label or empty, and values by label."""

    name: str
    description: str
    label: str
    values: Mapping[str, float]


class GaugeCollector(Collector):
    """Collector of gauges that `read` returns whenever they are requested."""

    def __init__(self, read: Callable[[], Iterable[Gauge]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges as they are now."""
        for gauge in self._read():
            family = GaugeMetricFamily(
                f"mergemill_{gauge.name}", gauge.description, labels=[gauge.label] if gauge.label else ()
            )
            for value, number in gauge.values.items():
                family.add_metric([value] if gauge.label else (), number)
            yield family


def format_gauges(gauges: Iterable[Gauge]) -> bytes:
    """Return gauges in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(GaugeCollector(lambda: gauges))
    return generate_latest(registry)


@dataclass
class MachineGauges:
    """Gauges of disk and engine, measured at most every MEASURE_SECONDS.

    Attributes:
        measure: function that returns `disk` and `engine` as `mergemill.operations.status` describes them.
    """

    measure: Callable[[], Mapping[str, Any]]
    measured: Mapping[str, Any] = field(default_factory=dict)
    next_measurement: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self) -> Iterator[Gauge]:
        """Yield free and total bytes of the disks, and images and containers of the engine, as far as known."""
        with self.lock:
            if time.monotonic() >= self.next_measurement:
                self.measured = self._try_to_measure()
                self.next_measurement = time.monotonic() + MEASURE_SECONDS
            measured = self.measured
        engine = measured.get("engine") or {}
        disks = {"store": measured.get("disk"), "engine": engine.get("disk")}
        for name, what in (("free", "Free bytes"), ("total", "Bytes")):
            sizes = {disk: values[f"{name}_bytes"] for disk, values in disks.items() if values}
            yield Gauge(f"disk_{name}_bytes", f"{what} of the disk of the store, or of the engine's.", "disk", sizes)
        if "containers" in engine:
            text = "Containers of mergemill on the engine, of all processes."
            yield Gauge("engine_containers", text, "", {"": engine["containers"]})
            yield Gauge("engine_leftover_containers", "Those of dead processes.", "", {"": engine["leftovers"]})
            yield Gauge("engine_image_bytes", "Bytes of mergemill's images.", "", {"": engine["image_bytes"]})

    def _try_to_measure(self) -> Mapping[str, Any]:
        try:
            return self.measure()
        except (MergemillError, OSError) as error:
            # A disk or engine that cannot be measured must not keep the other metrics from being served.
            log.info("disk and engine are not measured: %s", error)
            return {}


def read_work(work: WorkState) -> Iterator[Gauge]:
    """Yield the work that a run is doing and how much is left."""
    running = work.list_running()
    # Stages without a running step are served as 0, so that their series do not end.
    steps = collections.Counter({stage.value: 0 for stage in Stage})
    steps.update(step.stage.value for step in running)
    yield Gauge("running", "Steps that run now.", "stage", steps)
    changes = {step.name for step in running if step.stage is not Stage.MINE}
    waiting = max(0, work.n_total - work.n_finished - len(changes))
    states = {"waiting": waiting, "running": len(changes), "done": work.n_finished}
    yield Gauge("changes", "Changes of this run that are known so far.", "state", states)
    yield Gauge(
        "draining", "1 while a run is drained: it finishes what runs and begins nothing.", "", {"": work.is_draining}
    )
    left = work.estimate_seconds_left()
    if left is not None:
        yield Gauge("seconds_left", "Estimated seconds until the known changes are done.", "", {"": left})


class RunMetrics(ProgressObserver):
    """Progress that counts results and failures, and serves the counts at `port` while it is entered.

    Args:
        shown: function that receives every call, too.
        command: the stage, or `run`.
        host: address to listen at.
        port: port of the host, 0 for any free port; it is in a message where it is not the requested port.
        measure: measure as for `MachineGauges`.
    """

    def __init__(
        self, shown: Progress, command: str, host: str, port: int, measure: Callable[[], Mapping[str, Any]]
    ) -> None:
        super().__init__(shown)
        self.host, self.port = host, port
        self.registry = CollectorRegistry()
        self._results = Counter(
            "mergemill_results",
            "Results stored by this run.",
            ("stage", "verdict", "reason"),
            registry=self.registry,
        )
        self._failures = Counter(
            "mergemill_failures", "Failures, which are no verdicts.", ("stage", "kind"), registry=self.registry
        )
        self._seconds = Histogram(
            "mergemill_stage_seconds",
            "Seconds of a stage per result.",
            ("stage",),
            buckets=STAGE_SECONDS,
            registry=self.registry,
        )
        Info("mergemill_run", "The command of this run.", registry=self.registry).info({"command": command})
        self.registry.register(GaugeCollector(lambda: read_work(self.work)))
        self.registry.register(GaugeCollector(MachineGauges(measure).read))
        ProcessCollector(registry=self.registry)
        self._server: WSGIServer | None = None

    def __enter__(self) -> Self:
        """Listen, then enter the shown progress.

        Raises:
            MachineError: the port is in use or may not be used.
            UsageError: the host is not an address of this machine.
        """
        # The server's own error about a port names neither the option nor a remedy.
        bind_port(self.host, self.port)
        self._server, _ = start_http_server(self.port, self.host, self.registry)
        super().__enter__()
        if self.port != self._server.server_port:
            self.print_message(f"metrics at http://{self.host}:{self._server.server_port}/metrics")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def report_result(self, result: StageResult) -> None:
        """Count a result."""
        verdict = "passed" if result.ok else "rejected"
        self._results.labels(result.stage.value, verdict, result.reason or "").inc()
        self._seconds.labels(result.stage.value).observe(result.seconds)
        super().report_result(result)

    def report_failure(self, stage: Stage, name: str, error: Exception) -> None:
        """Count a failure."""
        self._failures.labels(stage.value, name_failure(error)).inc()
        super().report_failure(stage, name, error)


def bind_port(host: str, port: int) -> None:
    """Check that a server can listen at a port."""
    try:
        bind_socket(host, port).close()
    except MachineError as error:
        raise MachineError(str(error), advice="choose another with --metrics-port") from error
    except UsageError as error:
        raise UsageError(str(error).replace("--host", "--metrics-host")) from error
