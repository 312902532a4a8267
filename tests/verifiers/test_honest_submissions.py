"""The fairness suite: honest submissions earn 1, whatever their form, files and side effects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.fairness.__main__ import BEGIN, END, MAX_REFUSED, render_table, write_table
from benchmarks.fairness.projects import PROJECTS
from benchmarks.fairness.suite import GradedSubmission, HonestTask, SubmissionGroup, open_task
from taskdb.records import Score

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
"""Honest submissions that earn 0; docs/fairness.md explains why."""


@pytest.fixture(scope="module")
def python_task(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HonestTask]:
    with open_task(PROJECTS["python"], tmp_path_factory.mktemp("fairness")) as task:
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


def test_the_table_counts_and_names_refused_submissions(tmp_path: Path) -> None:
    submissions = PROJECTS["go"].submissions[:3]
    results = {
        "go": [
            GradedSubmission(one, make_score(value)) for one, value in zip(submissions, (1.0, 0.0, None), strict=True)
        ],
        "rust": [GradedSubmission(PROJECTS["rust"].submissions[0], make_score(1.0))],
    }
    table = render_table(results)
    assert "| other code than the gold patch | 1 of 3 | 1 of 1 |\n" in table
    assert "| all | 1 of 3 | 1 of 1 |\n" in table
    assert f"Refused: 2 of 4 (50.0 %).\n- go, {submissions[1].name}: so it is\n" in table
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}old\n{END}after\n")
    write_table(page, table)
    assert page.read_text() == f"before\n{BEGIN}{table}{END}after\n"


@pytest.mark.docker
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_an_honest_submission_earns_1(name: str, python_task: HonestTask) -> None:
    [submission] = [one for one in python_task.project.submissions if one.name == name]
    [graded] = python_task.grade_all([submission], workers=1)
    assert not graded.is_refused, graded.score


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("language", PROJECTS)
def test_all_honest_submissions_in_a_language_earn_1(language: str, tmp_path: Path) -> None:
    with open_task(PROJECTS[language], tmp_path) as task:
        graded = task.grade_all(task.project.submissions, workers=2)
    refused = {(language, one.submission.name): one.score.explanation for one in graded if one.is_refused}
    assert refused.keys() == {row for row in REFUSED if row[0] == language}, json.dumps([*refused.items()], indent=1)
