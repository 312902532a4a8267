"""Selecting tasks on the command line: filters, files of names, saved selections, samples, charts."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from core.config import Settings
from core.errors import InputError
from mergemill.bundles.filter_resolution import read_names, resolve_filters
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import parse_filters
from taskdb.records import Task
from taskdb.store import Store
from tests.cli import CommandResult, make_command_environment, run_mergemill
from tests.taskdb.lineages import add_lineage


@dataclass(frozen=True)
class MadeTasks:
    """Twelve tasks of two repositories, and the database that holds them."""

    tasks: list[Task]
    database: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeTasks:
    database = tmp_path_factory.mktemp("made") / "mergemill.db"
    tasks = []
    with Store.open(f"sqlite:///{database}") as store:
        for number in range(1, 13):
            repo = "Ada/Greet" if number % 3 else "grace/cobol"
            name = f"{repo.lower().replace('/', '__')}-{number}"
            tasks.append(add_lineage(store, number, repo=repo, name=name, license=("MIT", "Apache-2.0")[number % 2]))
    return MadeTasks(tasks, database)


@pytest.fixture
def tasks(made: MadeTasks, tmp_path: Path) -> list[Task]:
    """The tasks, in a database of the test's folder."""
    shutil.copy(made.database, tmp_path / "mergemill.db")
    return made.tasks


@pytest.fixture
def settings(tmp_path: Path, tasks: list[Task]) -> Settings:
    return Settings(db=f"sqlite:///{tmp_path}/mergemill.db", store=tmp_path / "store")


def count(*options: str, cwd: Path) -> int:
    done = run_mergemill("tasks", "list", "--count", *options, cwd=cwd)
    assert done.exit_code == 0, done.stderr
    return int(done.stdout)


def select(settings: Settings, **given: str) -> list[str]:
    """Return the names that filters select, in alphabetical order."""
    with Store.open(settings.storage.db) as store:
        filters = resolve_filters(parse_filters(given), settings.storage, store)
        return sorted(row["name"] for row in queries.list_tasks(store, filters))


def test_columns_counts_and_pages(tmp_path: Path, tasks: list[Task]) -> None:
    assert count("--repo", "grace/COBOL", cwd=tmp_path) == 4
    assert run_mergemill("tasks", "list", "--count", "--json", cwd=tmp_path).json == {"tasks": 12}
    columns = "name,strength,family,split"
    done = run_mergemill("tasks", "list", "--columns", columns, "--limit", "5", "--json", cwd=tmp_path)
    assert [list(line) for line in done.lines] == [columns.split(",")] * 5
    rest = run_mergemill("tasks", "list", "--json", "--after", done.lines[-1]["name"], cwd=tmp_path)
    names = [line["name"] for line in done.lines + rest.lines]
    assert sorted(names) == sorted(task.name for task in tasks)
    shown = run_mergemill("tasks", "list", "--columns", "name,difficulty", cwd=tmp_path)
    assert shown.stdout.split()[:2] == ["name", "difficulty"]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--columns", "name,colour"], 2, "there is no column 'colour' (columns: id, name"),
        (["--columns", ","], 2, "--columns: no column is named"),
        (["--where", "colour = 'red'"], 2, "--where: there is no column colour"),
        (["--where", "1=1; DROP TABLE task"], 2, "--where: not one SQL expression: it contains ';'"),
        (["--changed-lines", "9:1"], 2, "--changed-lines: '9:1' is not LO:HI"),
        (["--created", "soon"], 2, "--created: 'soon' is not a date"),
        (["--selection", "none"], 3, "there is no selection none"),
        (["--after", "nobody"], 3, "there is no task nobody"),
        (["--ids", "missing.txt"], 3, "--ids: cannot read missing.txt: No such file"),
        (["--ids", "names.txt"], 3, "2 of 3 tasks are not found: nobody (no task), 0123 (no task)"),
        (["--decontaminated", "no-such-list"], 3, "there is no benchmark list no-such-list"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, tasks: list[Task], options: list[str], code: int, message: str) -> None:
    (tmp_path / "names.txt").write_text(f"{tasks[0].name}\nnobody\n# 0123 is none\n0123\n")
    done = run_mergemill("tasks", "list", *options, cwd=tmp_path)
    assert done.exit_code == code
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("mergemill: ")
    assert message in done.stderr


def test_names_come_from_a_file_or_standard_input(tmp_path: Path, settings: Settings, tasks: list[Task]) -> None:
    wanted = [tasks[0].id, tasks[1].name, tasks[2].id[:20]]
    (tmp_path / "names.txt").write_text("# chosen\n\n" + "\n".join(wanted) + "\n" + wanted[0] + "\n")
    assert count("--ids", "names.txt", cwd=tmp_path) == 3
    done = subprocess.run(
        ["mergemill", "tasks", "list", "--ids", "-", "--count"],
        input="\n".join(wanted),
        cwd=tmp_path,
        env=make_command_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "3\n"
    assert select(settings, ids=",".join(wanted), license="mit") == [tasks[1].name]
    with pytest.raises(InputError, match="holds no id"):
        read_names("-", iter(["# nothing\n", "\n"]))


def test_a_selection_is_saved_used_and_deleted(tmp_path: Path, settings: Settings, tasks: list[Task]) -> None:
    saved = run_mergemill("tasks", "select", "small", "--license", "MIT", "--per-repo", "2", cwd=tmp_path)
    assert saved.stdout == "4\n"
    (listed,) = run_mergemill("tasks", "selections", "--json", cwd=tmp_path).lines
    assert listed == {"name": "small", "filters": {"license": "MIT", "per_repo": "2"}}
    assert len(select(settings, selection="small")) == 4
    assert len(select(settings, selection="small", **{"per-repo": "1"})) == 2
    assert len(select(settings, selection="small", license="apache-2.0", repo="ada/greet")) == 2
    renamed = run_mergemill("tasks", "select", "two words", cwd=tmp_path)
    assert (renamed.exit_code, "is no name of a selection" in renamed.stderr) == (2, True)
    assert run_mergemill("tasks", "select", "small", "--delete", cwd=tmp_path).exit_code == 0
    again = run_mergemill("tasks", "select", "small", "--delete", cwd=tmp_path)
    assert (again.exit_code, again.stdout) == (3, "")


def test_changes_of_benchmark_lists_are_excluded(tmp_path: Path, settings: Settings, tasks: list[Task]) -> None:
    everything = sorted(task.name for task in tasks)
    lists = {
        "repos.txt": "grace/cobol\n",
        "numbers.txt": "ada/greet#1\nADA/Greet#2\nelse/where#4\n",
        "instances.jsonl": '{"instance_id": "ada__greet-4", "repo": "ada/greet"}\n',
        "commits.jsonl": '{"repo": "ada/greet", "base_commit": "' + "b" * 40 + '"}\n',
    }
    for name, text in lists.items():
        (tmp_path / name).write_text(text)
    left = {name: select(settings, decontaminated=str(tmp_path / name)) for name in lists}
    assert left["repos.txt"] == [name for name in everything if name.startswith("ada")]
    assert left["numbers.txt"] == [n for n in everything if n not in ("ada__greet-1.bugfix", "ada__greet-2.bugfix")]
    assert left["instances.jsonl"] == [name for name in everything if name != "ada__greet-4.bugfix"]
    assert left["commits.jsonl"] == [name for name in everything if name.startswith("grace")]
    both = f"{tmp_path / 'repos.txt'},{tmp_path / 'numbers.txt'}"
    assert len(select(settings, decontaminated=both)) == 6


def test_all_commands_take_the_same_selection(tmp_path: Path, settings: Settings, tasks: list[Task]) -> None:
    options = ("--sample", "4", "--seed", "3", "--stratify", "repo", "--where", "n_fail_to_pass = 1")
    wanted = {line["name"] for line in run_mergemill("tasks", "list", *options, "--json", cwd=tmp_path).lines}
    assert len(wanted) == 4
    lines = run_mergemill("tasks", "search", "greeting", *options, "--json", cwd=tmp_path).lines
    assert {line["name"] for line in lines} == wanted
    assert run_mergemill("tasks", "stats", *options, "--json", cwd=tmp_path).json["tasks"] == 4
    for command in (["export"], ["images", "push"]):
        shown = run_mergemill(*command, "--help", cwd=tmp_path).stdout
        assert {"--where", "--sample", "--selection", "--ids"} <= set(shown.split())


def test_a_filter_by_pass_rate_names_missing_rollouts(tmp_path: Path, tasks: list[Task]) -> None:
    done = run_mergemill("tasks", "list", "--difficulty", "0.1:0.9", "--json", cwd=tmp_path)
    assert done.exit_code == 0
    assert done.stdout == ""
    assert done.stderr.splitlines() == ["mergemill: --difficulty selects no task: there are no rollouts"]


def run_in_terminal(*arguments: str, cwd: Path, **variables: str) -> str:
    """Run mergemill in a terminal and return what it shows."""
    ours, theirs = pty.openpty()
    environment = make_command_environment(TERM="xterm-256color", **variables) | {"COLUMNS": "60"}
    environment = {k: v for k, v in environment.items() if k != "NO_COLOR"} | variables
    with subprocess.Popen(["mergemill", *arguments], cwd=cwd, env=environment, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                block = os.read(ours, 65536)
            except OSError:  # Linux: the other side has been closed
                break
            if not block:
                break
            shown += block
        os.close(ours)
        assert process.wait() == 0, shown
    return shown.decode()


@pytest.mark.parametrize("columns", ["30", "40", "60"])
def test_bars_fit_into_a_narrow_terminal(columns: str, tmp_path: Path, tasks: list[Task]) -> None:
    with Store.open(f"sqlite:///{tmp_path}/mergemill.db") as store:
        add_lineage(store, 13, repo=f"grace/{'cobol' * 8}")
    shown = run_in_terminal("tasks", "stats", cwd=tmp_path, NO_COLOR="1", COLUMNS=columns)
    lines = shown.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
    assert max(map(len, lines)) <= int(columns)
    bars = {line.split()[0]: line.count("█") for line in lines if "█" in line}
    assert bars["grace/cobol"] == bars["Ada/Greet"] // 2 > 0


def test_stats_are_bars_on_a_terminal(tmp_path: Path, tasks: list[Task]) -> None:
    shown = run_in_terminal("tasks", "stats", cwd=tmp_path)
    assert "\x1b[36m" in shown
    plain = run_in_terminal("tasks", "stats", cwd=tmp_path, NO_COLOR="1")
    assert "\x1b[36m" not in plain
    lines = plain.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
    bars = {line.split()[0]: line.count("█") for line in lines if "█" in line}
    assert bars["grace/cobol"] * 2 == bars["Ada/Greet"] == 30
    ascii_only = run_in_terminal("tasks", "stats", cwd=tmp_path, PYTHONIOENCODING="ascii", NO_COLOR="1")
    assert "#" * 30 in ascii_only
    numbers: CommandResult = run_mergemill("tasks", "stats", "--json", cwd=tmp_path)
    assert numbers.json["repo"] == {"Ada/Greet": 8, "grace/cobol": 4}
    assert sum(bucket["n"] for bucket in numbers.json["histograms"]["underspecified"]) == 12
    assert numbers.json["histograms"]["n_fail_to_pass"] == [{"low": 1, "high": 2, "n": 12}]


def test_names_are_not_cut_in_a_narrow_terminal(tmp_path: Path, tasks: list[Task]) -> None:
    shown = run_in_terminal("tasks", "list", cwd=tmp_path)
    assert "…" not in shown
    assert all(task.name in shown.replace("\r", "").replace("\n", "") for task in tasks)


def test_a_default_status_holds_beside_every_kind_of_selection(settings: Settings, tasks: list[Task]) -> None:
    with Store.open(settings.storage.db) as store:
        for given in ({}, {"sample": "3"}, {"ids": tasks[0].name}):
            filters = resolve_filters(parse_filters(given), settings.storage, store, default_status="derived")
            assert queries.count_tasks(store, filters) == 0
        named = replace(parse_filters({"ids": tasks[0].name}), status="certified")
        resolved = resolve_filters(named, settings.storage, store, default_status="derived")
        assert queries.count_tasks(store, resolved) == 1
