"""From GitHub's API to certified tasks: a list of three repositories, as a newcomer runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import WITHOUT_CONTROLS, CommandResult, run_mergemill
from tests.github import GitHub
from tests.github.three_repositories import LIST, make_three_repositories

TASKS = ["ada__greet-2.bugfix", "ada__greet-5.bugfix", "bob__temps-2.bugfix", "eve__roman-1.bugfix"]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHub]:
    with GitHub(make_three_repositories(tmp_path_factory.mktemp("hub"))) as server:
        yield server


@pytest.fixture(scope="module")
def folder(hub: GitHub, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the list was run."""
    folder = tmp_path_factory.mktemp("three")
    (folder / "repos.txt").write_text(LIST)
    first = run(hub, folder)
    assert first.exit_code == 0, first.stderr
    last = first.lines[-1]
    assert (last["mined"], last["candidates"], last["certified"]) == (6, 4, 4)
    assert last["tasks"] == {"bugfix": 4}
    assert hub.violations == []
    return folder


def run(hub: GitHub, folder: Path) -> CommandResult:
    variables = {"MERGEMILL_GITHUB_API": hub.url, "GITHUB_TOKEN": "ghp_reader", **WITHOUT_CONTROLS}
    return run_mergemill("run", "@repos.txt", "--json", cwd=folder, **variables)


@pytest.mark.docker
def test_each_repository_gives_its_tasks_under_its_current_name(folder: Path) -> None:
    rows = run_mergemill("tasks", "list", "--status", "certified", "--json", cwd=folder).lines
    assert sorted(row["name"] for row in rows) == TASKS
    assert {row["repo"] for row in rows} == {"ada/greet", "bob/temps", "eve/roman"}
    of_one = run_mergemill("tasks", "list", "--source", "github:eve/numerals", "--json", cwd=folder).lines
    assert [row["name"] for row in of_one] == ["eve__roman-1.bugfix"]


@pytest.mark.docker
def test_the_same_list_again_sends_few_requests_and_finds_nothing(hub: GitHub, folder: Path) -> None:
    before = len(hub.list_requests("graphql")) + len(hub.list_requests("rest"))
    again = run(hub, folder)
    assert (again.exit_code, again.lines[-1]["new"], again.lines[-1]["certified"]) == (0, 0, 4)
    assert len(hub.list_requests("graphql")) + len(hub.list_requests("rest")) - before <= 3 * 3


@pytest.mark.docker
def test_a_task_contains_the_issue_and_the_comments_before_the_fix(folder: Path) -> None:
    greet = run_mergemill("tasks", "show", "ada__greet-2.bugfix", "--json", cwd=folder).json
    assert greet["problem_statement"].startswith("Greetings keep stray blanks")
    assert "I see it, too." in greet["hints"]
    temps = run_mergemill("tasks", "show", "bob__temps-2.bugfix", "--json", cwd=folder).json
    assert "it should be about 18.33" in temps["problem_statement"]
    assert "temps/__init__.py" in temps["patch"]
    assert "tests/test_temps.py" in temps["test_patch"]
    roman = run_mergemill("tasks", "show", "eve__roman-1.bugfix", "--json", cwd=folder).json
    assert "parse('XIV') gives 16" in roman["problem_statement"]


@pytest.mark.docker
def test_funnel_and_why_show_the_rejected_changes(folder: Path) -> None:
    funnel = run_mergemill("funnel", cwd=folder).stdout
    assert "6 changes, 4 candidates, 4 of them certified" in funnel
    assert "rejected by mine, bot" in run_mergemill("why", "bob__temps-3", cwd=folder).stdout
    assert "rejected by mine, no-source" in run_mergemill("why", "ada__greet-3", cwd=folder).stdout
    by_source = run_mergemill("funnel", "github:eve/numerals", "--json", cwd=folder).lines
    assert [(row["in"], row["out"]) for row in by_source][-1] == (1, 1)
