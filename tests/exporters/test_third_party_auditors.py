"""What two auditors of graders find in a bundle: gradecheck 0.1.0 and bohrin 0.4.2. They need no model."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.fairness.projects import PROJECTS
from benchmarks.fairness.suite import HonestTask, open_task
from tests.cli import run_mergemill
from tests.exporters import auditor_programs as programs
from tests.exporters.consumers import install, run_command

pytestmark = [pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(1800)]

GRADECHECK = "gradecheck==0.1.0"
BOHRIN = "bohrin==0.4.2"


@dataclass(frozen=True)
class AuditedBundle:
    """A bundle of one task in Python, its row, and the repository with the base commit checked out."""

    folder: Path
    task: HonestTask
    row: dict[str, str]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedBundle]:
    folder = tmp_path_factory.mktemp("audited")
    with open_task(PROJECTS["python"], folder) as task:
        words = ("--db", f"sqlite:///{folder}/fairness.db", "--format", "slime", "--out", "slime")
        exported = run_mergemill("export", *words, cwd=folder)
        assert exported.exit_code == 0, exported.stderr
        [path] = (folder / "slime").glob("*.jsonl")
        row = json.loads(path.read_text())["metadata"]
        yield AuditedBundle(folder, task, row)


def run_gradecheck(bundle: AuditedBundle, folder: Path, *words: str, gold: bool = False) -> tuple[int, list[list[str]]]:
    """Run gradecheck on the base tree, or on that with the gold patch; return its exit code, and (attack, verdict)s."""
    command = install(GRADECHECK, sys.executable)
    grader, tree = folder / "grade.py", folder / "task"
    grader.write_text(programs.TREE_GRADER)
    grade = [str(command / "python"), str(grader), str(bundle.folder / "slime"), bundle.row["instance_id"]]
    subprocess.run(["git", "clone", "-q", bundle.task.repo.path, tree], check=True, capture_output=True)
    subprocess.run(["git", "checkout", "-q", bundle.task.base], cwd=tree, check=True, capture_output=True)
    if gold:
        patch = base64.b64decode(bundle.row["gold_submission"])
        subprocess.run(["git", "apply"], cwd=tree, input=patch, check=True, capture_output=True)
    modules = [str(path) for path in sorted((bundle.folder / "slime").glob("*.py"))]
    (folder / "gradecheck.toml").write_text(
        '[env]\nname = "till"\nworkspace = "task"\nsource_globs = ["till/*.py"]\n'
        f'[grade]\ncmd = "{" ".join(grade)} {{workspace}}"\npass_marker = "RESULT: PASS"\n'
        f"score = [{{ regex = 'REWARD: (\\d+) / (\\d+)' }}]\nsource = {json.dumps(modules)}\n"
    )
    process = subprocess.run(
        [command / "gradecheck", "run", folder, "--json", *words], capture_output=True, text=True, check=False
    )
    findings = json.loads(process.stdout)["findings"]
    return process.returncode, [[finding["attack"], finding["verdict"]] for finding in findings]


def test_no_attack_of_gradecheck_is_rewarded(bundle: AuditedBundle, tmp_path: Path) -> None:
    assert run_gradecheck(bundle, tmp_path) == (
        0,
        [
            ["noop", "resisted"],
            ["noop", "info"],
            ["empty-source", "resisted"],
            ["test-deletion", "resisted"],
            ["test-deletion", "resisted"],
            ["answer-leak", "resisted"],
            ["hollow-implementation", "warn"],  # the reward module contains a key of reviews; its attack earned nothing
        ],
    )


def test_gradecheck_sees_the_reward_of_the_gold_patch(bundle: AuditedBundle, tmp_path: Path) -> None:
    assert run_gradecheck(bundle, tmp_path, "--attacks", "noop", gold=True) == (1, [["noop", "fooled"]])


def test_no_candidate_of_bohrin_is_rewarded_and_every_positive_control_is(
    bundle: AuditedBundle, tmp_path: Path
) -> None:
    command = install(BOHRIN, sys.executable)
    words = (bundle.folder / "slime", "till/price.py")
    output = run_command(command, "python", "-c", programs.BOHRIN, *words, cwd=tmp_path)
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("[")]
    candidates = [row[1:] for row in rows if row[0] == "candidate"]
    assert {shape: sum(row[0] == shape for row in candidates) for shape in ("program", "workspace", "container")} == {
        "program": 5,
        "workspace": 3,
        "container": 6,
    }
    assert not any(accepted for *_, accepted in candidates), candidates
    controls = {row[1]: row[2] for row in rows if row[0] == "control"}
    assert controls == dict.fromkeys(("oracle", "reformatted", "renamed_locals"), True)
    overall = output[output.index("overall:") :]
    assert "COVERAGE SCORE: 100 / 100" in overall
    assert "CORRECT-WORK ACCEPTANCE: 100 / 100" in overall
