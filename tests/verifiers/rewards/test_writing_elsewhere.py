"""Test-writing in languages beside Python: the change of an example, from its environment to rewards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.git import Repository
from builders.build import build
from derivers.test_writing import test_writing as derive_test_writing
from taskdb.lineage import Lineage
from taskdb.oracles import Writing
from taskdb.records import Environment, Verification
from tests.boxes import make_services
from tests.helpers import TinyRepo
from tests.languages.examples import HERE, Example
from tests.languages.test_examples import candidate_of
from verifiers.rewards import writing
from verifiers.verify import verify

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1800)]


@dataclass(frozen=True, kw_only=True)
class Case:
    """Submissions for an example: path -> text."""

    honest: dict[str, str]
    reading: dict[str, str]
    """Reads the source instead of running it."""
    source: dict[str, str]
    """Mends the fault."""


CASES = {
    "go": Case(
        honest={"ledger/more_test.go": """package ledger

import "testing"

func TestOfDebts(t *testing.T) {
	if Largest(-2, -9) != -2 {
		t.Fatal("wrong")
	}
}
"""},
        reading={"ledger/more_test.go": """package ledger

import (
	"os"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	text, _ := os.ReadFile("ledger.go")
	if strings.Contains(string(text), "for _, amount := range amounts") {
		t.Fatal("the fault")
	}
}
"""},
        source={"ledger/ledger.go": "package ledger\n"},
    ),
    "javascript": Case(
        honest={"test/more.test.js": "const { price } = require('..');\n\n"
                                     "it('gives zero', () => assert.strictEqual(price([]), 0));\n"},
        reading={"test/more.test.js": "const text = require('fs').readFileSync('index.js', 'utf8');\n\n"
                                      "it('has it', () => assert(!text.includes('a + b);')));\n"},
        source={"index.js": "exports.price = () => 0;\n"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_of_another_language(name: str, tmp_path: Path) -> None:
    example, case = Example(folder=HERE / name), CASES[name]
    services = make_services(tmp_path, test_timeout=300, memory_mb=3000, disk_mb=2000, pids=1024, budget_seconds=3000)
    repo = TinyRepo(tmp_path / "repo")
    candidate = candidate_of(example, repo, services)
    environment = build(candidate, services)
    assert isinstance(environment, Environment), environment
    lineage = Lineage(candidate=candidate, environment=environment)
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    made = derive_test_writing(lineage.then(verification), services)
    assert isinstance(made, list), made
    task = made[0]
    assert isinstance(task.oracle, Writing)
    assert task.oracle.mutants

    def patch(files: dict[str, str]) -> bytes:
        repo.git("checkout", "-q", "-f", "--detach", candidate.base_commit)
        repo.commit("Submission", files)
        return Repository(repo.path).git("diff-tree", "-p", "--binary", candidate.base_commit, "HEAD")

    gold = writing.grade(task, services, writing.gold(task, services))
    assert gold.value == 1.0, gold
    honest = writing.grade(task, services, patch(case.honest))
    assert honest.value is not None
    assert honest.value > 0.3, honest
    for files in (case.reading, case.source):
        score = writing.grade(task, services, patch(files))
        assert score.value == 0.0, score
