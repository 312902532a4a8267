"""Scores of submitted tests: 1 for the change's own, a share for honest ones, 0 for exploits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from backends.git import GitRepository
from backends.services import Services
from derivers.test_writing import derive_test_writing
from evaluation.submitted_tests.runner import SubmittedTestsRunner
from guest.scoring.submitted_tests import REWRITTEN_FAULT
from taskdb.records import Score, Task, Verification
from taskdb.records.oracles import TestWritingOracle
from tests.containers import make_lineage, make_services
from tests.helpers import TinyRepo
from tests.shared_folders import copy_shared_folder
from tests.verifiers.no_controls import verify_without_controls
from verifiers.certify import iterate_gradings
from verifiers.rewards import writing

pytestmark = pytest.mark.docker

CHUNKS = '''"""Lists in pieces."""


def chunks(items, size):
    """Lists of at most `size` items."""
    found = []
    for start in range(0, len(items) - size, size):
        found.append(items[start : start + size])
    return found
'''
CHUNKS_RIGHT = CHUNKS.replace(
    "    found = []\n", '    if size < 1:\n        raise ValueError("size must be at least 1")\n    found = []\n'
).replace("len(items) - size", "len(items)")
TESTS = """from pieces import chunks


def test_nothing_has_no_chunks():
    assert chunks([], 2) == []
"""
OWN = (
    TESTS.replace("from pieces", "import pytest\n\nfrom pieces")
    + """

def test_the_rest_is_a_chunk():
    assert chunks([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]


@pytest.mark.parametrize("size", [0, -1])
def test_chunks_hold_something(size):
    with pytest.raises(ValueError, match="at least 1"):
        chunks([1], size)


def test_chunks_of_one():
    assert chunks([1, 2], 1) == [[1], [2]]
"""
)
NEW = "tests/test_more.py"
SOURCE = "import pathlib, pieces\nTEXT = pathlib.Path(pieces.__file__).read_text()\n\n\ndef test_it():\n    "
ONE = "from pieces import chunks\n\n\ndef test_rest():\n    assert chunks([1, 2, 3], 2) == [[1, 2], [3]]\n"
GIT = "import subprocess\n\n\ndef test_it():\n    assert subprocess.check_output(['git', 'diff', 'HEAD', 'pieces'])\n"
CHEATS: dict[str, dict[str, str | None]] = {
    "text-of-the-fault": {NEW: SOURCE + "assert 'len(items) - size' not in TEXT\n"},
    "text-of-the-fix": {NEW: SOURCE + "assert 'range(0, len(items), size)' in TEXT\n"},
    "words-of-the-fix": {NEW: SOURCE + "assert 'ValueError' in TEXT and TEXT.count('size') > 6\n"},
    "state-of-git": {NEW: GIT},
    "age-of-the-file": {
        NEW: SOURCE + "import time\n    assert pathlib.Path(pieces.__file__).stat().st_mtime > time.time() - 60\n"
    },
    "always-failing": {NEW: "def test_it():\n    assert False\n"},
    "exit": {NEW: ONE + "\n\nimport os\nos._exit(0)\n"},
    "with-source": {NEW: ONE, "pieces/__init__.py": CHUNKS_RIGHT},
    "with-conftest": {NEW: ONE, "tests/conftest.py": "import os\n"},
    "stray-file": {NEW: ONE, "pieces/helper.py": "def chunks():\n    pass\n"},
    "without-the-old-tests": {"tests/test_pieces.py": ONE},
}
TAMPERING = {"with-source", "with-conftest", "stray-file", "without-the-old-tests"}
GOLD_PARTS = {
    "detects": 1.0,
    "holds": 1.0,
    "false_alarms": 0.0,
    "faults_missed": 0.0,
    "mutants_killed": 1.0,
    "covered": 1.0,
}
"""Parts of the score of the change's own tests."""
HONEST: dict[str, dict[str, str | None]] = {
    "beside-the-old-ones": {"tests/test_pieces.py": TESTS + ONE.partition("\n\n")[2]},
    "found-by-the-framework-alone": {"checks/test_rest.py": ONE, "checks/__init__.py": None},
}


@dataclass(frozen=True)
class WritingExam:
    services: Services
    repo: TinyRepo
    base: str
    task: Task

    def patch(self, name: str, files: dict[str, str | None]) -> bytes:
        """Return a submission as git writes it in an agent's work tree."""
        self.repo.git("checkout", "-q", "-f", "--detach", self.base)
        self.repo.git("clean", "-fdxq")
        self.repo.write({path: text for path, text in files.items() if text or (self.repo.path / path).exists()})
        self.repo.git("add", "-A", "-f")
        self.repo.git("commit", "-q", "--allow-empty", "-m", name)
        return GitRepository(self.repo.path).run_git("diff-tree", "-p", "--binary", self.base, "HEAD")


BLIND: dict[str, str | None] = {"tests/test_pieces.py": f"{TESTS}\n\ndef test_one():\n    assert chunks([1, 2], 1)\n"}
"""Tests that pass before the fix, too."""


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> WritingExam:
    return open_writing_exam(tmp_path_factory, test_timeout=60)


@pytest.fixture(scope="module")
def short_exam(exam: WritingExam) -> WritingExam:
    return replace(exam, task=keep_three_mutants(exam.task))


def keep_three_mutants(task: Task) -> Task:
    """Return the exam's task with three mutants and the rewritten fault."""
    oracle = task.oracle
    assert isinstance(oracle, TestWritingOracle)
    faults = [edit for edit in oracle.mutants if edit.operator == REWRITTEN_FAULT]
    others = [edit for edit in oracle.mutants if edit.operator != REWRITTEN_FAULT]
    changed = oracle.model_copy(update={"mutants": (*faults, *others[:3])})
    return task.model_copy(update={"oracle": changed})


def open_writing_exam(factory: pytest.TempPathFactory, **settings: object) -> WritingExam:
    """Return the exam, with a repository and artifacts of its own; it is made once in a test run."""
    folder = copy_shared_folder(factory, "writing-exam", _make_writing_task)
    task = Task.model_validate_json((folder / "task.json").read_text())
    services = make_services(folder, repeats=1, **settings)
    return WritingExam(services, TinyRepo(folder / "repo"), task.base_commit, task)


def _make_writing_task(folder: Path) -> None:
    """Write the exam's repository, artifacts and task."""
    services = make_services(folder, repeats=1)
    repo = TinyRepo(folder / "repo")
    base = repo.commit("Start", {"pieces/__init__.py": CHUNKS, "tests/test_pieces.py": TESTS, "checks/x.txt": "x"})
    merge = repo.commit("Keep the rest", {"pieces/__init__.py": CHUNKS_RIGHT, "tests/test_pieces.py": OWN})
    lineage = make_lineage(repo, services, base, merge)
    verification = verify_without_controls(lineage, services)
    assert isinstance(verification, Verification), verification
    made = derive_test_writing(lineage.with_record(verification), services)
    assert isinstance(made, list), made
    (folder / "task.json").write_text(made[0].model_dump_json())


def test_the_oracle_has_mutants_variants_and_lines(exam: WritingExam) -> None:
    oracle = exam.task.oracle
    assert isinstance(oracle, TestWritingOracle)
    assert [edit.operator for edit in oracle.mutants].count(REWRITTEN_FAULT) == 1
    assert 4 <= len(oracle.mutants) <= 9
    assert 2 <= len(oracle.variants) <= 3
    assert [(span.first_line, span.last_line) for span in oracle.gold_spans] == [(6, 9)]
    assert [(span.first_line, span.last_line) for span in oracle.uncovered_spans] == [(7, 7)]
    assert oracle.base_coverage == 0.75
    assert "raise ValueError" not in exam.task.problem_statement
    assert "It is wrong." in exam.task.problem_statement


def test_the_changes_own_tests_earn_1(short_exam: WritingExam) -> None:
    exam = short_exam  # its oracle is made of mutants that these tests detect
    score = writing.grade(exam.task, exam.services, writing.load_gold_tests(exam.task, exam.services))
    assert score.value == 1.0, score
    assert score.resolved
    assert score.parts == GOLD_PARTS
    assert not score.tampering


def test_a_brief_grading_runs_no_edits_of_the_fix(exam: WritingExam, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(SubmittedTestsRunner, "run_on_edits")
    score = writing.grade(exam.task, exam.services, writing.load_gold_tests(exam.task, exam.services), is_brief=True)
    assert (score.value, score.parts) == (1.0, {"detects": 1.0, "holds": 1.0}), score
    blind = writing.grade(exam.task, exam.services, exam.patch("blind", BLIND), is_brief=True)
    assert (blind.value, blind.parts) == (0.0, {"detects": 0.0, "holds": 1.0}), blind


def test_a_certificate_runs_the_edits_of_the_fix_once(exam: WritingExam, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def record(task: Task, *_: object, is_brief: bool) -> Score:
        asked.append(is_brief)
        return Score(task=task.name, value=1.0, resolved=True, f2p_rate=1.0, p2p_rate=1.0)

    monkeypatch.setattr(writing, "grade", record)
    *_, gradings = iterate_gradings(exam.task, exam.services)
    assert asked == [False, True, True]
    assert (gradings.gold, gradings.noop, gradings.problems) == ([1.0, 1.0, 1.0], 0.0, [])
    first, *others = gradings.conditions
    assert others == [f"{first}, without edits of the fix"] * 2


def test_an_empty_submission_earns_0(exam: WritingExam) -> None:
    assert writing.grade(exam.task, exam.services, b"").value == 0.0


@pytest.mark.parametrize("name", CHEATS)
def test_an_exploit_earns_nothing(name: str, exam: WritingExam) -> None:
    score = writing.grade(exam.task, exam.services, exam.patch(name, CHEATS[name]))
    assert score.value == 0.0, score
    assert bool(score.tampering) == (name in TAMPERING), score


@pytest.mark.parametrize("name", HONEST)
def test_other_honest_tests_earn_their_share_of_detected_mutants(name: str, short_exam: WritingExam) -> None:
    exam = short_exam
    score = writing.grade(exam.task, exam.services, exam.patch(name, HONEST[name]))
    assert score.value is not None
    assert 0.3 < score.value < 1.0, score
    assert not score.resolved
    assert score.parts["covered"] == 0.0
