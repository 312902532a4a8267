"""The command line as people and scripts meet it: words, exit codes, JSON keys, one clear line for a mistake."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from mergemill.cli import app
from taskdb.artifacts import Artifacts
from taskdb.records import Stage
from taskdb.store import Store
from tests.cli import Said, environment, mergemill
from tests.helpers import TinyRepo
from tests.sample import make_sample
from tests.taskdb.chains import whole_chain

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a database of a certified, a derived and a rejected change."""
    artifacts = Artifacts(tmp_path / "mergemill-store" / "artifacts")
    patches = {"gold_patch": artifacts.put(b"gold\n"), "test_patch": artifacts.put(b"test\n")}
    with Store.open(f"sqlite:///{tmp_path}/mergemill.db") as store:
        whole_chain(store, 1, **patches)
        whole_chain(store, 2, to=Stage.DERIVE, **patches)
        whole_chain(store, 3, to=Stage.BUILD, **patches)
    return tmp_path


def commands(group: Any = None, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words."""
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*above, name))
        else:
            yield (*above, name), command


# ------------------------------------------------------------------------------------------------------ reading


def test_tasks_list_has_the_keys_scripts_depend_on(folder: Path) -> None:
    done = mergemill("tasks", "list", "--json", cwd=folder)
    assert done.code == 0
    assert [list(line) for line in done.lines] == 2 * [
        ["id", "name", "kind", "repo", "language", "status", "base_commit", "n_fail_to_pass", "n_pass_to_pass",
         "created_at"]
    ]  # fmt: skip
    assert done.err == ""


def test_tasks_show_adds_statement_patches_and_origin(folder: Path) -> None:
    shown = mergemill("tasks", "show", "ada__greet-1.bugfix", "--json", cwd=folder).json
    wanted = (
        "problem_statement patch test_patch FAIL_TO_PASS PASS_TO_PASS image image_digest certified strength license"
        " source parents published"
    )
    assert set(wanted.split()) <= set(shown)
    assert (shown["patch"], shown["certified"]) == ("gold\n", True)


def test_people_get_tables(folder: Path) -> None:
    listed = mergemill("tasks", "list", cwd=folder).out
    assert "ada__greet-1.bugfix" in listed
    assert "certified" in listed
    assert "--- patch\ngold\n" in mergemill("tasks", "show", "ada__greet-1.bugfix", cwd=folder).out
    assert "verify" in mergemill("funnel", cwd=folder).out
    assert "certify" in mergemill("why", "ada__greet-1", cwd=folder).out
    assert "status" in mergemill("tasks", "stats", cwd=folder).out
    assert "ada__greet-2" in mergemill("sql", "SELECT * FROM changes", cwd=folder).out


def test_filters_search_and_sql_answer_in_json(folder: Path) -> None:
    def names(*words: str) -> list[str]:
        return [line["name"] for line in mergemill(*words, "--json", cwd=folder).lines]

    assert names("tasks", "list", "--status", "certified") == ["ada__greet-1.bugfix"]
    assert names("tasks", "list", "--repo", "ada/other") == []
    assert names("tasks", "search", "fix", "2") == ["ada__greet-2.bugfix"]
    assert names("sql", "SELECT name FROM tasks ORDER BY name DESC LIMIT 1") == ["ada__greet-2.bugfix"]


def test_why_and_funnel_have_their_keys(folder: Path) -> None:
    story = mergemill("why", "ada__greet-1", "--json", cwd=folder).json
    assert list(story) == ["name", "source", "events", "tasks", "published", "tags", "verdict", "attempts"]
    assert list(story["events"][0]) == ["stage", "ok", "reason", "detail", "seconds", "at"]
    steps = mergemill("funnel", "--json", cwd=folder).lines
    assert [(step["stage"], step["out"]) for step in steps] == [
        ("mine", 3), ("build", 3), ("verify", 2), ("judge", 2), ("derive", 2), ("certify", 1),
    ]  # fmt: skip


# ----------------------------------------------------------------------------------------------- wrong and missing


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["frob"], 2, "No such command 'frob'"),
        (["tasks"], 2, "Missing command"),
        (["tasks", "list", "--frob"], 2, "--frob"),
        (["tasks", "list", "--kind", "frob"], 2, "'bugfix'"),
        (["run"], 2, "no source"),
        (["run", "frob:x"], 2, "is not a source"),
        (["mine", "git:nowhere"], 3, "nowhere"),
        (["mine", "git:.", "--limit", "0"], 2, "--limit"),
        (["mine", "git:.", "--since", "tomorrow"], 2, "--since"),
        (["tasks", "show", "frob"], 3, "there is no task frob"),
        (["why", "frob"], 3, "there is no change frob"),
        (["tasks", "list", "--db", "sqlite:///none.db"], 3, "there is no database"),
        (["tasks", "list", "--db", "sqlite:///text"], 3, "is not a database"),
        (["tasks", "list", "--db", "frob"], 2, "no database URL"),
        (["sql", "DROP TABLE task"], 2, "only reading"),
        (["sql", "SELECT frob FROM tasks"], 2, "no such column: frob"),
        (["export", "--format", "frob", "--out", "out"], 2, "no format 'frob'"),
        (["export", "--format", "swebench", "--out", "out", "--repo", "x/y"], 3, "no tasks"),
        (["grade", "ada__greet-1.bugfix"], 2, "one of"),
        (["grade", "ada__greet-1.bugfix", "--patch", "none"], 3, "cannot read the patch none"),
        (["grade", "ada__greet-1.bugfix", "--patch", "empty"], 3, "is empty"),
        (["grade", "frob", "--noop"], 3, "there is no task frob"),
        (["why", "ada__greet-1", "--log"], 3, "no log"),
        (["--quiet", "--verbose", "funnel"], 2, "exclude"),
    ],
)
def test_a_mistake_is_one_clear_line(folder: Path, words: list[str], code: int, said: str) -> None:
    (folder / "text").write_text("no database, but long enough to be taken for one\n" * 99)
    (folder / "empty").write_text("\n")
    done = mergemill(*words, cwd=folder)
    assert done.code == code, done
    line = done.err.splitlines()[0]
    assert line.startswith("mergemill: ")
    assert said in line
    assert "Traceback" not in done.err
    assert done.code == 3 or len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    "words", [["run", "git:greet"], ["grade", "ada__greet-1.bugfix", "--gold"], ["images", "list"]]
)
def test_without_docker_the_fix_is_named(folder: Path, words: list[str]) -> None:
    done = mergemill(*words, cwd=folder, DOCKER_HOST="unix:///nowhere.sock")
    assert done.code == 4
    assert len(done.err.splitlines()) == 1
    assert "(" in done.err


def test_a_run_whose_kinds_need_no_environment_needs_no_docker(tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")

    def told(*words: str) -> Said:
        return mergemill(*words, "--json", cwd=tmp_path, DOCKER_HOST="unix:///nowhere.sock")

    done = told("run", "git:ada__greet", "--kind", "review")
    assert (done.code, done.err) == (0, "")
    assert {line["stage"] for line in done.lines[:-1]} == {"mine", "derive", "certify"}
    assert [done.lines[-1][key] for key in ("environments", "tasks", "certified")] == [0, {"review": 4}, 4]
    assert told("run", "git:ada__greet", "--kind", "review").lines[-1]["new"] == 0
    assert told("certify", "--kind", "review").code == 0
    assert told("run", "git:ada__greet", "--kind", "review,simulated").code == 4  # that is, where no build succeeds


def test_a_setting_is_an_option_a_variable_and_a_key_in_this_order(tmp_path: Path) -> None:
    def asked(*words: str, **variables: str) -> str:
        return mergemill("tasks", "list", *words, cwd=tmp_path, **variables).err

    assert "mergemill.db" in asked()
    (tmp_path / "mergemill.toml").write_text('db = "sqlite:///of-the-file.db"\n')
    assert "of-the-file.db" in asked()
    assert "of-the-variable.db" in asked(MERGEMILL_DB="sqlite:///of-the-variable.db")
    assert "of-the-option.db" in asked("--db", "sqlite:///of-the-option.db", MERGEMILL_DB="sqlite:///v.db")
    (tmp_path / "mergemill.toml").write_text("frob = 1\n")
    assert "frob" in asked()
    (tmp_path / "mergemill.toml").write_text("db = \n")
    assert "mergemill.toml" in asked()


# ------------------------------------------------------------------------------------------------------- mining


def test_mining_prints_a_line_for_each_change_and_again_nothing(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "greet")
    repo.commit("Begin", {"greet.py": "def hi():\n    return 'hi'\n", "LICENSE": "MIT License\n"})
    repo.commit(
        "Greet properly, as people expect it (#1)",
        {"greet.py": "def hi():\n    return 'hello'\n", "tests/test_greet.py": "def test_hi():\n    assert True\n"},
    )
    first = mergemill("mine", "git:greet", "--json", cwd=tmp_path)
    assert first.code == 0, first.err
    assert first.lines[-1]["event"] == "summary"
    assert list(first.lines[-1]) == [
        "event", "new", "mined", "candidates", "environments", "verified", "tasks", "certified", "rejected", "seconds",
    ]  # fmt: skip
    told = [line for line in first.lines[:-1] if line["ok"]]
    assert [(line["event"], line["stage"], line["reason"]) for line in told] == [("record", "mine", None)]
    assert first.lines[-1]["new"] == len(first.lines) - 1
    again = mergemill("mine", "git:greet", "--json", cwd=tmp_path)
    assert (len(again.lines), again.lines[-1]["new"]) == (1, 0)


def test_a_terminal_shows_a_table_and_no_json(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "greet")
    repo.commit("Begin", {"greet.py": "x = 1\n"})
    command = ["script", "-qec", "mergemill mine git:greet; NO_COLOR=1 mergemill funnel", "/dev/null"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout  # the live table
    assert '"event"' not in done.stdout
    assert "\x1b[3" not in done.stdout.rpartition("this run:")[2]


def test_quiet_says_nothing(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "greet")
    repo.commit("Begin", {"greet.py": "x = 1\n"})
    repo.commit("Go on (#1)", {"greet.py": "x = 2\n"})
    done = mergemill("--quiet", "mine", "git:greet", cwd=tmp_path)
    assert (done.code, done.out, done.err) == (0, "", "")


def test_one_bad_source_does_not_stop_the_others(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "greet")
    repo.commit("Begin", {"greet.py": "x = 1\n"})
    repo.commit("Go on (#1)", {"greet.py": "x = 2\n"})
    (tmp_path / "list").write_text("git:nowhere  # not there\ngit:greet\n")
    done = mergemill("mine", "@list", "--json", cwd=tmp_path)
    assert done.code == 3
    assert done.lines[-1]["mined"] > 0


def test_the_log_of_errors_is_never_on_standard_output(folder: Path) -> None:
    done = mergemill("mine", "git:nowhere", "--json", cwd=folder)
    assert all(json.loads(line)["event"] in ("problem", "summary") for line in done.out.splitlines())


def test_who_reads_only_the_beginning_is_not_bothered(folder: Path) -> None:
    command = "mergemill sql 'SELECT a.seq FROM event a, event b, event c, event d' --json | head -1"
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


# ---------------------------------------------------------------------------------------------------------- docs


@pytest.mark.parametrize("words", [words for words, _ in commands()], ids=" ".join)
def test_every_command_and_option_is_documented(words: tuple[str, ...]) -> None:
    page = (DOCS / "cli.md").read_text()
    assert f"`mergemill {' '.join(words)}" in page
    command = dict(commands())[words]
    options = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    assert {option for option in options if not re.search(rf"[` ]{option}\b", page)} == set()


# -------------------------------------------------------------------------------------------------------- Ctrl-C

INTERRUPTED = """
import os, signal, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from mergemill import cli
from taskdb import queries

def slow(*_):
    ThreadPoolExecutor(1).submit(time.sleep, 60)  # what a worker leaves behind must not hold up the end
    os.kill(os.getpid(), signal.{name})
    time.sleep(60)

queries.list_tasks = slow
sys.argv[1:] = ["tasks", "list"]
cli.main()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_ctrl_c_or_a_service_that_is_stopped_leaves_at_once_with_130(name: str, folder: Path) -> None:
    script = INTERRUPTED.replace("{name}", name)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment(), capture_output=True, text=True, timeout=30,
        check=False,
    )  # fmt: skip
    assert done.returncode == 130
    assert done.stderr == "mergemill: stopped; the same command goes on from here\n"


# ------------------------------------------------------------------------------------------------- kinds of tasks


def test_yields_tell_of_each_change_which_kinds_it_gave(folder: Path) -> None:
    done = mergemill("tasks", "yields", "--json", cwd=folder)
    assert [(row["change"], row["bugfix"], row["review"]) for row in done.lines] == [
        ("ada__greet-2", "derived", None), ("ada__greet-1", "certified", None),
    ]  # fmt: skip
    total = mergemill("tasks", "yields", "--total", "--json", cwd=folder)
    assert total.lines == [{"kind": "bugfix", "changes": 2, "tasks": 2, "certified": 1, "rejected": {}}]


def test_a_kind_that_is_none_is_a_usage_error_that_names_them(folder: Path) -> None:
    done = mergemill("derive", "--kind", "review,injected", "--kind", "poem", cwd=folder)
    assert done.code == 2
    assert "there is no kind poem" in done.err
    assert "test-writing" in done.err


@pytest.mark.parametrize("word", ["train", "train=1,test=1", "a/b=1", "train=x"])
def test_a_split_that_is_none_is_a_usage_error(folder: Path, word: str) -> None:
    done = mergemill("export", "--format", "swebench", "--out", "out", "--split", word, cwd=folder)
    assert done.code == 2
    assert "such as train=0.9,test=0.1" in done.err
    assert not (folder / "out").exists()


def test_a_submission_of_another_kind_is_a_usage_error(folder: Path) -> None:
    (folder / "review.json").write_text('{"findings": []}')
    done = mergemill("grade", "ada__greet-1.bugfix", "--review", "review.json", cwd=folder)
    assert done.code == 2
    assert "it takes --patch FILE" in done.err
