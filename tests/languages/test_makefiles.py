"""A change of a project with a plain makefile becomes a verified task."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.build import build
from taskdb.lineage import Lineage
from taskdb.records import Environment, Verification
from tests.containers import make_services
from tests.helpers import TinyRepo
from tests.languages.examples import LanguageExample
from tests.languages.test_examples import build_candidate
from verifiers.verify import verify

EXAMPLE = LanguageExample(folder=Path(__file__).parent / "makefile")


@pytest.mark.slow
def test_a_change_of_a_project_with_a_plain_makefile_is_verified(tmp_path: Path) -> None:
    services = make_services(tmp_path, test_timeout=900, memory_mb=3000, disk_mb=2000, pids=1024, budget_seconds=3000)
    candidate = build_candidate(EXAMPLE, TinyRepo(tmp_path / "repo"), services)
    environment = build(candidate, services)
    assert isinstance(environment, Environment), environment.attempts
    verification = verify(Lineage(candidate=candidate, environment=environment), services)
    assert isinstance(verification, Verification), verification
    assert [test for test, _ in verification.FAIL_TO_PASS] == EXAMPLE.facts["FAIL_TO_PASS"]
    assert list(verification.PASS_TO_PASS) == EXAMPLE.facts["PASS_TO_PASS"]
    assert list(verification.controls) == EXAMPLE.facts["FAIL_TO_PASS"]
