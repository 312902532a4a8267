"""From GitHub's API to certified tasks: a list of three repositories, as a newcomer runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import Said, mergemill
from tests.github import GitHub
from tests.github.three import LIST, three

TASKS = ["ada__greet-2.bugfix", "ada__greet-5.bugfix", "bob__temps-2.bugfix", "eve__roman-1.bugfix"]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHub]:
    with GitHub(three(tmp_path_factory.mktemp("hub"))) as found:
        yield found


@pytest.fixture(scope="module")
def folder(hub: GitHub, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the list was run."""
    folder = tmp_path_factory.mktemp("three")
    (folder / "repos.txt").write_text(LIST)
    first = run(hub, folder)
    assert first.code == 0, first.err
    last = first.lines[-1]
    assert (last["mined"], last["candidates"], last["certified"]) == (6, 4, 4)
    assert last["tasks"] == {"bugfix": 4}
    assert hub.violations == []
    return folder


def run(hub: GitHub, folder: Path) -> Said:
    return mergemill("run", "@repos.txt", "--json", cwd=folder, MERGEMILL_GITHUB_API=hub.url, GITHUB_TOKEN="ghp_reader")


@pytest.mark.docker
def test_each_repository_gives_its_tasks_under_its_present_name(folder: Path) -> None:
    rows = mergemill("tasks", "list", "--status", "certified", "--json", cwd=folder).lines
    assert sorted(row["name"] for row in rows) == TASKS
    assert {row["repo"] for row in rows} == {"ada/greet", "bob/temps", "eve/roman"}
    of_one = mergemill("tasks", "list", "--source", "github:eve/numerals", "--json", cwd=folder).lines
    assert [row["name"] for row in of_one] == ["eve__roman-1.bugfix"]


@pytest.mark.docker
def test_the_same_list_again_asks_hardly_anything_and_finds_nothing(hub: GitHub, folder: Path) -> None:
    before = len(hub.asked("graphql")) + len(hub.asked("rest"))
    again = run(hub, folder)
    assert (again.code, again.lines[-1]["new"], again.lines[-1]["certified"]) == (0, 0, 4)
    assert len(hub.asked("graphql")) + len(hub.asked("rest")) - before <= 3 * 3


@pytest.mark.docker
def test_a_task_tells_the_issue_and_what_was_said_before_the_fix(folder: Path) -> None:
    greet = mergemill("tasks", "show", "ada__greet-2.bugfix", "--json", cwd=folder).json
    assert greet["problem_statement"].startswith("Greetings keep stray blanks")
    assert "I see it, too." in greet["hints"]
    temps = mergemill("tasks", "show", "bob__temps-2.bugfix", "--json", cwd=folder).json
    assert "it should be about 18.33" in temps["problem_statement"]
    assert "temps/__init__.py" in temps["patch"]
    assert "tests/test_temps.py" in temps["test_patch"]
    roman = mergemill("tasks", "show", "eve__roman-1.bugfix", "--json", cwd=folder).json
    assert "parse('XIV') gives 16" in roman["problem_statement"]


@pytest.mark.docker
def test_funnel_and_why_tell_the_rest(folder: Path) -> None:
    told = mergemill("funnel", cwd=folder).out
    assert "6 changes, 4 candidates, 4 certified tasks" in told
    assert "rejected by mine, bot" in mergemill("why", "bob__temps-3", cwd=folder).out
    assert "rejected by mine, no-source" in mergemill("why", "ada__greet-3", cwd=folder).out
    by_source = mergemill("funnel", "github:eve/numerals", "--json", cwd=folder).lines
    assert [(row["in"], row["out"]) for row in by_source][-1] == (1, 1)
