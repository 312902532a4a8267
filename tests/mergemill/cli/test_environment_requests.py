"""Requests for tasks from environments that no environment can fulfil: each is refused in a line, before any work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import run_mergemill


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--per-environment 0", "how many tasks of each? (name them by --per-environment N, 1 or more)"),
        ("", "how many tasks of each? (name them by --per-environment N, 1 or more)"),
        ("--per-environment -1", "input should be greater than or equal to 0, not '-1'"),
        ("--per-environment 20000", "input should be less than or equal to 10000, not '20000'"),
        ("--per-environment 2 --tasks 0", "Invalid value for '--tasks'"),
        ("--per-environment 2 --per-repository -3", "Invalid value for '--per-repository'"),
        (
            "--per-environment 2 --kind bugfix",
            "--kind bugfix: an environment alone gives no such task (one of injected",
        ),
        ("--per-environment 2 --kind injected,review", "--kind review: an environment alone gives no such task"),
        ("--per-environment 2 --kind bugs", "--kind: unknown kind bugs (one of bugfix"),
    ],
)
def test_a_request_that_cannot_be_fulfilled_is_refused_in_a_line(options: str, message: str, tmp_path: Path) -> None:
    result = run_mergemill("derive", "--from", "environments", *options.split(), cwd=tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert message in line
    assert not list(tmp_path.iterdir()), "nothing is written"
