"""The command line: commands, exit codes, JSON keys, one line for a mistake."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from mergemill.cli.commands import COMMANDS, WORLD_COMMANDS, CommandEntry, find_entry
from mergemill.cli.lazy_group import iterate_commands, load_command
from taskdb.artifacts import Artifacts
from taskdb.records import Stage
from taskdb.schema.mapping import RECORD_TABLES
from taskdb.schema.record_tables import TABLE_NAMES
from taskdb.store import Store
from tests.cli import CommandResult, make_command_environment, run_mergemill
from tests.helpers import TinyRepo
from tests.sample import make_sample
from tests.taskdb.lineages import add_lineage

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of a certified, a derived and a rejected change."""
    folder = tmp_path_factory.mktemp("original")
    artifacts = Artifacts(folder / "mergemill-store" / "artifacts")
    patches = {"gold_patch": artifacts.put(b"gold\n"), "test_patch": artifacts.put(b"test\n")}
    with Store.open(f"sqlite:///{folder}/mergemill.db") as store:
        add_lineage(store, 1, **patches)
        add_lineage(store, 2, to=Stage.DERIVE, **patches)
        add_lineage(store, 3, to=Stage.BUILD, **patches)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of that folder for one test."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return tmp_path


@cache
def load_commands() -> Mapping[tuple[str, ...], Any]:
    """Return every command by its words."""
    groups = (iterate_commands(load_command(entry), (name,)) for name, entry in COMMANDS.items())
    return dict(chain.from_iterable(groups))


# ------------------------------------------------------------------------------------------------------ reading


def test_tasks_list_has_the_keys_scripts_depend_on(folder: Path) -> None:
    done = run_mergemill("tasks", "list", "--json", cwd=folder)
    assert done.exit_code == 0
    assert [list(line) for line in done.lines] == 2 * [
        [
            "id",
            "name",
            "kind",
            "repo",
            "language",
            "status",
            "base_commit",
            "n_fail_to_pass",
            "n_pass_to_pass",
            "created_at",
        ]
    ]
    assert done.stderr == ""


def test_tasks_show_adds_statement_patches_and_origin(folder: Path) -> None:
    shown = run_mergemill("tasks", "show", "ada__greet-1.bugfix", "--json", cwd=folder).json
    wanted = (
        "problem_statement patch test_patch FAIL_TO_PASS PASS_TO_PASS image image_digest certified strength license"
        " source parents published"
    )
    assert set(wanted.split()) <= set(shown)
    assert shown["verification"] == {
        "dropped_canaries": False,
        "flaky": {},
        "weak_tests": [],
        "incidental_files": [],
        "skipped_share": 0.0,
        "written_tests": None,
    }
    assert (shown["patch"], shown["certified"]) == ("gold\n", True)


def test_commands_print_tables_without_json(folder: Path) -> None:
    listed = run_mergemill("tasks", "list", cwd=folder).stdout
    assert "ada__greet-1.bugfix" in listed
    assert "certified" in listed
    assert "--- patch\ngold\n" in run_mergemill("tasks", "show", "ada__greet-1.bugfix", cwd=folder).stdout
    assert "verify" in run_mergemill("funnel", cwd=folder).stdout
    why = run_mergemill("why", "ada__greet-1", cwd=folder).stdout
    assert "certify" in why
    assert "verification: with canaries; flaky tests left out: -" in why
    assert "status" in run_mergemill("tasks", "stats", cwd=folder).stdout
    assert "ada__greet-2" in run_mergemill("sql", "SELECT * FROM changes", cwd=folder).stdout


def test_a_task_is_shown_with_what_was_seen_of_it_and_without_a_rounded_0(folder: Path) -> None:
    artifacts = Artifacts(folder / "mergemill-store" / "artifacts")
    patches = {"gold_patch": artifacts.put(b"gold\n"), "test_patch": artifacts.put(b"test\n")}
    with Store.open(f"sqlite:///{folder}/mergemill.db") as store:
        add_lineage(store, 4, task_fields={"control_bound": 1 / 34_567}, **patches)
    lines = run_mergemill("tasks", "show", "ada__greet-4.bugfix", cwd=folder).stdout.splitlines()
    fields = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines if len(line.split()) > 1}
    assert (fields["gold"], fields["forger_passes"]) == ("passed 3 of 3", "1 in 34,000")
    assert fields["verdict"] == "no finding"
    assert "statement: no finding" in run_mergemill("why", "ada__greet-4", cwd=folder).stdout
    shown = run_mergemill("tasks", "show", "ada__greet-4.bugfix", "--json", cwd=folder).json
    assert (shown["verdict"]["unfair_tests"], "gold" in shown) == (0.4, False)


def test_filters_search_and_sql_answer_in_json(folder: Path) -> None:
    def names(*words: str) -> list[str]:
        return [line["name"] for line in run_mergemill(*words, "--json", cwd=folder).lines]

    assert names("tasks", "list", "--status", "certified") == ["ada__greet-1.bugfix"]
    assert names("tasks", "list", "--repo", "ada/other") == []
    assert names("tasks", "search", "fix", "2") == ["ada__greet-2.bugfix"]
    assert names("sql", "SELECT name FROM tasks ORDER BY name DESC LIMIT 1") == ["ada__greet-2.bugfix"]


def test_why_and_funnel_have_their_keys(folder: Path) -> None:
    story = run_mergemill("why", "ada__greet-1", "--json", cwd=folder).json
    parts = ["published", "tags", "verdict", "verification", "environment", "attempts", "runs", "mirrored"]
    assert list(story) == ["name", "source", "events", "tasks", *parts]
    assert list(story["events"][0]) == ["stage", "ok", "reason", "detail", "seconds", "at"]
    steps = run_mergemill("funnel", "--json", cwd=folder).lines
    assert [(step["stage"], step["out"]) for step in steps] == [
        ("mine", 3),
        ("build", 3),
        ("verify", 2),
        ("judge", 2),
        ("derive", 2),
        ("certify", 1),
    ]


# ----------------------------------------------------------------------------------------------- wrong and missing


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["frob"], 2, "No such command 'frob'"),
        (["tasks", "list", "--frob"], 2, "--frob"),
        (["tasks", "list", "--kind", "frob"], 2, "is not one of bugfix, feature"),
        (["run"], 2, "no source"),
        (["run", "frob:x"], 2, "is not a source"),
        (["mine", "git:nowhere"], 3, "nowhere"),
        (["mine", "git:.", "--limit", "0"], 2, "--limit"),
        (["mine", "git:.", "--since", "tomorrow"], 2, "--since"),
        (["tasks", "show", "frob"], 3, "there is no task frob"),
        (["why", "frob"], 3, "there is no change frob"),
        (["tasks", "list", "--db", "sqlite:///none.db"], 3, "there is no database"),
        (["tasks", "list", "--db", "sqlite:///text"], 3, "is not a database"),
        (["tasks", "list", "--db", "frob"], 3, "there is no database frob"),
        (["tasks", "list", "--db", "frob://x"], 2, "no database URL"),
        (["sql", "DROP TABLE task"], 2, "only reading"),
        (["sql", "SELECT frob FROM tasks"], 2, "no such column: frob"),
        (["export", "--format", "frob", "--out", "out"], 2, "no format 'frob'"),
        (["export", "--format", "swebench", "--out", "out", "--repo", "x/y"], 3, "no tasks"),
        (["grade", "ada__greet-1.bugfix"], 2, "one of"),
        (["grade", "ada__greet-1.bugfix", "--patch", "none"], 3, "cannot read the patch none"),
        (["grade", "ada__greet-1.bugfix", "--patch", "predictions.jsonl"], 2, "holds JSON, not a diff"),
        (["grade", "frob", "--noop"], 3, "there is no task frob"),
        (["why", "ada__greet-1", "--log"], 3, "no log"),
        (["--quiet", "--verbose", "funnel"], 2, "exclude"),
    ],
)
def test_a_mistake_is_reported_in_one_line(folder: Path, words: list[str], code: int, message: str) -> None:
    (folder / "text").write_text("no database, but long enough to be taken for one\n" * 99)
    (folder / "predictions.jsonl").write_text('{"instance_id": "a", "model_patch": "b"}\n{}\n')
    done = run_mergemill(*words, cwd=folder)
    assert done.exit_code == code, done
    line = done.stderr.splitlines()[0]
    assert line.startswith("mergemill: ")
    assert message in line
    assert "Traceback" not in done.stderr
    assert done.exit_code == 3 or len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["run", "git:greet"],
        ["grade", "ada__greet-1.bugfix", "--gold"],
        ["grade", "--predictions", "one.jsonl", "--out", "scores.jsonl"],
        ["images", "list"],
    ],
)
def test_without_docker_the_message_names_the_fix(folder: Path, words: list[str]) -> None:
    (folder / "one.jsonl").write_text('{"instance_id": "ada__greet-1", "model_patch": ""}\n')
    done = run_mergemill(*words, cwd=folder, DOCKER_HOST="unix:///nowhere.sock")
    assert done.exit_code == 4
    assert len(done.stderr.splitlines()) == 1
    assert "(" in done.stderr


def test_a_run_whose_kinds_need_no_environment_needs_no_docker(tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")

    def run_json(*words: str) -> CommandResult:
        return run_mergemill(*words, "--json", cwd=tmp_path, DOCKER_HOST="unix:///nowhere.sock")

    done = run_json("run", "git:ada__greet", "--kind", "review")
    assert (done.exit_code, done.stderr) == (0, "")
    assert {line["stage"] for line in done.lines[:-1]} == {"mine", "derive", "certify"}
    assert [done.lines[-1][key] for key in ("environments", "tasks", "certified")] == [0, {"review": 4}, 4]
    assert run_json("run", "git:ada__greet", "--kind", "review").lines[-1]["new"] == 0
    assert run_json("certify", "--kind", "review").exit_code == 0
    assert (
        run_json("run", "git:ada__greet", "--kind", "review,simulated").exit_code == 4
    )  # that is, where no build succeeds


def test_a_setting_is_an_option_a_variable_and_a_key_in_this_order(tmp_path: Path) -> None:
    def find_database(*words: str, **variables: str) -> str:
        return run_mergemill("tasks", "list", *words, cwd=tmp_path, **variables).stderr

    assert "mergemill.db" in find_database()
    (tmp_path / "mergemill.toml").write_text('db = "sqlite:///of-the-file.db"\n')
    assert "of-the-file.db" in find_database()
    assert "of-the-variable.db" in find_database(MERGEMILL_DB="sqlite:///of-the-variable.db")
    assert "of-the-option.db" in find_database("--db", "sqlite:///of-the-option.db", MERGEMILL_DB="sqlite:///v.db")
    (tmp_path / "mergemill.toml").write_text("frob = 1\n")
    assert "frob" in find_database()
    (tmp_path / "mergemill.toml").write_text("db = \n")
    assert "mergemill.toml" in find_database()


# ------------------------------------------------------------------------------------------------------- mining


def test_mining_prints_a_line_for_each_change_and_a_repetition_prints_none(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "greet")
    repo.commit("Begin", {"greet.py": "def hi():\n    return 'hi'\n", "LICENSE": "MIT License\n"})
    repo.commit(
        "Greet properly, as people expect it (#1)",
        {"greet.py": "def hi():\n    return 'hello'\n", "tests/test_greet.py": "def test_hi():\n    assert True\n"},
    )
    first = run_mergemill("mine", "git:greet", "--json", cwd=tmp_path)
    assert first.exit_code == 0, first.stderr
    assert first.lines[-1]["event"] == "summary"
    assert list(first.lines[-1]) == [
        "event",
        "new",
        "mined",
        "candidates",
        "environments",
        "verified",
        "tasks",
        "certified",
        "rejected",
        "seconds",
    ]
    accepted = [line for line in first.lines[:-1] if line["ok"]]
    assert [(line["event"], line["stage"], line["reason"]) for line in accepted] == [("record", "mine", None)]
    assert first.lines[-1]["new"] == len(first.lines) - 1
    again = run_mergemill("mine", "git:greet", "--json", cwd=tmp_path)
    assert (len(again.lines), again.lines[-1]["new"]) == (1, 0)


def test_a_terminal_shows_a_table_and_no_json(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "greet")
    repo.commit("Begin", {"greet.py": "x = 1\n"})
    command = ["script", "-qec", "mergemill mine git:greet; NO_COLOR=1 mergemill funnel", "/dev/null"]
    done = subprocess.run(
        command, cwd=tmp_path, env=make_command_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout  # the live table
    assert '"event"' not in done.stdout
    assert "\x1b[3" not in done.stdout.rpartition("this run:")[2]


def test_quiet_prints_nothing(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "greet")
    repo.commit("Begin", {"greet.py": "x = 1\n"})
    repo.commit("Go on (#1)", {"greet.py": "x = 2\n"})
    done = run_mergemill("--quiet", "mine", "git:greet", cwd=tmp_path)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_one_bad_source_does_not_stop_the_others(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "greet")
    repo.commit("Begin", {"greet.py": "x = 1\n"})
    repo.commit("Go on (#1)", {"greet.py": "x = 2\n"})
    (tmp_path / "list").write_text("git:nowhere  # not there\ngit:greet\n")
    done = run_mergemill("mine", "@list", "--json", cwd=tmp_path)
    assert done.exit_code == 3
    assert done.lines[-1]["mined"] > 0


def test_the_log_of_errors_is_never_on_standard_output(folder: Path) -> None:
    done = run_mergemill("mine", "git:nowhere", "--json", cwd=folder)
    assert all(json.loads(line)["event"] in ("problem", "summary") for line in done.stdout.splitlines())


def test_head_of_a_large_result_prints_no_error(folder: Path) -> None:
    command = "mergemill sql 'SELECT a.seq FROM event a, event b, event c, event d' --json | head -1"
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=make_command_environment(), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


# ---------------------------------------------------------------------------------------------------------- docs


@pytest.mark.parametrize("words", list(load_commands()), ids=" ".join)
def test_every_command_and_option_is_documented(words: tuple[str, ...]) -> None:
    page = (DOCS / "reference/cli.md").read_text()
    assert f"`mergemill {' '.join(words)}" in page
    command = load_commands()[words]
    options = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    assert {option for option in options if not re.search(rf"[` ]{option}\b", page)} == set()


# ---------------------------------------------------------------------------------------------------------- help

LISTING = """
import sys
from mergemill.cli import run_command_line
run_command_line(["--help"])
loaded = {module.partition(".")[0] for module in sys.modules}
heavy = loaded & {"pydantic", "sqlalchemy", "taskdb", "miner", "builders", "verifiers", "docker", "git"}
sys.exit(f"loaded: {heavy}" if heavy else 0)
"""


def test_the_list_of_commands_is_printed_without_loading_a_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTING],
        cwd=tmp_path,
        env=make_command_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(COMMANDS) <= set(done.stdout.split())


READING = """
import sys
from mergemill.cli import run_command_line
code = run_command_line(sys.argv[1:])
heavy = {"alembic", "docker", "git", "httpx", "pyarrow", "sqlalchemy.orm", "sqlglot", "sqlmodel"}
heavy |= {"taskdb.schema.tables"}
loaded = heavy & set(sys.modules)
sys.exit(f"loaded: {loaded}" if loaded else code)
"""


@pytest.mark.parametrize(
    "words",
    [
        ("tasks", "list"),
        ("tasks", "list", "--count", "--kind", "bugfix"),
        ("tasks", "show", "ada__greet-1.bugfix"),
        ("tasks", "search", "greet"),
        ("tasks", "stats"),
        ("tasks", "yields"),
        ("tasks", "selections"),
        ("funnel",),
        ("why", "ada__greet-1"),
    ],
    ids=" ".join,
)
def test_reading_does_not_make_the_classes_of_tables(folder: Path, words: tuple[str, ...]) -> None:
    """Their libraries and their making take longer than all else in the start of such a command."""
    done = subprocess.run(
        [sys.executable, "-c", READING, *words],
        cwd=folder,
        env=make_command_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


COLLECTING = """
import atexit, gc, sys
from mergemill.cli import COLLECTION_THRESHOLD, main
state = lambda: (gc.isenabled(), gc.get_threshold()[0] == COLLECTION_THRESHOLD, gc.get_freeze_count() > 1000)
atexit.register(lambda: sys.__stdout__.write(f"{state()}"))
main()
"""


def test_cycles_are_looked_for_once_a_command_is_imported(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECTING, "tasks", "list", "--count"],
        cwd=folder,
        env=make_command_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "2\n(True, True, True)", done.stderr


def test_records_have_the_tables_that_reading_names() -> None:
    assert {kind: row.__tablename__ for kind, (row, _) in RECORD_TABLES.items()} == TABLE_NAMES
    assert list(RECORD_TABLES) == list(TABLE_NAMES)


@pytest.mark.parametrize(
    "entry",
    [*COMMANDS.values(), *WORLD_COMMANDS.values()],
    ids=[*COMMANDS, *(f"worlds {command}" for command in WORLD_COMMANDS)],
)
def test_the_summary_of_a_command_begins_its_help(entry: CommandEntry) -> None:
    assert (load_command(entry).help or "").splitlines()[0] == entry.summary


@pytest.mark.parametrize(
    ("arguments", "entry"),
    [
        ("--quiet run git:x", COMMANDS["run"]),
        ("worlds list", WORLD_COMMANDS["list"]),
        ("worlds", COMMANDS["worlds"]),
        ("funnel worlds", COMMANDS["funnel"]),
        ("--help", None),
    ],
)
def test_the_entry_of_a_command_line_is_found(arguments: str, entry: CommandEntry | None) -> None:
    assert find_entry(arguments.split()) == entry


@pytest.mark.parametrize("words", list(load_commands()), ids=" ".join)
def test_every_command_has_an_example_that_parses(words: tuple[str, ...]) -> None:
    command = load_commands()[words]
    example = re.search(rf"Example: mergemill {' '.join(words)}(.*)", command.help or "")
    assert example, command.help
    command.make_context(words[-1], shlex.split(example[1]), resilient_parsing=True)


# -------------------------------------------------------------------------------------------------------- Ctrl-C

INTERRUPTED = """
import os, signal, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from mergemill import cli
from taskdb.queries import tasks as queries

def slow(*_, **__):
    ThreadPoolExecutor(1).submit(time.sleep, 60)  # a busy worker thread must not delay the exit
    os.kill(os.getpid(), signal.{name})
    time.sleep(60)

queries.list_tasks = slow
sys.argv[1:] = ["tasks", "list"]
cli.main()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_ctrl_c_and_sigterm_exit_at_once_with_130(name: str, folder: Path) -> None:
    script = INTERRUPTED.replace("{name}", name)
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=make_command_environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr == "mergemill: stopped\n"  # a query has nothing to continue


@pytest.mark.parametrize("words", [[], ["tasks"], ["images"], ["bundle"], ["skills"], ["db"]])
def test_a_group_alone_prints_its_help(words: list[str], tmp_path: Path) -> None:
    done = run_mergemill(*words, cwd=tmp_path)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == run_mergemill(*words, "-h", cwd=tmp_path).stdout
    assert "Usage" in done.stdout


@pytest.mark.parametrize("words", [[], ["run", "-h"], ["tasks", "list", "-h"], ["images", "push", "-h"]])
def test_help_cuts_no_name_in_a_narrow_terminal(words: list[str], tmp_path: Path) -> None:
    shown = run_mergemill(*words, cwd=tmp_path, COLUMNS="40").stdout
    assert "--" in shown
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
    assert max(map(len, shown.splitlines())) == 80


def test_completion_lists_commands_and_options(tmp_path: Path) -> None:
    variables = {"_MERGEMILL_COMPLETE": "complete_bash", "COMP_WORDS": "mergemill tasks ", "COMP_CWORD": "2"}
    assert "search" in run_mergemill(cwd=tmp_path, **variables).stdout.split()
    variables = {"_MERGEMILL_COMPLETE": "complete_bash", "COMP_WORDS": "mergemill funnel --re", "COMP_CWORD": "2"}
    assert run_mergemill(cwd=tmp_path, **variables).stdout.split() == ["--repo"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tasks list --kind test", ["test-writing"]),
        ("tasks list --status certified,re", ["certified,rejected"]),
        ("tasks list --change-kind docu", ["documentation"]),
        ("tasks list --split t", ["train", "test"]),
        ("tasks list --repo t", []),
        ("run --kind bugfix,a", ["bugfix,all"]),
        ("run --base-source ", ["auto", "registry", "debian"]),
        ("export --format swe", ["swe-smith", "swebench"]),
    ],
)
def test_completion_lists_the_words_of_an_option(line: str, words: list[str], tmp_path: Path) -> None:
    typed = f"mergemill {line}"
    place = str(len(typed.split(" ")) - 1)
    variables = {"_MERGEMILL_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": place}
    assert run_mergemill(cwd=tmp_path, **variables).stdout.split() == words


def test_the_database_may_be_a_file(folder: Path) -> None:
    by_url = run_mergemill("tasks", "list", "--json", "--db", "sqlite:///mergemill.db", cwd=folder)
    assert by_url.stdout
    assert run_mergemill("tasks", "list", "--json", "--db", "mergemill.db", cwd=folder).stdout == by_url.stdout
    elsewhere = run_mergemill("tasks", "list", "--json", "--db", str(folder / "mergemill.db"), cwd=folder.parent)
    assert elsewhere.stdout == by_url.stdout


def test_writing_where_it_is_not_permitted_is_no_reason_to_try_again(folder: Path) -> None:
    done = run_mergemill("mine", "git:greet", "--db", "/sys/mergemill/m.db", cwd=folder)
    assert done.exit_code == 3, done


# ------------------------------------------------------------------------------------------------- kinds of tasks


def test_yields_list_the_kinds_that_each_change_gave(folder: Path) -> None:
    done = run_mergemill("tasks", "yields", "--json", cwd=folder)
    assert [(row["change"], row["bugfix"], row["review"]) for row in done.lines] == [
        ("ada__greet-2", "derived", None),
        ("ada__greet-1", "certified", None),
    ]
    total = run_mergemill("tasks", "yields", "--total", "--json", cwd=folder)
    assert total.lines == [{"kind": "bugfix", "changes": 2, "tasks": 2, "certified": 1, "rejected": {}}]


def test_an_unknown_kind_is_a_usage_error_that_lists_the_kinds(folder: Path) -> None:
    done = run_mergemill("derive", "--kind", "review,injected", "--kind", "poem", cwd=folder)
    assert done.exit_code == 2
    assert "unknown kind poem" in done.stderr
    assert "test-writing" in done.stderr


@pytest.mark.parametrize("word", ["train", "train=1,test=1", "a/b=1", "train=x"])
def test_an_invalid_split_is_a_usage_error(folder: Path, word: str) -> None:
    done = run_mergemill("export", "--format", "swebench", "--out", "out", "--split", word, cwd=folder)
    assert done.exit_code == 2
    assert "such as train=0.9,test=0.1" in done.stderr
    assert not (folder / "out").exists()


def test_a_submission_of_another_kind_is_a_usage_error(folder: Path) -> None:
    (folder / "review.json").write_text('{"findings": []}')
    done = run_mergemill("grade", "ada__greet-1.bugfix", "--review", "review.json", cwd=folder)
    assert done.exit_code == 2
    assert "it takes --patch FILE" in done.stderr
