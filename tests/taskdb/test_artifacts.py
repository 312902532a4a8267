"""The artifact store where it cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.errors import InputError
from taskdb.artifacts import Artifacts


def test_a_store_that_may_not_be_written_is_no_reason_to_try_again() -> None:
    with pytest.raises(InputError, match="cannot write to /sys/mergemill") as caught:
        Artifacts(Path("/sys/mergemill")).put(b"text")  # not even root may make files there
    assert "writable" in caught.value.advice


def test_artifacts_can_be_read_by_whom_the_umask_permits(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        artifacts = Artifacts(tmp_path / "artifacts")
        digest = artifacts.put(b"text")
    finally:
        os.umask(before)
    (path,) = (tmp_path / "artifacts").rglob("*.zst")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o640, 0o750)
    assert artifacts.get(digest) == b"text"
    assert [entry for entry in path.parent.iterdir() if entry != path] == []
