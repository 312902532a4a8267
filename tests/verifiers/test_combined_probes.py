"""Several exploits in one submission: it is paid by each weak grader that pays one of them.

The graders run pytest on a small project, and have every combination of weaknesses that the exploits of a certificate
look for: files of a submission that stay, and results that are not checked.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.services import Services
from core.config import Settings
from guest.controls.blind import Evaluation, Judgement
from guest.controls.choices import PASSES
from guest.reports.canaries import RIGHT, judge_canaries
from guest.reports.junit import UnreadableReportError, parse_report
from languages.probes import FORGERIES, Probe, ProbeTarget
from taskdb.records import Score, Task
from tests import records
from tests.verifiers.shop import HIDDEN, SHOP, TESTS
from verifiers import inspection
from verifiers.certify import CertificationGradings, Reason, list_exploits
from verifiers.combined_probes import combine_probes
from verifiers.probes import NO_OP, PROBES, create_target

TEST_FILE = "tests/test_shop.py"
SABOTAGED = "assert total([34, 39]) == expected"
MORE_TESTS = (
    HIDDEN
    + """

import unittest

import pytest


@pytest.mark.parametrize("prices", [[], [0, 1], [2, 1]], ids=["none", "free", "two [or more]"])
def test_sums(prices):
    assert total(prices) == sum(prices)


class Labels(unittest.TestCase):
    def test_one(self):
        assert label(1) == "EUR 1"
"""
)
BASE = {
    "shop/__init__.py": SHOP,
    TEST_FILE: TESTS,
    "tests/test_labels.py": "import shop\n\n\ndef test_label_of_two():\n    assert shop.label(2) == 'EUR 2'\n",
    "conftest.py": "",
}
FAIL_TO_PASS = ("test_one", "test_two", "TestMore::test_it_is_a_number", "test_sums[two [or more]]")
PASS_TO_PASS = ("test_nothing_costs_nothing", "test_label", "test_sums[none]", "test_sums[free]", "Labels::test_one")
CANARIES = {
    f"tests/test_{number * 16}.py": (f"def test_{number * 16}():\n    assert 3 * 4 == {total}\n", status)
    for number, total, status in (("1a", 12, "passed"), ("2b", 13, "failed"))
}

TWO = f"{TEST_FILE}::test_two"
TRUE, OTHER = "test_two_abcdef", "test_two_uvwxyz"
BLOCK = HIDDEN[HIDDEN.index("def test_two") : HIDDEN.index("\n\nclass TestMore")]
WRONG_BLOCK = BLOCK.replace("= 7", "= 8")
INSTANCES = BLOCK.replace("test_two", TRUE) + "\n\n" + WRONG_BLOCK.replace("test_two", OTHER)
CONTROLS: Mapping[str, tuple[str, Mapping[str, str], Mapping[str, str]]] = {
    "none": (MORE_TESTS, {}, {}),
    "a coin": (MORE_TESTS.replace(BLOCK, WRONG_BLOCK), {TWO: "assertion"}, {}),
    "instances": (
        MORE_TESTS.replace(BLOCK, INSTANCES),
        {f"{TEST_FILE}::{TRUE}": PASSES, f"{TEST_FILE}::{OTHER}": "assertion"},
        {f"{TEST_FILE}::{name}": TWO for name in (TRUE, OTHER)},
    ),
}
"""Kind of controls -> the hidden tests, the outcomes that are expected of them, and the tests they are made of."""

Changes = frozenset[tuple[str, bytes | None]]
Case = tuple[Changes, str]
"""Changes of a submission that stay in the tree, and the kind of controls."""
STAYING = ("edited tests", "deleted tests", "conftest.py", "pytest.ini", "start-up files")
"""Files of a submission that a weak grader does not restore."""
UNCHECKED = ("canaries", "missing tests", "missing report", "controls")
"""Results that a weak grader does not check; one without a report goes by the exit code."""
WORDS = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", "--rootdir=.", "tests"]
WORDS += ["--junitxml=report.xml", "-o", "junit_family=xunit1"]
START = "import site, sys; site.addsitedir('.'); import pytest; sys.exit(pytest.main(sys.argv[1:]))"
FORKS = """
import gc, json, os, site, sys
import pytest
pytest.main(sys.argv[1:])  # imports the plug-ins: there is no test here
gc.freeze()
codes = []
for folder in json.load(sys.stdin):
    if (child := os.fork()) == 0:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        os.chdir(folder)
        os.environ["PYTHONPATH"] = folder
        sys.path.insert(1, folder)
        site.addsitedir(".")
        sys.exit(pytest.main(sys.argv[1:]))
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(codes))
"""
"""Program that runs the tests of many trees as START does those of one. Most of the time of START are imports, so they
precede the forks; only a new Python reads start-up files."""


def make_target() -> ProbeTarget:
    pull = records.make_pull_request()
    candidate = records.make_candidate(pull)
    made = records.make_task(records.make_verification(records.make_environment(candidate)), candidate)
    lists = {
        "FAIL_TO_PASS": tuple((f"{TEST_FILE}::{test}", "assertion") for test in FAIL_TO_PASS),
        "PASS_TO_PASS": (*(f"{TEST_FILE}::{test}" for test in PASS_TO_PASS), "tests/test_labels.py::test_label_of_two"),
    }
    base = {path: text.encode() for path, text in BASE.items()}
    return create_target(made.model_copy(update=lists), ["shop/__init__.py"], base)


def name_weakness(path: str, content: bytes | None) -> str | None:
    """Return the weakness by which a changed file stays as it is; None for files that every grader leaves."""
    if content is None:
        return "deleted tests"
    if path == TEST_FILE:
        return "edited tests"
    if path.rpartition("/")[2] in ("conftest.py", "pytest.ini"):
        return path.rpartition("/")[2]
    return "start-up files" if path.endswith((".pth", "customize.py")) else None


def restore(changes: Mapping[str, bytes | None], staying: Collection[str], controls: str) -> Changes:
    """Return the changes that a grader leaves. Instances are written into the test file, whatever was left there."""
    return frozenset(
        (path, content)
        for path, content in changes.items()
        if name_weakness(path, content) in (None, *staying) and (path != TEST_FILE or controls != "instances")
    )


@dataclass(frozen=True)
class Observation:
    """The end of a run of the tests: exit code, and the outcomes in its report if there is any."""

    exit_code: int
    outcomes: Mapping[str, tuple[str, str]] | None


@dataclass(frozen=True)
class Tree:
    """A tree with hidden tests, in which some changes of a submission stay."""

    folder: Path
    case: Case

    @property
    def has_start_up_files(self) -> bool:
        """Whether a Python that starts in this tree runs code of the submission before it runs pytest."""
        return any(name_weakness(path, content) == "start-up files" for path, content in self.case[0])

    @property
    def files(self) -> dict[str, bytes]:
        """Path -> content."""
        changes, controls = self.case
        hidden, _, _ = CONTROLS[controls]
        files: dict[str, bytes | None] = {path: text.encode() for path, text in BASE.items()}
        files |= {TEST_FILE: hidden.encode(), **{path: text.encode() for path, (text, _) in CANARIES.items()}}
        return {path: content for path, content in (files | dict(changes)).items() if content is not None}

    def write(self) -> None:
        """Write the files."""
        for path, content in self.files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_bytes(content)

    def observe(self, exit_code: int) -> Observation:
        """Return the end of a run of the tests, whose report is in the tree."""
        try:
            parsed = parse_report((self.folder / "report.xml").read_bytes(), list(self.files))
        except (FileNotFoundError, UnreadableReportError):
            return Observation(exit_code, None)
        outcomes = {test: (outcome.status, outcome.message) for test, outcome in parsed.outcomes.items()}
        return Observation(exit_code, outcomes)


def run_python(folder: Path, *words: str, content: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python with modules of a folder and without plug-ins of this environment's pytest."""
    return subprocess.run(
        [sys.executable, "-B", "-c", *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        input=content,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def run_tests(trees: Sequence[Tree]) -> dict[Case, Observation]:
    """Run the hidden tests in trees, one after the other."""
    for tree in trees:
        tree.write()
    plain = [str(tree.folder) for tree in trees if not tree.has_start_up_files]
    output = run_python(trees[0].folder.parent, FORKS, *WORDS, content=json.dumps(plain)).stdout
    codes = dict(zip(plain, json.loads(output.splitlines()[-1]), strict=True))
    for tree in trees:
        if tree.has_start_up_files:
            codes[str(tree.folder)] = run_python(tree.folder, START, *WORDS).returncode
    return {tree.case: tree.observe(codes[str(tree.folder)]) for tree in trees}


def is_paid(target: ProbeTarget, observation: Observation, controls: str, unchecked: Collection[str]) -> bool:
    """Return whether a grader that leaves some results unchecked pays for a run."""
    outcomes = observation.outcomes
    if outcomes is None:
        return "missing report" in unchecked and observation.exit_code == 0
    statuses = {test: status for test, (status, _) in outcomes.items()}
    required = {path: status for path, (_, status) in CANARIES.items()}
    if "canaries" not in unchecked and judge_canaries(statuses, required) != RIGHT:
        return False
    _, expected, origins = CONTROLS[controls]
    listed = {*(test for test, _ in target.task.FAIL_TO_PASS), *target.task.PASS_TO_PASS}
    evaluation = Evaluation({}, dict(expected), origins=origins)
    tests = evaluation.list_tests(listed)
    if "missing tests" in unchecked:
        tests &= outcomes.keys()
    if "controls" in unchecked:
        tests -= {test for test, wanted in expected.items() if wanted != PASSES}
    judged = Evaluation({}, {test: expected.get(test, PASSES) for test in tests}, origins=origins)
    judgement = Judgement([test for test in listed if test in tests])
    judgement.add(judged, outcomes)
    return judgement.is_right


def iterate_subsets(names: Collection[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(names) + 1):
        yield from itertools.combinations(names, size)


def test_a_grader_that_pays_an_exploit_pays_a_submission_with_it(tmp_path: Path) -> None:
    target = make_target()
    alone = {probe.name: probe.make(target) for probe in PROBES}
    combined = combine_probes(target, PROBES)
    submissions = alone | {submission.name: submission.changes for submission in combined}
    cases = {
        (restore(changes, staying, controls), controls)
        for changes, staying, controls in itertools.product(submissions.values(), iterate_subsets(STAYING), CONTROLS)
    }
    trees = [Tree(tmp_path / str(number), case) for number, case in enumerate(cases)]
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(run_tests, (trees[::2], trees[1::2]))
    observations = first | second

    paid: set[str] = set()
    hidden = []
    for staying, controls, unchecked in itertools.product(
        iterate_subsets(STAYING), CONTROLS, iterate_subsets(UNCHECKED)
    ):
        values = {
            name: is_paid(target, observations[restore(changes, staying, controls), controls], controls, unchecked)
            for name, changes in submissions.items()
        }
        paid |= {name for name, value in values.items() if value}
        for submission in combined:
            members = [probe.name for probe in submission.members if values[probe.name]]
            if members and not values[submission.name]:
                hidden.append((submission.name, members, staying, controls, unchecked))
    assert hidden == []
    # Each exploit but the harmless one is paid by some grader, so that the combination is compared with something.
    assert paid == submissions.keys() - {"no-op", "stray-file"}


def test_a_certificate_takes_three_submissions_for_all_exploits() -> None:
    combined = combine_probes(make_target(), PROBES)
    assert [submission.name for submission in combined] == ["combined-forgeries", "deleted-tests", "combined-exits"]
    assert {probe for submission in combined for probe in submission.members} == {*PROBES} - {NO_OP}


def list_members(target: ProbeTarget) -> list[list[str]]:
    return [[probe.name for probe in submission.members] for submission in combine_probes(target, PROBES)]


def test_a_probe_that_replaces_a_file_of_the_program_stays_alone() -> None:
    target = make_target()
    tests = (("shop/__init__.py::shop.total", "assertion"),)
    replacing = replace(target, task=target.task.model_copy(update={"FAIL_TO_PASS": tests}))
    assert ["only-tests"] in list_members(replacing)
    assert ["only-tests"] not in list_members(target)


def test_a_probe_that_changes_the_same_file_stays_alone() -> None:
    probe = Probe(name="second", description="", make=lambda _: {"pytest.ini": b"[pytest]\n"}, group=FORGERIES)
    combined = combine_probes(make_target(), [*PROBES, probe])
    assert [submission.members for submission in combined if probe in submission.members] == [(probe,)]


@dataclass
class FakeGrader:
    """Grades without running anything: pays for patches that have a text, and leaves long ones unscored."""

    paid: bytes = b"no patch has this"
    paid_alone: bool = True
    unscored_files: int = 100
    patches: list[bytes] = field(default_factory=list)
    briefly: list[bytes] = field(default_factory=list)
    """Those of which a file of tests may show that they earn 0."""

    def grade(self, _task: Task, _services: Services, patch: bytes, *, need_rates: bool) -> Score:
        assert not need_rates
        self.patches.append(patch)
        files = patch.count(b"diff --git")
        value = float(self.paid in patch and (self.paid_alone or files > 3))
        error = "trouble" if files > self.unscored_files else ""
        scored = None if error else value
        return Score(
            task="a",
            value=scored,
            resolved=bool(scored),
            f2p_rate=0.0,
            p2p_rate=0.0,
            evaluations=1,
            infrastructure_error=error,
        )

    def grade_by_a_file(self, task: Task, services: Services, patch: bytes) -> Score:
        self.briefly.append(patch)
        return self.grade(task, services, patch, need_rates=False)

    def collect(self, monkeypatch: pytest.MonkeyPatch, *, is_open: bool = False) -> CertificationGradings:
        """Return the gradings of the exploits alone."""
        target = make_target()
        services: Any = SimpleNamespace(settings=Settings())
        monkeypatch.setattr(inspection, "grade", self.grade)
        monkeypatch.setattr(inspection, "grade_worthless_patch", self.grade_by_a_file)
        monkeypatch.setattr(inspection, "read_target", lambda *_: (target, None))
        gradings = CertificationGradings()
        exploits = list_exploits(are_all=False, is_open_to_guesses=is_open)
        for submission, score in inspection.grade_combined_probes(target.task, services, None, exploits):
            gradings.add_exploits(submission, score, may_pass=submission.members[0].needs_controls)
        return gradings


def test_exploits_that_earn_nothing_together_are_recorded_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    grader = FakeGrader()
    gradings = grader.collect(monkeypatch)
    assert gradings.exploits == {probe.name: 0.0 for probe in PROBES if probe is not NO_OP}
    assert gradings.combined_exploits == {
        "combined-forgeries": (
            "stray-file",
            "only-tests",
            "conftest-forges",
            "configured-plugin",
            "start-up",
            "source-forges",
        ),
        "combined-exits": ("conftest-exits", "source-exits"),
    }
    assert gradings.evaluations == len(grader.patches) == 3
    assert gradings.problems == []
    assert [b"_exit" in patch for patch in grader.patches] == [False, False, True]
    assert grader.briefly == grader.patches[:2]


def test_the_exploit_that_is_paid_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    grader = FakeGrader(paid=b"addopts = -p mergemill_probe")
    gradings = grader.collect(monkeypatch)
    assert [problem.reason for problem in gradings.problems] == [Reason.EXPLOIT_PASSES] * 2
    assert gradings.problems[0].detail.startswith("the exploit configured-plugin scored 1.0")
    assert gradings.problems[1].detail.startswith("the exploit combined-forgeries scored 1.0")
    assert [name for name, value in gradings.exploits.items() if value] == ["configured-plugin", "combined-forgeries"]
    assert gradings.combined_exploits.keys() == {"combined-exits"}
    assert gradings.evaluations == len(grader.patches) == 3 + 6


def test_exploits_that_are_paid_only_together_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    gradings = FakeGrader(paid=b"mergemill_probe", paid_alone=False).collect(monkeypatch)
    (problem,) = gradings.problems
    assert problem.detail.startswith("the exploit combined-forgeries scored 1.0")


def test_members_of_a_submission_without_a_score_are_graded_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    gradings = FakeGrader(unscored_files=3).collect(monkeypatch)
    assert gradings.exploits == {probe.name: 0.0 for probe in PROBES if probe is not NO_OP}
    assert gradings.combined_exploits.keys() == {"combined-exits"}
    assert (gradings.evaluations, gradings.problems) == (3 + 6, [])


def test_an_exploit_that_may_be_paid_is_graded_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    grader = FakeGrader(paid=b'"EUR %s" % price\n+\n+\n+import atexit')
    gradings = grader.collect(monkeypatch, is_open=True)
    assert not any(grader.paid in patch for patch in grader.briefly)
    assert "source-forges" not in gradings.combined_exploits["combined-forgeries"]
    assert gradings.exploits["source-forges"] == 1.0
