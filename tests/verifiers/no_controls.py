"""Verifications without controls, for tests of other things: controls take two containers, in one of them many runs."""

from __future__ import annotations

import pytest

from tests.short_certificates import leave_out_controls


@pytest.fixture
def no_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let verifications of this test make no controls."""
    leave_out_controls(monkeypatch.setattr)
