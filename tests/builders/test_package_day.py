"""The day as of which packages are installed."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from backends.git import GitRepository
from builders.build import find_package_day
from tests import records
from tests.helpers import TinyRepo


@pytest.mark.parametrize(
    ("created_at", "committed", "day"),
    [
        ("2024-03-17T12:00:00+00:00", "2024-03-16T23:59:00+00:00", date(2024, 3, 17)),
        ("2023-02-01T12:00:00+00:00", "2024-03-16T23:59:00+00:00", date(2024, 3, 16)),
    ],
    ids=["change after its base", "row dated by its opening"],
)
def test_the_later_of_change_and_base_commit_decides(
    tmp_path: Path, created_at: str, committed: str, day: date
) -> None:
    repo = TinyRepo(tmp_path)
    repo.write({"greet.py": ""})
    repo.git("add", "-A")
    # written long before it was committed to the branch, as after a rebase
    dates = {"GIT_AUTHOR_DATE": "2020-01-01T00:00:00+0000", "GIT_COMMITTER_DATE": committed}
    repo.git("commit", "-q", "-m", "base", env=dates)
    pull = records.make_pull_request(base_commit=repo.git("rev-parse", "HEAD"))
    candidate = records.make_candidate(pull, created_at=created_at)
    assert find_package_day(GitRepository(tmp_path), candidate) == day
