"""What cannot be used, and what breaks in mid-run: one clear line, the right exit code, nothing lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli import (
    WITH_KEPT_RUNS,
    WITHOUT_CONTROLS,
    WITHOUT_REPAIR,
    CommandResult,
    OpenCommand,
    make_command_environment,
    open_mergemill,
    run_mergemill,
)
from tests.helpers import TinyRepo
from tests.miner.pypi.index import run_index
from tests.sample import COUNT_RIGHT, TEST_COUNT_RIGHT, make_sample
from tests.socket_proxy import EngineSocketProxy

SOURCE = "git:ada__greet"
TASKS = ["ada__greet-1.bugfix", "ada__greet-3.bugfix"]


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the sample and its candidates, for commands that fail before they change anything."""
    folder = tmp_path_factory.mktemp("mined")
    make_sample(folder / "ada__greet")
    assert run_mergemill("mine", SOURCE, cwd=folder).exit_code == 0
    return folder


def list_certified(folder: Path, *words: str) -> list[str]:
    listed = run_mergemill("tasks", "list", "--status", "certified", "--json", *words, cwd=folder)
    return sorted(row["name"] for row in listed.lines)


def assert_one_line(done: CommandResult, code: int, expected: str) -> None:
    """Assert that a mistake is reported in one line without a traceback."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("mergemill: ")]
    assert done.exit_code == code, done
    assert len(lines) == 1, done.stderr
    assert expected in lines[0]
    assert "Traceback" not in done.stderr


# ------------------------------------------------------------------------------------------------------ sources


def no_repository(folder: Path) -> str:
    (folder / "plain").mkdir()
    return "git:plain"


def nothing_there(folder: Path) -> str:
    del folder
    return "git:nowhere"


def empty(folder: Path) -> str:
    TinyRepo(folder / "empty")
    return "git:empty"


def shallow(folder: Path) -> str:
    repo = make_sample(folder / "whole")
    repo.git("clone", "-q", "--depth", "1", f"file://{repo.path}", str(folder / "shallow"))
    return "git:shallow"


def partial(folder: Path) -> str:
    repo = make_sample(folder / "whole")
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.git("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{repo.path}", str(folder / "partial"))
    return "git:partial"


def no_such_file(folder: Path) -> str:
    del folder
    return "instances:none.jsonl"


SOURCES = {
    no_repository: "plain is not a git repository (name the folder that holds .git)",
    nothing_there: "nowhere is not a git repository (there is no such folder)",
    empty: "empty is an empty repository (its HEAD has no commits)",
    shallow: "shallow fetch --unshallow)",
    partial: "partial is a partial clone (clone it again without --filter)",
    no_such_file: "none.jsonl",
}


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_an_unusable_source_is_reported_in_one_line_and_the_others_are_processed(make, tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")
    done = run_mergemill("mine", make(tmp_path), SOURCE, cwd=tmp_path)
    assert_one_line(done, 3, SOURCES[make])
    assert len(run_mergemill("sql", "SELECT * FROM candidates", "--json", cwd=tmp_path).lines) == 2


def test_an_unknown_package_is_an_input_error(tmp_path: Path) -> None:
    with run_index() as index:
        done = run_mergemill("mine", "pypi:no-such-package", cwd=tmp_path, PIP_INDEX_URL=index.url)
    assert_one_line(done, 3, "no-such-package")


def test_an_index_that_does_not_answer_is_a_transient_failure(tmp_path: Path) -> None:
    with run_index() as index:
        url = index.url  # no server listens there after this block
    done = run_mergemill("mine", "pypi:anything", cwd=tmp_path, PIP_INDEX_URL=url)
    assert_one_line(done, 75, "cannot reach")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["mine", "svn:greet"], "'svn:greet' is not a source (use github:OWNER/NAME, git:PATH_OR_URL"),
        (["mine", "greet"], "'greet' is not a source"),
        (["mine"], "no source is named"),
        (["mine", SOURCE, "--frob"], "No such option: --frob"),
        (["mine", SOURCE, "--cluster", "head:1"], "--cluster: head:1 is unknown"),
        (["mine", SOURCE, "--llm", "ftp://model"], "--llm"),
        (["mine", SOURCE, "--llm", "http://model/v1"], "--model"),
        (["mine", SOURCE, "--language", "cobol"], "--language"),
        (["mine", SOURCE, "--kind", "poem"], "--kind"),
        (["mine", SOURCE, "--limit", "0"], "--limit"),
        (["export", "--format", "frob", "--out", "out"], "no format 'frob'"),
    ],
)
def test_invalid_arguments_are_a_usage_error(mined: Path, words: list[str], expected: str) -> None:
    assert_one_line(run_mergemill(*words, cwd=mined), 2, expected)


def test_valid_values_of_cluster_model_and_language_are_accepted(tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")
    words = ["--cluster", "local", "--llm", "off", "--language", "python", "--kind", "bugfix"]
    assert run_mergemill("mine", SOURCE, *words, "--json", cwd=tmp_path).lines[-1]["candidates"] == 2


@pytest.mark.parametrize(
    "words", [["tasks", "show", "frob"], ["why", "frob"], ["grade", "frob", "--gold"], ["images", "audit", "frob"]]
)
def test_a_missing_task_is_an_input_error(mined: Path, words: list[str]) -> None:
    assert_one_line(run_mergemill(*words, cwd=mined), 3, "frob")


@pytest.mark.parametrize(
    "words", [["tasks", "show", "\udcff"], ["trajectories", "list", "--model", "\udcff"], ["grade", "\udcff", "--noop"]]
)
def test_a_name_that_is_not_utf_8_is_nobodys(mined: Path, words: list[str]) -> None:
    assert_one_line(run_mergemill(*words, cwd=mined), 3, "names are UTF-8")


@pytest.mark.parametrize("words", [["mine", SOURCE], ["tasks", "list"], ["funnel"], ["images", "audit", "x"]])
def test_a_file_that_is_not_a_database_is_an_input_error(tmp_path: Path, words: list[str]) -> None:
    make_sample(tmp_path / "ada__greet")
    content = "no database, but long enough to be taken for one\n" * 99
    (tmp_path / "mergemill.db").write_text(content)
    assert_one_line(run_mergemill(*words, cwd=tmp_path), 3, "is not a database")
    assert (tmp_path / "mergemill.db").read_text() == content


@pytest.mark.parametrize(
    "words",
    [
        ["grade", "ada__greet-1.bugfix", "--patch", "pipe"],
        ["tasks", "list", "--ids", "pipe"],
        ["mine", "@pipe"],
        ["mine", "instances:pipe"],
        ["judge", "instances:pipe"],
        ["tags", "pipe"],
        ["tasks", "list", "--db", "pipe"],
        ["repos", "--no-api", "--gharchive", "pipe"],
        ["repos", "@pipe"],
        ["repos", "--no-api", "git:ada__greet", "--out", "pipe"],
        *(["bundle", "import", f"pipe{suffix}", "--format", "swebench"] for suffix in ("", ".json", ".parquet")),
    ],
    ids=" ".join,
)
def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path: Path, words: list[str]) -> None:
    make_sample(tmp_path / "ada__greet")
    for name in ("pipe", "pipe.json", "pipe.parquet"):
        os.mkfifo(tmp_path / name)
    done = run_mergemill(*words, cwd=tmp_path)
    assert (done.exit_code, "is not a regular file" in done.stderr) == (3, True), done
    assert "Traceback" not in done.stderr


def test_standard_input_and_the_output_of_a_command_are_read(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text('{"message": "Fix a crash"}\n')
    for command in (
        "mergemill tags <(cat rows)",
        "mergemill tags /dev/stdin < rows",
        "cat rows | mergemill tags /dev/stdin",
    ):
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=make_command_environment(), capture_output=True, check=False
        )
        assert (done.returncode, done.stdout[:10]) == (0, b"1: bugfix "), done


def test_names_of_files_do_not_move_the_cursor_or_begin_a_message(tmp_path: Path) -> None:
    for name in ("a\x1b[2Jb", "a\nmergemill: all is well", "\u202ea"):
        (tmp_path / "set" / name).mkdir(parents=True)
        (tmp_path / "set" / name / "task.toml").write_text("")
    done = run_mergemill("bundle", "import", "set", "--format", "harbor", cwd=tmp_path)
    assert (done.exit_code, len(done.stderr.splitlines())) == (3, 4), done
    assert all(character.isprintable() or character == "\n" for character in done.stderr)
    assert "\nmergemill: all" not in done.stderr
    unknown = run_mergemill("tasks", "show", "a\x1b[2Jb\nc", "--db", "none\x1b.db", cwd=tmp_path)
    assert (unknown.exit_code, len(unknown.stderr.splitlines()), "\x1b" in unknown.stderr) == (3, 1, False)


def test_a_file_of_terabytes_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "patch").open("wb") as file:
        file.truncate(2 << 40)
    assert_one_line(run_mergemill("grade", "x", "--patch", "patch", cwd=tmp_path), 3, "has more than 1024 MB")


def instance(repo: TinyRepo, name: str) -> dict[str, object]:
    """The sample's last change as a published task."""
    return {
        "instance_id": name,
        "repo": "ada/greet",
        "base_commit": repo.git("rev-parse", "HEAD^"),
        "version": "1.0",
        "patch": repo.git("diff", "HEAD^", "--", "greet") + "\n",
        "test_patch": repo.git("diff", "HEAD^", "--", "tests") + "\n",
        "problem_statement": "Words are miscounted where gaps are wide.",
        "created_at": "2024-03-01T10:00:00Z",
        "FAIL_TO_PASS": ["tests/test_words.py::test_wide_gaps"],
        "PASS_TO_PASS": [],
    }


def test_a_malformed_line_is_reported_with_its_number_and_the_others_are_processed(tmp_path: Path) -> None:
    repo = make_sample(tmp_path / "ada__greet")
    rows = [json.dumps(instance(repo, "ada__greet-7")), '{"instance_id": "torn', json.dumps(instance(repo, "last"))]
    (tmp_path / "tasks.jsonl").write_text("\n".join(rows) + "\n")
    done = run_mergemill("mine", "instances:tasks.jsonl", "--clones", ".", cwd=tmp_path)
    assert_one_line(done, 3, "tasks.jsonl:2: it is not JSON")
    lines = run_mergemill("sql", "SELECT name FROM candidates ORDER BY name", "--json", cwd=tmp_path).lines
    assert [row["name"] for row in lines] == ["ada__greet-7", "last"]


# ------------------------------------------------------------------------------------------------------- engine


def test_a_missing_engine_is_reported_with_the_fix(tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")
    done = run_mergemill("run", SOURCE, cwd=tmp_path, DOCKER_HOST="unix:///nonexistent")
    assert_one_line(done, 4, "(scripts/setup docker)")
    assert done.stdout == ""


@contextmanager
def running(folder: Path, *words: str, **variables: str) -> Iterator[OpenCommand]:
    """Start `mergemill run` and yield it when its first change is built."""
    with open_mergemill("run", SOURCE, "--json", *words, cwd=folder, **variables) as driver:
        for line in driver.stdout:
            if json.loads(line).get("stage") == "build":
                break
        time.sleep(2)  # it is verified now
        yield driver


@pytest.mark.docker
def test_an_engine_that_dies_during_a_run_loses_no_result(tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")
    cable = EngineSocketProxy(tmp_path / "docker.sock")
    try:
        with running(tmp_path, DOCKER_HOST=f"unix://{cable.path}", **WITHOUT_CONTROLS) as driver:
            cable.disconnect()
            out, err = driver.stdout.read(), driver.stderr.read()
            exit_code = driver.process.wait(timeout=120)
    finally:
        cable.disconnect()
    assert exit_code == 75, err
    assert "scripts/setup docker" in err
    assert "Traceback" not in err
    assert [line["rejected"] for line in map(json.loads, out.splitlines()) if line["event"] == "summary"] == [
        {"no-base": 1, "no-source": 1}
    ]
    again = run_mergemill("run", SOURCE, cwd=tmp_path, **WITHOUT_CONTROLS)
    assert again.exit_code == 0, again.stderr
    assert list_certified(tmp_path) == TASKS


# --------------------------------------------------------------------------------------------------------- disk


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A folder on a disk of two megabytes."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a disk cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(disk: Path, leave: int) -> None:
    """Write until only `leave` bytes are free."""
    free = int(subprocess.run(["stat", "-fc", "%a", str(disk)], capture_output=True, check=True).stdout) * 4096
    (disk / "ballast").write_bytes(bytes(free - leave))


@pytest.mark.docker
@pytest.mark.parametrize("what", ["--store", pytest.param("--db", marks=pytest.mark.slow)])
def test_a_full_disk_during_a_run_loses_no_result(what: str, tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")
    with small_disk(tmp_path / "disk") as disk:
        place = "disk/store" if what == "--store" else f"sqlite:///{disk}/tasks.db"
        assert run_mergemill("mine", SOURCE, what, place, cwd=tmp_path).exit_code == 0
        fill(disk, leave=12 * 1024 if what == "--store" else 120 * 1024)
        full = run_mergemill("run", SOURCE, what, place, cwd=tmp_path, **WITHOUT_CONTROLS, **WITH_KEPT_RUNS)
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        before = run_mergemill("funnel", "--json", what, place, cwd=tmp_path).lines
        again = run_mergemill("run", SOURCE, what, place, cwd=tmp_path, **WITHOUT_CONTROLS, **WITH_KEPT_RUNS)
        done = list_certified(tmp_path, what, place)

    assert full.exit_code == 75, full.stderr
    assert "free some space" in full.stderr
    assert "Traceback" not in full.stderr
    assert (before[0]["in"], before[0]["out"]) == (4, 2)
    assert sum(sum(row["rejected"].values()) for row in before) == 2
    assert again.exit_code == 0, again.stderr
    assert done == TASKS


# ------------------------------------------------------------------------------------------------------- Ctrl-C


@pytest.mark.docker
def test_ctrl_c_ends_a_run_within_seconds_and_the_same_command_finishes(tmp_path: Path) -> None:
    repo = make_sample(tmp_path / "ada__greet")
    endless = "import time\n\ndef test_endless():\n    time.sleep(10_000)\n"
    repo.commit(
        "Count right once more (#9)\n\nIt was wrong for texts of many words.",
        {
            "greet/words.py": COUNT_RIGHT.replace("words.", "words.lower()."),
            "tests/test_words.py": TEST_COUNT_RIGHT + "\n\n" + endless,
        },
    )
    only = ["--only", "ada__greet-9"]
    with running(tmp_path, *only, **WITHOUT_REPAIR) as driver:
        started = time.monotonic()
        os.kill(driver.process.pid, signal.SIGINT)
        err = driver.stderr.read()
        exit_code = driver.process.wait(timeout=60)
        took = time.monotonic() - started
    story = run_mergemill("why", "ada__greet-9", "--json", cwd=tmp_path).json["events"]

    assert exit_code == 130, err
    assert took < 10
    assert "Traceback" not in err
    assert "the same command continues from here" in err
    assert [(event["stage"], event["ok"]) for event in story] == [("mine", True), ("build", True)]

    again = run_mergemill("run", SOURCE, *only, "--test-timeout", "5", cwd=tmp_path, **WITHOUT_REPAIR)
    story = run_mergemill("why", "ada__greet-9", "--json", cwd=tmp_path).json["events"]
    assert again.exit_code == 0, again.stderr
    assert (story[-1]["stage"], story[-1]["reason"]) == ("verify", "killed-by-time")
