"""Forged and damaged reports are converted or rejected, without any other exception."""

from __future__ import annotations

import gc
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.reports import converter, junit
from evaluation.reports.outcomes import EvaluationReport
from guest.harness.reports import xunit
from guest.harness.reports.core import ConversionError
from guest.harness.reports.main import convert_report, read_results
from guest.reports.junit import MAX_ELEMENTS, MAX_TESTS, UnreadableReportError
from tests.bundle_reports import read_in_bundle
from tests.evaluation.test_reports import RECORDINGS, copy_recording, write_files


@pytest.fixture(scope="module", autouse=True)
def without_collections() -> Iterator[None]:
    """Keep the collector from running deep within a recursion, where it could not report what other tests left."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def without_garbage(without_collections: None) -> None:
    """Remove what earlier tests of this module left: all else is old, and searching it takes a quarter of a second."""
    gc.collect(0)


BOMB = '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;">]><testsuite><testcase name="&c;"/></testsuite>'


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        "<a>" * 100_000,
        "[" * 100_000,
        '{"testResults":' * 50_000,
        '{"testResults": [{"name": 1, "assertionResults": {"a": 1}}, 3, null]}',
        '{"stats": {}, "tests": [{"file": ["x"]}], "failures": 7}',
        '{"tests": [{"backtrace": 99, "command": [1, null]}], "backtraceGraph": {"nodes": {}, "files": 3}}',
        '{"examples": [{"id": 7, "exception": []}], "messages": {"a": 1}}',
        '{"Action": "fail", "Package": "x"}\n{"Action": "pass", "Package": "x", "Test": "T", "Elapsed": []}',
        "test a ... ok\n" + "test " * 10_000,
        "ok 1\n" + " " * 50_000 + "ok 1",
        "1.." + "9" * 10_000,
        "\x00" * 1000,
    ],
)
def test_hostile_reports_are_converted_or_rejected(text: str, tmp_path: Path) -> None:
    for file in ("report", "report.xml", "report.jsonl", "report.txt"):
        out, tree = write_files(tmp_path / file, {file: text})
        for name in converter.FORMATS:
            parse_unguarded(name, out, tree)


def parse_unguarded(name: str, out: str, tree: str) -> EvaluationReport | None:
    """Return the report, or None if the files are rejected. An error of the reader itself is raised."""
    try:
        results = read_results(name, out, tree)
    except ConversionError:
        return None
    return junit.parse_junit(results.to_xml(), []) if results else None


def test_an_error_of_a_reader_is_seen_here_and_no_report_for_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RecursionError("a reader's error")

    out, tree = write_files(tmp_path, {"x.xml": "<testsuite/>"})
    monkeypatch.setattr(xunit, "convert_xunit", fail)
    with pytest.raises(RecursionError):
        parse_unguarded("junit", out, tree)
    with pytest.raises(ConversionError, match="a reader's error"):
        convert_report("junit", out, tree)


def test_entities_are_rejected_in_any_encoding(tmp_path: Path) -> None:
    out, tree = write_files(tmp_path, {})
    (tmp_path / "out/x.xml").write_bytes(BOMB.encode("utf-16"))
    with pytest.raises(ConversionError):
        convert_report("junit", out, tree)


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.xml"
    secret.write_text('<testsuite><testcase classname="a" name="one"/></testsuite>')
    out, tree = write_files(tmp_path, {})
    (tmp_path / "out/link.xml").symlink_to(secret)
    subprocess.run(["mkfifo", f"{out}/pipe.xml"], check=True)
    with pytest.raises(ConversionError):
        convert_report("junit", out, tree)


@pytest.mark.parametrize("recording", RECORDINGS)
def test_a_damaged_report_raises_no_unexpected_exception(recording: str, tmp_path: Path) -> None:
    name, out, tree = copy_recording(recording, tmp_path)
    path = max((path for path in out.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    content_bytes, draw = path.read_bytes(), random.Random(recording)
    for _ in range(100):
        cut = bytearray(
            content_bytes[: draw.randrange(len(content_bytes) + 1)] if draw.random() < 0.5 else content_bytes
        )
        for _ in range(draw.randrange(12)):
            if cut:
                cut[draw.randrange(len(cut))] = draw.choice(b'<>&"{}[]:,\\\0\n1#-\xff')
        path.write_bytes(bytes(cut))
        report = parse_unguarded(name, str(out), str(tree))
        if report:
            content = convert_report(name, str(out), str(tree))
            assert read_in_bundle(content) == {i: o.status.value for i, o in report.outcomes.items()}


CASE = '<testcase classname="a" name="one"/>'


@pytest.mark.parametrize(
    "text",
    [
        "<a>" * 2_000 + CASE + "</a>" * 2_000,
        "<a>" + "<a/>" * MAX_ELEMENTS + CASE + "</a>",
        "<a>" + CASE * (MAX_TESTS + 1) + "</a>",
    ],
    ids=["deep", "elements", "tests"],
)
def test_reports_of_unbounded_structure_are_rejected_by_both_readers(text: str) -> None:
    with pytest.raises(UnreadableReportError):
        junit.parse_junit(text.encode(), [])
    assert read_in_bundle(text.encode()) is None


@pytest.mark.parametrize(("classname", "name"), [("a." * 2_000_000, "one"), ("a", "a." * 6_000_000)])
def test_a_class_or_name_of_millions_of_parts_is_resolved_in_time(classname: str, name: str) -> None:
    text = f'<a><testcase classname="{classname}" name="{name}"/></a>'.encode()
    started = time.perf_counter()
    assert list(read_in_bundle(text, ["a.py"]) or ()) == list(junit.parse_junit(text, ["a.py"]).outcomes)
    assert time.perf_counter() - started < 20
