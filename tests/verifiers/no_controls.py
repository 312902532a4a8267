"""Verifications without controls, for tests of other things: controls take two containers, in one of them many runs."""

from __future__ import annotations

import pytest

from backends.services import Services
from taskdb.records import Rejection, Verification
from taskdb.records.lineage import Lineage
from tests.short_certificates import leave_out_controls
from verifiers.verify import verify


@pytest.fixture
def no_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let verifications of this test make no controls."""
    leave_out_controls(monkeypatch.setattr)


def verify_without_controls(lineage: Lineage, services: Services) -> Verification | Rejection:
    """Do what `verifiers.verify.verify` does, but make no controls."""
    with pytest.MonkeyPatch.context() as patch:
        leave_out_controls(patch.setattr)
        return verify(lineage, services)
