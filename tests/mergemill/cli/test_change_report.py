"""Position of a change for which several kinds of tasks were requested."""

from __future__ import annotations

from typing import Any

import pytest

from mergemill.cli import output
from mergemill.cli.queries.change_report import SHOWN_TESTS, format_verdict, print_change_report
from taskdb.queries.evidence import VerdictRanks
from taskdb.records.verdicts import Completion, Finding, QuoteSource, StatementScores
from tests import records

MINED = ("mine", None, None)
TOO_FAR = ("verify", "no-fail-to-pass", None)
OVERLAP = ("derive", "part-not-needed", "combined")


@pytest.mark.parametrize(
    ("steps", "where"),
    [
        ([], "no stage has run"),
        ([MINED], "passed mine, the next stage is pending"),
        ([MINED, TOO_FAR], "rejected by verify, no-fail-to-pass: why"),
        ([MINED, ("certify", None, None)], "certified"),
        ([MINED, ("derive", None, "bugfix")], "bugfix: passed derive, the next stage is pending"),
        (
            [MINED, ("derive", None, "bugfix"), ("certify", None, "bugfix"), ("certify", None, "review"), OVERLAP],
            "certified bugfix, review; combined: rejected by derive, part-not-needed: why",
        ),
        ([MINED, TOO_FAR, ("certify", None, "review")], "certified review; rejected by verify, no-fail-to-pass: why"),
        ([MINED, OVERLAP, ("derive", None, "combined"), ("certify", None, "combined")], "certified combined"),
    ],
)
def test_the_report_shows_the_position_of_each_kind(
    steps: list[tuple[str, str | None, str | None]], where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    events: list[dict[str, Any]] = [
        {
            "stage": stage,
            "ok": reason is None,
            "reason": reason,
            "detail": "why" if reason else "",
            "seconds": 1.0,
            "at": "2024-01-01T00:00:00+00:00",
        }
        | ({"kind": kind} if kind else {})
        for stage, reason, kind in steps
    ]
    report = {
        "name": "ada__greet-1",
        "source": "git:greet",
        "events": events,
        "tasks": [],
        "published": None,
        "tags": None,
        "verdict": None,
        "verification": None,
        "attempts": [],
    }
    print_change_report(report, has_log=False)
    out = capsys.readouterr().out
    assert out.splitlines()[0] == f"ada__greet-1 of git:greet: {where}"
    assert all((kind or "") in out for _, _, kind in steps)


def test_a_published_list_of_hundreds_of_tests_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    lists = {"missing": [f"test_{number}" for number in range(300)], "extra": []}
    report = {
        "name": "ada__greet-1",
        "source": "instances:rows.jsonl",
        "events": [],
        "tags": None,
        "verdict": None,
        "verification": None,
        "attempts": [],
        "tasks": [],
        "published": {"verdict": "subset", "fail_to_pass": {"missing": ["a"], "extra": []}, "pass_to_pass": lists},
    }
    print_change_report(report, has_log=False)
    lines = {" ".join(line.split()[:2]): line for line in capsys.readouterr().out.splitlines()}
    assert lines["fail_to_pass missing"].endswith("  a")
    assert lines["fail_to_pass extra"].endswith("  -")
    assert f"test_{SHOWN_TESTS - 1} and {300 - SHOWN_TESTS} more (--json lists all)" in lines["pass_to_pass missing"]


LEFT_OUT: dict[str, Any] = {"dropped_canaries": False, "flaky": {}, "weak_tests": [], "skipped_share": 0.0}
LEFT_OUT["incidental_files"] = []
"""What `why` has of a verification that left nothing out."""


@pytest.mark.parametrize(
    ("verification", "text"),
    [
        (None, "none"),
        (LEFT_OUT, "verification: with canaries; flaky tests left out: -"),
        (
            LEFT_OUT | {"written_tests": {"model": "ada", "faults": 9, "faults_detected": 7}},
            "tests written by ada, 7 of 9 faults detected; with canaries",
        ),
        (
            LEFT_OUT | {"dropped_canaries": True},
            "no canaries, as the test runner does not collect or report added test files",
        ),
        (LEFT_OUT | {"flaky": {"t::a": "gold: passed 2, failed 1"}}, "t::a (gold: passed 2, failed 1)"),
        (
            LEFT_OUT | {"weak_tests": [{"test": "t::b", "weakness": "asserts-nothing", "evidence": "t.py"}]},
            "weak tests: t::b (asserts-nothing: t.py)",
        ),
    ],
)
def test_what_a_verification_left_out_is_shown(
    verification: dict[str, Any] | None, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report = {"name": "ada__greet-1", "source": "git:greet", "events": [], "tasks": [], "attempts": []}
    verification = verification and {"written_tests": None} | verification
    report |= dict.fromkeys(("tags", "verdict", "published")) | {"verification": verification}
    print_change_report(report, has_log=False)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("verification: ")]
    assert text in line


def test_causes_readings_and_groups_of_a_published_list_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    cause = {"list_name": "FAIL_TO_PASS", "side": "missing", "cause": "network"}
    causes = [cause | {"test": f"test_{number}", "detail": f"gaierror {number}"} for number in range(2)]
    causes.append(cause | {"side": "extra", "cause": "unknown", "test": "test_9", "detail": "in no published list"})
    published = {
        "verdict": "different",
        "fail_to_pass": {"missing": ["test_0", "test_1"], "extra": ["test_9"]},
        "pass_to_pass": {"missing": [], "extra": []},
        "readings": ["title", "file"],
        "groups": [{"list_name": "FAIL_TO_PASS", "published": "a.test.js", "level": "file", "tests": 3}],
        "causes": causes,
    }
    report = {"name": "ada__greet-1", "source": "instances:rows.jsonl", "events": [], "attempts": [], "tasks": []}
    print_change_report(
        report | {"tags": None, "verdict": None, "published": published, "verification": None}, has_log=False
    )
    out = capsys.readouterr().out
    assert "published FAIL_TO_PASS: different (ids read: title, file)" in out
    assert "a.test.js (file, 3)" in out
    assert "FAIL_TO_PASS missing: network 2, such as test_0: gaierror 0" in out
    assert "FAIL_TO_PASS extra: unknown 1, such as test_9: in no published list" in out


def test_text_of_a_repository_cannot_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "a\x1b[2Jb\rc\u202ed\x9be\x07"
    output.print_fields([("statement", hostile)])
    output.print_rows([{"name": hostile}], ["name"], as_lines=False, nothing="")
    shown = capsys.readouterr().out
    assert shown.count(r"a\x1b[2Jb\rc\u202ed\x9be\x07") == 2, shown
    assert all(character.isprintable() or character == "\n" for character in shown)


@pytest.mark.parametrize(
    ("completion", "shown"),
    [
        (
            Completion(model="", prompt="", addition="", made_by="rules", rejected=("too long",)),
            "not completed: too long",
        ),
        (Completion(model="m", prompt="complete-2", addition="It greets."), "completed by model"),
        (
            Completion(
                model="",
                prompt="",
                addition="It greets.",
                made_by="rules",
                before=StatementScores(underspecified=0.61, unfair_tests=0.92),
                after=StatementScores(underspecified=0.4, unfair_tests=0.5),
            ),
            "completed by rules (underspecified 0.61 -> 0.40, unfair tests 0.92 -> 0.50)",
        ),
    ],
)
def test_a_verdict_names_who_completed_the_statement_and_the_scores_of_both_versions(
    completion: Completion, shown: str
) -> None:
    environment = records.make_environment(records.make_candidate(records.make_pull_request()))
    verdict = records.make_verdict(records.make_verification(environment), completion=completion)
    assert shown in format_verdict(verdict.model_dump(mode="json")).split("; ")


def test_a_verdict_begins_with_its_evidence_and_shows_no_probability_without() -> None:
    environment = records.make_environment(records.make_candidate(records.make_pull_request()))
    verification = records.make_verification(environment)
    plain = records.make_verdict(verification, unfair_tests=0.81).model_dump(mode="json")
    assert format_verdict(plain) == "no finding"
    ranks = VerdictRanks(50, {"underspecified": 10, "unfair_tests": 46})
    ranked = "underspecified: more than 20 % of 50 tasks here, unfair tests: more than 92 % of 50 tasks here"
    assert format_verdict(plain, ranks) == f"no finding; {ranked}"
    finding = Finding(rule="value-not-stated", quote="987654", detail="a number", quote_source=QuoteSource.TESTS)
    quoted = records.make_verdict(verification, unfair_tests=0.81, findings=(finding,)).model_dump(mode="json")
    assert format_verdict(quoted) == "value-not-stated '987654'; unfair tests: probability 0.81"
