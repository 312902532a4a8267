"""The fairness suite: honest submissions earn 1, whatever their form, files and side effects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import verifiers
from benchmarks.fairness.__main__ import MAX_REFUSED, render_table
from benchmarks.fairness.projects import PROJECTS
from benchmarks.fairness.suite import GradedSubmission, HonestTask, SubmissionGroup, open_task
from evaluation.runner.run import run_tests
from evaluation.script.render import render_script
from exporters.formats.swebench import build_row
from exporters.item import ExportItem
from taskdb.records import Score, TestCommand
from tests.containers import make_environment_image, make_services
from tests.exporters.verifying import run_verifier
from tests.short_certificates import certify_shortly
from tests.verifiers.shop import PYPROJECT

REPRESENTATIVES = (
    "a data class with an ordering, its own exception",
    "a number with its own equality",
    "a module made a package",
    "lines that look like test results",
    "a process that is left running",
    "deleted obsolete tests",
    "settings of its own in pyproject.toml",
    "a repository in a folder",
    "unusual names",
    "CR LF in changed files",
    "diff -ruN",
    "Markdown, no last line feed",
)
REFUSED = {("python", "code in a folder of tests")}
"""Honest submissions that earn 0; docs/evidence/fairness.md explains why."""


@pytest.fixture(scope="module")
def python_task(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HonestTask]:
    with ExitStack() as opened:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MERGEMILL_REPEATS", "1")
            patch.setenv("MERGEMILL_CERTIFY_EXPLOITS", "off")
            patch.setattr(verifiers, "certify", certify_shortly)
            task = opened.enter_context(open_task(PROJECTS["python"], tmp_path_factory.mktemp("fairness")))
        yield task


def test_the_suite_has_enough_submissions() -> None:
    counts = {language: len(project.submissions) for language, project in PROJECTS.items()}
    assert counts["python"] >= 40
    assert min(counts.values()) >= 8
    for project in PROJECTS.values():
        assert len({submission.name for submission in project.submissions}) == len(project.submissions)
        assert {submission.group for submission in project.submissions} == set(SubmissionGroup)
    assert len(REFUSED) <= MAX_REFUSED * sum(counts.values())


def make_score(value: float | None) -> Score:
    return Score(task="x", value=value, resolved=value == 1, f2p_rate=1.0, p2p_rate=1.0, explanation="so it is")


def test_the_table_counts_and_names_refused_submissions() -> None:
    submissions = PROJECTS["go"].submissions[:3]
    results = {
        "go": [
            GradedSubmission(submission, make_score(value))
            for submission, value in zip(submissions, (1.0, 0.0, None), strict=True)
        ],
        "rust": [GradedSubmission(PROJECTS["rust"].submissions[0], make_score(1.0))],
    }
    table = render_table(results)
    assert "| other code than the gold patch | 1 of 3 | 1 of 1 |\n" in table
    assert "| all | 1 of 3 | 1 of 1 |\n" in table
    assert f"Refused: 2 of 4 (50.0 %).\n- go, {submissions[1].name}: so it is\n" in table


@pytest.mark.docker
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_an_honest_submission_earns_1_here_and_in_a_bundle(name: str, python_task: HonestTask) -> None:
    [submission] = [submission for submission in python_task.project.submissions if submission.name == name]
    [graded] = python_task.grade_all([submission], workers=1)
    assert not graded.is_refused, graded.score
    reward, output = run_verifier(python_task.task, python_task.services, python_task.make_patch(submission))
    assert reward is not None, output
    assert reward["reward"] == 1, output


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("language", PROJECTS)
def test_all_honest_submissions_in_a_language_earn_1(language: str, tmp_path: Path) -> None:
    with open_task(PROJECTS[language], tmp_path) as task:
        graded = task.grade_all(task.project.submissions, workers=2)
    refused = {
        (language, grading.submission.name): grading.score.explanation for grading in graded if grading.is_refused
    }
    assert refused.keys() == {row for row in REFUSED if row[0] == language}, json.dumps([*refused.items()], indent=1)


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.timeout(1800)
def test_a_script_for_one_container_refuses_no_more(python_task: HonestTask) -> None:
    task, services = python_task.task, python_task.services
    row, _ = build_row(ExportItem(task=task, certificate=None), services)
    command = "cd /testbed; git apply /tmp/patch.diff; bash /eval.sh"
    refused = set()
    for submission in python_task.project.submissions:
        if submission.group is SubmissionGroup.FORM:  # git applies the patch here
            continue
        files = {"/eval.sh": row["eval_script"].encode(), "/tmp/patch.diff": python_task.make_patch(submission)}
        result = services.sandbox.run(task.image, ["bash", "-c", command], limits=services.test_limits(), files=files)
        lines = result.output.rpartition(">>>>> Start Test Output")[2].splitlines()
        passed = [line for line in lines if line.startswith("PASSED ")]
        if len(passed) != len(task.FAIL_TO_PASS) + len(task.PASS_TO_PASS):
            refused.add(("python", submission.name))
    assert refused == REFUSED


def change_version(version: str) -> bytes:
    return (
        "diff --git a/pyproject.toml b/pyproject.toml\n--- a/pyproject.toml\n+++ b/pyproject.toml\n@@ -1,3 +1,3 @@\n"
        f' [project]\n name = "shop"\n-version = "1.0"\n+version = "{version}"\n'
    ).encode()


@pytest.mark.docker
@pytest.mark.parametrize(("config_patch", "expected"), [(b"", "1.5"), (change_version("2.0"), "2.0")])
def test_configuration_that_the_gold_patch_changes_is_the_gold_patchs(
    config_patch: bytes, expected: str, tmp_path: Path
) -> None:
    services = make_services(tmp_path)
    test = f"def test_version():\n    assert 'version = \"{expected}\"' in open('pyproject.toml').read()\n"
    image = make_environment_image(services, {"pyproject.toml": PYPROJECT, "tests/test_version.py": test})
    script = render_script(
        TestCommand(framework="pytest", argv=("pytest",)),
        workdir="/testbed",
        test_patch=b"",
        files=("tests/test_version.py",),
        canaries_beside=(),
        config_patch=config_patch,
    )
    with services.sandbox.open_pool(image, limits=services.test_limits()) as pool:
        result = run_tests(pool, script, patch=change_version("1.5"), last=True)
    assert result.tree_error is None
    assert result.report is not None, result.log
    assert [outcome.status.value for outcome in result.report.outcomes.values()] == ["passed"]
    assert result.restored_files == (("pyproject.toml",) if config_patch else ())
