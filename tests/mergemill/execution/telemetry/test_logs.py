"""Logs as JSON lines: everything on standard error, with the ids of run, change and stage."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import Transient
from core.log_fields import log_fields, read_fields
from mergemill.execution.telemetry.logs import JsonFormatter
from mergemill.execution.telemetry.run_log import RunLog
from taskdb.records import Record, Rejection, Stage
from tests.cli import run_mergemill
from tests.mergemill.stages import FakeStages, run
from tests.sample import make_sample

log = logging.getLogger("tests.stage")


class LoggingStages(FakeStages):
    def verify(self, it: Any, services: Any) -> Record | Rejection:
        log.warning("looking at %s", it.candidate.name)
        return super().verify(it, services)


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What the handler of JSON lines writes."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger()
    of_run = logging.getLogger("mergemill.run")
    level, logger_level = logger.level, of_run.level
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)  # a command of another test in this process may have been quieter
    of_run.setLevel(logging.INFO)
    yield written
    logger.removeHandler(handler)
    of_run.setLevel(logger_level)
    logger.setLevel(level)


def parse(written: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_a_record_of_a_worker_has_its_change_and_stage(tmp_path: Path, lines: io.StringIO) -> None:
    run(tmp_path, LoggingStages(), workers=2)
    of_stage = [line for line in parse(lines) if line["logger"] == "tests.stage"]
    assert {(line["change"], line["stage"], line["message"]) for line in of_stage} == {
        (f"ada__greet-{number}", "verify", f"looking at ada__greet-{number}") for number in (1, 2, 4)
    }
    assert all(
        line["worker"].startswith("worker-") and line["host"] and line["level"] == "warning" for line in of_stage
    )


def test_results_and_failures_are_logged_with_their_ids(tmp_path: Path, lines: io.StringIO) -> None:
    faults: dict[tuple[Stage, str], Exception | str] = {
        (Stage.BUILD, "ada__greet-4"): "build-failed",
        (Stage.VERIFY, "ada__greet-2"): Transient("no network"),
        (Stage.VERIFY, "ada__greet-1"): KeyError("x"),
    }
    done = run(tmp_path, FakeStages(faults), workers=1, observe=RunLog)
    logged = {(line.get("stage"), line.get("change"), line["logger"]): line for line in parse(lines)}
    rejected = logged["build", "ada__greet-4", "mergemill.run"]
    assert (rejected["ok"], rejected["reason"]) == (False, "build-failed")
    assert len(rejected["record"]) == 64
    assert logged["verify", "ada__greet-2", "mergemill.run"]["problem"] == "Transient"
    bugs = [line for line in parse(lines) if "error" in line]
    assert "KeyError" in bugs[0]["error"]
    assert done.n_new == 4 + 3


def test_fields_end_with_their_block() -> None:
    with log_fields(change="a"):
        with log_fields(stage="b"):
            assert (read_fields()["change"], read_fields()["stage"]) == ("a", "b")
        assert "stage" not in read_fields()
    assert "change" not in read_fields()


def test_everything_on_standard_error_is_json(tmp_path: Path) -> None:
    make_sample(tmp_path / "greet")
    done = run_mergemill(
        "--log-format",
        "json",
        "run",
        "git:greet",
        "git:nowhere",
        "--kind",
        "review",
        "--metrics-port",
        "0",
        cwd=tmp_path,
    )
    bodies = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.exit_code == 3
    assert {line["run"] for line in bodies if "run" in line} == {bodies[-1]["run"]}
    assert {line["logger"] for line in bodies} == {"mergemill.run", "mergemill.messages"}
    assert any(line["message"].startswith("metrics at http") for line in bodies)
    assert any(line.get("stage") == "certify" and line["ok"] for line in bodies)
    failed = run_mergemill("--log-format", "json", "tasks", "show", "nothing", cwd=tmp_path)
    (line,) = [json.loads(line) for line in failed.stderr.splitlines()]
    assert (line["level"], line["message"].startswith("there is no task nothing")) == ("error", True)


def test_a_file_has_the_log_and_standard_error_stays_as_it_is(tmp_path: Path) -> None:
    make_sample(tmp_path / "greet")
    plain = run_mergemill("mine", "git:greet", "--retry", "no-base", cwd=tmp_path)
    logged = run_mergemill(
        "--log-file", "log", "mine", "git:greet", cwd=tmp_path, MERGEMILL_STORE="b", MERGEMILL_DB="b.db"
    )
    assert logged.exit_code == plain.exit_code == 0
    without_seconds = [
        [{**json.loads(line), "seconds": 0} for line in done.stderr.splitlines()] for done in (plain, logged)
    ]
    assert without_seconds[0] == without_seconds[1] != []
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert len(lines) == len(without_seconds[1])
    assert all(line["logger"] == "mergemill.run" for line in lines)


def test_quiet_writes_errors_only(tmp_path: Path) -> None:
    make_sample(tmp_path / "greet")
    done = run_mergemill("--quiet", "--log-file", "log", "--log-format", "json", "mine", "git:greet", cwd=tmp_path)
    assert (done.exit_code, done.stderr, (tmp_path / "log").read_text()) == (0, "", "")


def test_a_log_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    done = run_mergemill("--log-file", "no/folder/log", "status", cwd=tmp_path)
    assert (done.exit_code, done.stderr.count("\n"), "cannot write the log" in done.stderr) == (75, 1, True)
