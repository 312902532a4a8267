"""Test-writing in languages other than Python, from the environment of an example to the rewards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.git import GitRepository
from builders.build import build
from derivers.test_writing import derive_test_writing
from taskdb.records import Environment, Verification
from taskdb.records.lineage import Lineage
from taskdb.records.oracles import TestWritingOracle
from tests.containers import make_services
from tests.helpers import TinyRepo
from tests.languages.examples import HERE, LanguageExample
from tests.languages.test_examples import build_candidate
from verifiers.rewards import writing
from verifiers.verify import verify

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1800)]


@dataclass(frozen=True, kw_only=True)
class WritingExample:
    """Submissions for an example: path -> text."""

    honest: dict[str, str]
    reading: dict[str, str]
    """A test that reads the source instead of running it."""
    source: dict[str, str]
    """The fix."""


CASES = {
    "go": WritingExample(
        honest={
            "ledger/more_test.go": """package ledger

import "testing"

func TestOfDebts(t *testing.T) {
	if Largest(-2, -9) != -2 {
		t.Fatal("wrong")
	}
}
"""
        },
        reading={
            "ledger/more_test.go": """package ledger

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
"""
        },
        source={"ledger/ledger.go": "package ledger\n"},
    ),
    "javascript": WritingExample(
        honest={
            "test/more.test.js": "const { price } = require('..');\n\n"
            "it('gives zero', () => assert.strictEqual(price([]), 0));\n"
        },
        reading={
            "test/more.test.js": "const text = require('fs').readFileSync('index.js', 'utf8');\n\n"
            "it('has it', () => assert(!text.includes('a + b);')));\n"
        },
        source={"index.js": "exports.price = () => 0;\n"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rewards_in_another_language(name: str, tmp_path: Path) -> None:
    example, case = LanguageExample(folder=HERE / name), CASES[name]
    services = make_services(tmp_path, test_timeout=300, memory_mb=3000, disk_mb=2000, pids=1024, budget_seconds=3000)
    repo = TinyRepo(tmp_path / "repo")
    candidate = build_candidate(example, repo, services)
    environment = build(candidate, services)
    assert isinstance(environment, Environment), environment
    lineage = Lineage(candidate=candidate, environment=environment)
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    made = derive_test_writing(lineage.with_record(verification), services)
    assert isinstance(made, list), made
    task = made[0]
    assert isinstance(task.oracle, TestWritingOracle)
    assert task.oracle.mutants

    def patch(files: dict[str, str]) -> bytes:
        repo.git("checkout", "-q", "-f", "--detach", candidate.base_commit)
        repo.commit("Submission", files)
        return GitRepository(repo.path).run_git("diff-tree", "-p", "--binary", candidate.base_commit, "HEAD")

    gold = writing.grade(task, services, writing.load_gold_tests(task, services))
    assert gold.value == 1.0, gold
    honest = writing.grade(task, services, patch(case.honest))
    assert honest.value is not None
    assert honest.value > 0.3, honest
    for files in (case.reading, case.source):
        score = writing.grade(task, services, patch(files))
        assert score.value == 0.0, score
