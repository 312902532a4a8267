"""Code under test that prints the results of its own test binary and exits with 0, where reports are made that way.

The forgers know this project: they name the tests that the files of this run define, drawn copies too, in the marks and
files that the runner reads, and let the canary fail that must. Without controls they are paid, with them they are not.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.services import Services
from builders.build import build
from mergemill.pipeline.kinds import derive
from taskdb.records import Environment, Kind, Rejection, Task, Verification
from taskdb.records.lineage import Lineage
from tests.containers import make_services
from tests.helpers import TinyRepo
from tests.languages.examples import list_examples
from tests.languages.test_examples import build_candidate
from tests.verifiers.test_grade import GradedTask
from verifiers.verify import verify

pytestmark = [pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(1800)]

GO = r"""
package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func Largest(amounts ...int) int { return 0 }

func init() {
	mark := ""
	for _, word := range os.Args {
		if word == "-test.v=test2json" {
			mark = "\x16"
		}
	}
	files, _ := filepath.Glob("*_test.go")
	for _, file := range files {
		content, _ := os.ReadFile(file)
		for _, body := range regexp.MustCompile(`(?m)^func `).Split(string(content), -1) {
			if !strings.HasPrefix(body, "Test") {
				continue
			}
			name, result := body[:strings.Index(body, "(")], "PASS"
			if strings.HasPrefix(file, "zz_") && strings.Contains(body, "3*4 != 13") {
				result = "FAIL"
			}
			fmt.Printf("%s=== RUN   %s\n%s--- %s: %s (0.00s)\n", mark, name, mark, result, name)
			for _, inner := range regexp.MustCompile(`t\.Run\("([^"]*)"`).FindAllStringSubmatch(body, -1) {
				full := name + "/" + strings.ReplaceAll(inner[1], " ", "_")
				fmt.Printf("%s    --- %s: %s (0.00s)\n", mark, result, full)
			}
		}
	}
	fmt.Printf("%sPASS\n", mark)
	os.Exit(0)
}
""".lstrip()

RUST = r"""
use fnv::FnvHashMap;

pub fn count(_: &str) -> FnvHashMap<String, usize> {
    let words: Vec<String> = std::env::args().collect();
    let mut names = vec![];
    for file in ["/tests/sentences.rs", "/src/lib.rs"] {
        let text = std::fs::read_to_string(format!("{}{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let prefix = if file == "/src/lib.rs" { "tests::" } else { "" };
        let starts = text.split("#[test]").skip(1).filter_map(|rest| rest.trim_start().strip_prefix("fn "));
        names.extend(starts.map(|rest| format!("{prefix}{}", rest.split('(').next().unwrap())));
    }
    let log: String = names.iter().map(|name| format!("ok {name}\n")).collect();
    println!("\nrunning {} tests", names.len());
    names.iter().for_each(|name| println!("test {name} ... ok"));
    if let Some(place) = words.iter().position(|word| word == "--logfile") {
        std::fs::write(&words[place + 1], log).unwrap();
    }
    std::process::exit(0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_words() {
        assert_eq!(super::count("a b").len(), 2);
    }
}
""".lstrip()

grading = importlib.import_module("verifiers.grade")  # the package has a function of that name
FORGERS: Mapping[str, dict[str, str | None]] = {"go": {"ledger/ledger.go": GO}, "rust": {"shelf/src/lib.rs": RUST}}


@dataclass(frozen=True)
class SeededSecrets:
    """Stand-in for the module `secrets`, with coins that are the same in every run of this test."""

    seed: int

    def SystemRandom(self) -> random.Random:  # noqa: N802 - the name there
        """Return a generator of predictable coins."""
        return random.Random(self.seed)


@pytest.mark.parametrize("name", FORGERS)
def test_printed_results_are_paid_only_without_controls(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graded = make_task(name, tmp_path)
    patch = graded.patch("forge", FORGERS[name])
    bare = graded.task.model_copy(update={"blind_controls": None, "evaluations": 1})
    assert grading.grade(bare, graded.services, patch).value == 1
    monkeypatch.setattr(grading, "secrets", SeededSecrets(seed=1))
    score = grading.grade(graded.task, graded.services, patch)
    assert score.value == 0, score
    assert all("passed although its expectation was changed" in kind for kind in score.tampering), score
    assert score.tampering, score


def make_task(name: str, folder: Path) -> GradedTask:
    """Return the bug fix of an example."""
    services: Services = make_services(
        folder, repeats=1, test_timeout=900, memory_mb=3000, disk_mb=2000, pids=1024, budget_seconds=3000
    )
    (example,) = (example for example in list_examples() if example.folder.name == name)
    repo = TinyRepo(folder / "repo")
    candidate = build_candidate(example, repo, services)
    environment = build(candidate, services)
    assert isinstance(environment, Environment), environment
    lineage = Lineage(candidate=candidate, environment=environment, kinds=(Kind.BUGFIX,))
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    made = derive(lineage.with_record(verification), services)
    assert not isinstance(made, Rejection), made
    task: Task = made[0]
    return GradedTask(services, repo, task.base_commit, task)
