"""Position of a change for which several kinds of tasks were requested."""

from __future__ import annotations

from typing import Any

import pytest

from mergemill.cli.change_report import print_change_report

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
        "attempts": [],
    }
    print_change_report(report, has_log=False)
    out = capsys.readouterr().out
    assert out.splitlines()[0] == f"ada__greet-1 of git:greet: {where}"
    assert all((kind or "") in out for _, _, kind in steps)
