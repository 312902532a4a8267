"""Changes of projects whose tests no list names: a plain makefile, and CMake without ctest."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.build import build
from taskdb.records import Environment, Verification
from taskdb.records.lineage import Lineage
from tests.containers import make_services
from tests.helpers import TinyRepo
from tests.languages.examples import LanguageExample
from tests.languages.test_examples import build_candidate
from verifiers.verify import verify

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize("name", ["makefile", "programs"])
def test_a_change_of_a_project_without_a_list_of_tests_is_verified(name: str, tmp_path: Path) -> None:
    example = LanguageExample(folder=HERE / "unlisted" / name)
    services = make_services(tmp_path, test_timeout=900, memory_mb=3000, disk_mb=2000, pids=1024, budget_seconds=3000)
    candidate = build_candidate(example, TinyRepo(tmp_path / "repo"), services)
    environment = build(candidate, services)
    assert isinstance(environment, Environment), environment.attempts
    verification = verify(Lineage(candidate=candidate, environment=environment), services)
    assert isinstance(verification, Verification), verification
    assert [test for test, _ in verification.FAIL_TO_PASS] == example.facts["FAIL_TO_PASS"]
    assert list(verification.PASS_TO_PASS) == example.facts["PASS_TO_PASS"]
    assert list(verification.controls) == example.facts["FAIL_TO_PASS"]
