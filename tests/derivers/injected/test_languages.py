"""Bugs injected into projects in other languages, in real environments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from builders.build import build
from derivers.injected import derive_injected
from mergemill.execution.services import LazySourceImages
from taskdb.records import Environment, FailureKind, Verification
from taskdb.records.lineage import Lineage
from tests.containers import make_services
from tests.helpers import TinyRepo
from tests.languages.examples import LanguageExample, list_examples
from tests.languages.test_examples import build_candidate
from verifiers.grade import grade

CHEAP = "exports.cheap = (item) => item.price < 10 && !item.heavy;\n"
TEST_CHEAP = """const { cheap } = require('../cheap');

describe('cheap', function () {
  it('is what costs little', function () {
    assert.strictEqual(cheap({ price: 9 }), true);
  });
  it('is not what costs ten', function () {
    assert.strictEqual(cheap({ price: 10 }), false);
  });
});
"""
GO_MODULE = "module example.org/ledger\n\ngo 1.19\n\nrequire github.com/google/go-cmp v0.6.0\n"
GO_JOB = """on: push
jobs:
  test:
    steps:
      - uses: actions/setup-go@v5
        with:
          go-version: "1.19"
      - run: go test -race -coverprofile=cover.out -tags "checked" -timeout 5m ./...
"""
MORE = {
    # The last Go with a compiled standard library: the base of a newer one compiles it for 46 s of CPU.
    "go": {"go.mod": GO_MODULE, ".github/workflows/ci.yml": GO_JOB},
    "javascript": {"cheap.js": CHEAP, "test/cheap.test.js": TEST_CHEAP},
}
"""Files of examples that have too few tests, or whose base takes long, instead of their own or in addition."""


class ExtendedExample(LanguageExample):
    """An example with other files at the base commit."""

    def list_files(self, name: str) -> dict[str, str | None]:
        return super().list_files(name) | (MORE.get(self.folder.name, {}) if name == "before.txt" else {})


@pytest.mark.parametrize(
    "name", [pytest.param("go", marks=pytest.mark.docker), pytest.param("javascript", marks=pytest.mark.slow)]
)
def test_a_bug_in_another_language_becomes_a_task(name: str, tmp_path: Path) -> None:
    services = make_services(tmp_path, test_timeout=900, memory_mb=3000, disk_mb=2000, pids=1024, budget_seconds=3000)
    services = replace(services, source_images=LazySourceImages(services))
    (example,) = (example for example in list_examples() if example.folder.name == name)
    candidate = build_candidate(ExtendedExample(example.folder), TinyRepo(tmp_path / "repo"), services)
    environment = build(candidate, services)
    assert isinstance(environment, Environment)
    assert name != "go" or environment.plan.language_version == "1.19"
    verification = Verification(
        parent=environment.id,
        candidate=candidate.id,
        name=candidate.name,
        FAIL_TO_PASS=(),
        PASS_TO_PASS=(),
        flaky=(),
        controls=(),
        eval_files=(),
        eval_script="",
        control_patch=None,
        repeats=1,
        runs=(),
        seconds=0.0,
    )
    made = derive_injected(Lineage(candidate=candidate, environment=environment, verification=verification), services)
    assert isinstance(made, list), made
    (task,) = made
    assert {kind for _, kind in task.FAIL_TO_PASS} <= {FailureKind.ASSERTION, FailureKind.ERROR}
    assert grade(task, services, services.artifacts.get(task.gold_patch)).value == 1.0
    assert grade(task, services, b"").value == 0.0
