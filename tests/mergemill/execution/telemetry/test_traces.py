"""Traces: exported by OTLP over HTTP to a real receiver."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from core.errors import Transient
from mergemill.execution.telemetry import traces
from mergemill.execution.telemetry.traces import RunTraces
from mergemill.pipeline.runs import wants_traces
from taskdb.records import Stage
from tests.cli import make_command_environment, run_mergemill
from tests.mergemill.stages import FakeStages, mine_changes, run
from tests.sample import make_sample


@dataclass
class Receiver:
    """Receiver of OTLP over HTTP. `requests`: decoded, in order."""

    requests: list[ExportTraceServiceRequest] = field(default_factory=list)
    url: str = ""

    @property
    def spans(self) -> list[Any]:
        scopes = [
            scope for request in self.requests for resource in request.resource_spans for scope in resource.scope_spans
        ]
        return [span for scope in scopes for span in scope.spans]

    def find_children(self, change: str) -> tuple[Any, list[Any]]:
        """Return the span of a change and those of its stages, in the order of their ends."""
        (root,) = [span for span in self.spans if span.name == change]
        children = [span for span in self.spans if span.parent_span_id == root.span_id]
        return root, sorted(children, key=lambda span: span.end_time_unix_nano)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    received = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/traces"
            received.requests.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    received.url = f"http://127.0.0.1:{server.server_port}"
    yield received
    server.shutdown()
    thread.join()
    server.server_close()


def read_attributes(span: Any) -> dict[str, str]:
    return {attribute.key.removeprefix("mergemill."): attribute.value.string_value for attribute in span.attributes}


def test_a_change_is_a_span_and_each_stage_a_child(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    faults: dict[tuple[Stage, str], Exception | str] = {
        (Stage.BUILD, "ada__greet-4"): "build-failed",
        (Stage.VERIFY, "ada__greet-2"): Transient("no network"),
    }
    run(tmp_path, FakeStages(faults), workers=1, observe=partial(RunTraces, command="run"))
    root, stages = receiver.find_children("ada__greet-1")
    assert [span.name for span in stages] == ["mine", "build", "verify", "judge", "derive", "certify"]
    assert {span.trace_id for span in stages} == {root.trace_id}
    assert root.start_time_unix_nano == min(span.start_time_unix_nano for span in stages)
    assert root.end_time_unix_nano == max(span.end_time_unix_nano for span in stages)
    certified = read_attributes(stages[-1])
    assert (certified["change"], certified["stage"], certified["verdict"]) == ("ada__greet-1", "certify", "passed")
    assert len(certified["record"]) == 64
    _, rejected = receiver.find_children("ada__greet-4")
    last = read_attributes(rejected[-1])
    assert (last["stage"], last["verdict"], last["reason"]) == ("build", "rejected", "build-failed")
    failed_root, failed = receiver.find_children("ada__greet-2")
    assert (failed[-1].name, failed[-1].status.code, failed_root.status.code) == ("verify", 2, 2)
    assert failed[-1].status.message == "no network"
    assert len({span.trace_id for span in receiver.spans}) == 3
    resource = {
        attribute.key: attribute.value.string_value
        for attribute in receiver.requests[0].resource_spans[0].resource.attributes
    }
    assert (resource["service.name"], resource["mergemill.command"]) == ("mergemill", "run")


class SlowStages(FakeStages):
    def verify(self, it: Any, services: Any) -> Any:
        time.sleep(0.2)
        return super().verify(it, services)


def test_the_span_of_a_stage_is_as_long_as_the_stage_was(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    run(tmp_path, SlowStages(), workers=1, observe=partial(RunTraces, command="run"))
    root, stages = receiver.find_children("ada__greet-1")
    seconds = {span.name: (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9 for span in stages}
    assert max(seconds, key=seconds.__getitem__) == "verify"
    assert 0.2 <= seconds["verify"] <= (root.end_time_unix_nano - root.start_time_unix_nano) / 1e9


class WaitingStages(FakeStages):
    """Stages of which the last certification waits until the spans of the other changes have been ended."""

    traces: RunTraces

    def certify(self, it: Any, services: Any) -> Any:
        while it.candidate.name == "ada__greet-1" and set(self.traces._open) != {"ada__greet-1"}:
            time.sleep(0.01)
        return super().certify(it, services)


def test_the_span_of_a_change_ends_while_the_run_works(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{receiver.url}/v1/traces")
    monkeypatch.setattr(traces, "IDLE_SECONDS", 0)
    stages = WaitingStages()

    def observe(shown: Any) -> RunTraces:
        stages.traces = RunTraces(shown, "run")
        return stages.traces

    run(tmp_path, stages, workers=1, observe=observe)
    assert {span.name for span in receiver.spans} >= {"ada__greet-1", "ada__greet-2", "ada__greet-4"}


def test_results_that_come_late_belong_to_the_same_span(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    run(
        tmp_path,
        FakeStages(),
        workers=4,
        mine=partial(mine_changes, changes=30),
        observe=partial(RunTraces, command="run"),
    )
    for number in (1, 2, 4, 29):
        assert len(receiver.find_children(f"ada__greet-{number}")[1]) == 6


def test_the_command_exports_traces_of_a_run(tmp_path: Path, receiver: Receiver) -> None:
    make_sample(tmp_path / "greet")
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_SERVICE_NAME": "factory"}
    done = run_mergemill("run", "git:greet", "--kind", "review", cwd=tmp_path, **variables)
    assert done.exit_code == 0, done.stderr
    stages = {span.name for span in receiver.spans if span.parent_span_id}
    assert stages == {"mine", "derive", "certify"}
    resource = {
        attribute.key: attribute.value.string_value
        for attribute in receiver.requests[0].resource_spans[0].resource.attributes
    }
    assert resource["service.name"] == "factory"


def test_a_receiver_that_does_not_answer_costs_no_result(tmp_path: Path) -> None:
    make_sample(tmp_path / "greet")
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    done = run_mergemill("run", "git:greet", "--kind", "review", "--json", cwd=tmp_path, **variables)
    assert done.exit_code == 0, done.stderr
    assert done.lines[-1]["certified"] > 0


NOT_LOADED = """
import sys
from mergemill.cli import run_command_line
run_command_line(["run", "git:greet", "--kind", "review"])
loaded = {module.partition(".")[0] for module in sys.modules} & {"opentelemetry", "prometheus_client"}
sys.exit(f"loaded: {loaded}" if loaded else 0)
"""


def test_without_a_receiver_nothing_is_loaded(tmp_path: Path) -> None:
    make_sample(tmp_path / "greet")
    subprocess.run([sys.executable, "-c", NOT_LOADED], cwd=tmp_path, env=make_command_environment(), check=True)


MISSING = """
import sys
sys.modules["opentelemetry"] = None
from mergemill.cli import run_command_line
sys.exit(run_command_line(["mine", "git:greet"]))
"""


def test_without_the_extra_one_line_says_so(tmp_path: Path) -> None:
    make_sample(tmp_path / "greet")
    done = subprocess.run(
        [sys.executable, "-c", MISSING],
        cwd=tmp_path,
        env=make_command_environment(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "no traces are exported: the extra otel is missing" in done.stderr


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_standard_variables_decide(variables: dict[str, str], wanted: bool) -> None:
    assert wants_traces(variables) is wanted
