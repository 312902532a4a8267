"""Where a change stands, of which several kinds of tasks were asked."""

from __future__ import annotations

from typing import Any

import pytest

from mergemill.cli.story import tell_story

MINED = ("mine", None, None)
TOO_FAR = ("verify", "no-fail-to-pass", None)
OVERLAP = ("derive", "part-not-needed", "combined")


@pytest.mark.parametrize(
    ("told", "where"),
    [
        ([], "nothing was done"),
        ([MINED], "has passed mine, the next stage is to be run"),
        ([MINED, TOO_FAR], "rejected by verify, no-fail-to-pass: why"),
        ([MINED, ("certify", None, None)], "certified"),
        ([MINED, ("derive", None, "bugfix")], "bugfix: has passed derive, the next stage is to be run"),
        ([MINED, ("derive", None, "bugfix"), ("certify", None, "bugfix"), ("certify", None, "review"), OVERLAP],
         "certified bugfix, review; combined: rejected by derive, part-not-needed: why"),
        ([MINED, TOO_FAR, ("certify", None, "review")],
         "certified review; rejected by verify, no-fail-to-pass: why"),
        ([MINED, OVERLAP, ("derive", None, "combined"), ("certify", None, "combined")], "certified combined"),
    ],
)  # fmt: skip
def test_each_kind_is_told_as_it_stands(
    told: list[tuple[str, str | None, str | None]], where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    events: list[dict[str, Any]] = [
        {"stage": stage, "ok": reason is None, "reason": reason, "detail": "why" if reason else "", "seconds": 1.0,
         "at": "2024-01-01T00:00:00+00:00"} | ({"kind": kind} if kind else {})
        for stage, reason, kind in told
    ]  # fmt: skip
    story = {
        "name": "ada__greet-1", "source": "git:greet", "events": events, "tasks": [], "published": None, "tags": None,
        "verdict": None, "attempts": [],
    }  # fmt: skip
    tell_story(story, has_log=False)
    out = capsys.readouterr().out
    assert out.splitlines()[0] == f"ada__greet-1 of git:greet: {where}"
    assert all((kind or "") in out for _, _, kind in told)
