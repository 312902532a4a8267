"""Facts about a task in every format."""

from __future__ import annotations

from pathlib import Path

from exporters.facts import build_facts
from exporters.item import ExportItem
from taskdb.records import TestOrigin
from tests.containers import make_services
from tests.exporters.tasks import make_certificate, make_task


def test_facts_come_from_the_row_of_the_database(tmp_path: Path) -> None:
    task = make_task(make_services(tmp_path), tmp_path)
    row = {"strength": 0.5, "family": "ada__words-1", "split": "test", "difficulty": '{"m/s": {"n": 4, "c": 1}}'}
    facts = build_facts(ExportItem(task=task, certificate=make_certificate(task), facts=row))
    expected = {"strength": 0.5, "family": "ada__words-1", "split": "test", "kind": "bugfix", "license": "MIT"}
    assert facts | expected == facts
    assert facts["difficulty"] == {"m/s": {"n": 4, "c": 1}}


def test_facts_without_a_database_are_those_of_the_record(tmp_path: Path) -> None:
    task = make_task(make_services(tmp_path), tmp_path)
    facts = build_facts(ExportItem(task=task, certificate=None))
    assert (facts["strength"], facts["tests"]) == (None, "human")
    written = task.model_copy(update={"tests": TestOrigin.MODEL_WRITTEN})
    assert build_facts(ExportItem(task=written, certificate=None))["tests"] == "model-written"
    assert (facts["certificate"], facts["difficulty"], facts["test_seconds"]) == (None, {}, 0.5)
    assert facts["statement_tokens"] == len(
        [
            "#",
            "Wide",
            "gaps",
            "are",
            "miscounted",
            "count",
            "(",
            "'",
            "a",
            "b",
            "'",
            ")",
            "gives",
            "4",
            "instead",
            "of",
            "2",
            ".",
        ]
    )
