"""`/metrics`: the state of the database and of the server in Prometheus' text format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import Response

from mergemill.execution.run_status import RUN_STATES, list_runs
from mergemill.execution.telemetry.metrics import CONTENT_TYPE, Gauge, MachineGauges, format_gauges
from mergemill.execution.usage import describe_disk
from mergemill.web.context import WebContext
from taskdb.queries.tasks import compute_funnel, compute_summary
from taskdb.records import Stage


def show_metrics(context: WebContext, _: Request) -> Response:
    """Return the gauges of the database, its runs, the disk and the grading queue."""
    return Response(format_gauges(read_gauges(context)), media_type=CONTENT_TYPE)


def read_gauges(context: WebContext) -> Iterator[Gauge]:
    """Yield the facts that `mergemill status` shows as gauges, and the grading queue once there was a submission."""
    funnel, summary = compute_funnel(context.store), compute_summary(context.store)
    waiting = {row["stage"]: row["waiting"] for row in funnel if row["stage"] != Stage.MINE}
    yield Gauge("waiting", "Changes that wait for a stage.", "stage", waiting)
    yield Gauge("certified_tasks", "Certified tasks of the database.", "", {"": summary["certified"]})
    states = Counter(dict.fromkeys(RUN_STATES, 0))
    states.update(run["state"] for run in list_runs(context.runs))
    yield Gauge("runs", "Runs whose status file is kept.", "state", states)
    yield from MachineGauges(lambda: {"disk": describe_disk(context.storage.store_dir)}).read()
    if counted := context.grading.count_opened():
        numbers = {"queued": counted.queued, "running": counted.running, "done": counted.done}
        yield Gauge("submissions", "Submissions since the server was started.", "state", numbers)
