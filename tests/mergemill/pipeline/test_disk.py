"""Disks that are full or read-only: nothing stored is lost, and what can be read is read.

Root may write to anything by its modes, so the disks are real mounts; without the right to mount the tests are skipped.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from exporters.bundle_records import RECORDS_FILE
from tests.cli import CommandResult, make_command_environment, run_mergemill
from tests.command_server import start_command_server
from tests.history import make_history
from tests.taskdb.content import read_content
from tests.taskdb.lineages import make_url

CHANGES = 6
MEGABYTE = 1 << 20
NOBODY = 65534


def mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mounting is not permitted: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Folder on a disk of eight megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder))
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a repository, and a database and a store with its tasks."""
    folder = tmp_path_factory.mktemp("calm")
    make_history(folder / "ada__sums", CHANGES)
    done = run_mergemill("run", "git:ada__sums", "--kind", "review", "--db", make_url(folder), cwd=folder)
    assert done.exit_code == 0, done.stderr
    return folder


def test_a_full_disk_ends_a_run_with_75_and_the_same_command_completes_it(small_disk: Path, calm: Path) -> None:
    url, store = make_url(small_disk), str(small_disk.parent / "store")
    command = ("run", "git:ada__sums", "--kind", "review", "--db", url, "--store", store)
    first = run_mergemill("sql", "SELECT 1", "--db", url, cwd=calm)
    assert first.exit_code == 3
    assert run_mergemill("mine", "git:ada__sums", "--limit", "1", *command[4:], cwd=calm).exit_code == 0
    before = read_content(url)
    free = shutil.disk_usage(small_disk).free
    (small_disk / "filler").write_bytes(b"x" * (free - 64 * 1024))
    full = run_mergemill(*command, cwd=calm)
    assert full.exit_code == 75, full.stderr
    assert "Traceback" not in full.stderr
    assert "disk is full" in full.stderr
    with sqlite3.connect(small_disk / "m.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    (small_disk / "filler").unlink()
    kept = read_content(url)
    assert all(set(before[name]) <= set(kept[name]) for name in ("pull_request", "candidate"))
    assert run_mergemill(*command, cwd=calm).exit_code == 0
    assert read_content(url) == read_content(make_url(calm))


@pytest.fixture
def read_only_disk(calm: Path, tmp_path: Path) -> Iterator[Path]:
    """The folder of `calm` on a disk that cannot be written."""
    folder = tmp_path / "archive"
    folder.mkdir()
    mount("--bind", "-o", "ro", str(calm), str(folder))
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize(
    "command",
    [
        ("tasks", "list"),
        ("tasks", "list", "--kind", "review", "--count"),
        ("tasks", "stats"),
        ("tasks", "search", "apples"),
        ("tasks", "show", "ada__sums-2.review-1"),
        ("why", "ada__sums-2"),
        ("funnel",),
        ("sql", "SELECT count(*) FROM tasks"),
    ],
    ids=" ".join,
)
def test_a_read_only_disk_is_read(read_only_disk: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    name = find_review(read_only_disk)
    words = [word.replace("ada__sums-2.review-1", name) for word in command]
    done = run_mergemill(*words, "--db", make_url(read_only_disk), cwd=tmp_path)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout


def test_tasks_on_a_read_only_disk_are_exported(read_only_disk: Path, tmp_path: Path) -> None:
    command = ("export", "--format", "harbor", "--out", str(tmp_path / "bundle"), "--db", make_url(read_only_disk))
    done = run_mergemill(*command, cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "bundle" / "manifest.json").exists()


WRITING_COMMANDS = [
    ("mine", "git:ada__sums"),
    ("mine", "git:ada__sums", "--store", "{spare}"),
    ("run", "git:ada__sums", "--kind", "review"),
    ("run", "git:ada__sums", "--kind", "review", "--json"),
    ("judge",),
    ("derive", "--kind", "review"),
    ("certify", "--store", "{spare}"),
    ("db", "compact"),
    ("export", "--format", "harbor", "--out", "bundle"),
    ("bundle", "import", "{spare}/bundle"),
    ("bundle", "import", "{spare}/bundle", "--db", "sqlite:///{spare}/new.db", "--store", "new"),
    ("bundle", "import", "{spare}/rows.jsonl", "--format", "swebench"),
]


@pytest.fixture(scope="module")
def spare(calm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that can be written, with a bundle of the tasks of `calm`, and one row of a foreign set."""
    folder = tmp_path_factory.mktemp("spare")
    command = ("export", "--format", "harbor", "--out", str(folder / "bundle"), "--db", make_url(calm))
    assert run_mergemill(*command, cwd=calm).exit_code == 0
    row = {"instance_id": "a__b-1", "repo": "a/b", "base_commit": "a" * 40, "problem_statement": "", "FAIL_TO_PASS": []}
    (folder / "rows.jsonl").write_text(json.dumps(row | {"patch": "", "test_patch": ""}))
    return folder


@pytest.mark.parametrize("command", WRITING_COMMANDS, ids=" ".join)
def test_writing_to_a_read_only_disk_is_one_line_with_exit_code_3(
    read_only_disk: Path, spare: Path, command: tuple[str, ...]
) -> None:
    words = [word.format(spare=spare) for word in command]
    database = () if "--db" in words else ("--db", make_url(read_only_disk))
    done = run_mergemill(*words, *database, cwd=read_only_disk)
    assert (done.exit_code, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert "is read-only" in line or "Read-only file system" in line
    assert "writable" in line


@pytest.mark.parametrize("command", ["grade", "audit"])
def test_a_task_on_a_read_only_disk_is_graded_and_the_score_is_not_stored(read_only_disk: Path, command: str) -> None:
    options = ("--gold",) if command == "grade" else ()
    name = find_review(read_only_disk)
    done = run_mergemill(command, name, *options, "--json", "--db", make_url(read_only_disk), cwd=read_only_disk)
    assert done.exit_code == 0, done.stderr
    assert done.json["task"] == name
    (line,) = done.stderr.splitlines()
    assert "not stored" in line


@pytest.mark.parametrize("where", ["database", "store"])
def test_a_folder_of_another_user_is_one_line_with_exit_code_3(calm: Path, tmp_path: Path, where: str) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store").chmod(0o755 if where == "store" else 0o777)
    (tmp_path / "new").mkdir()
    (tmp_path / "new").chmod(0o777)
    let_others_in(tmp_path, calm)
    database = make_url(calm if where == "database" else tmp_path / "new")
    command = ("mine", f"git:{calm}/ada__sums", "--db", database, "--store", str(tmp_path / "store"))
    done = run_as_nobody(*command, cwd=tmp_path)
    assert (done.exit_code, done.stdout) == (3, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert ("is read-only" if where == "database" else "Permission denied") in line


@pytest.mark.parametrize(
    ("secret", "command"),
    [
        ("mergemill.toml", ("tasks", "list")),
        ("bundle/manifest.json", ("bundle", "verify", "bundle")),
        (f"bundle/{RECORDS_FILE}", ("bundle", "verify", "bundle")),
        ("rows.jsonl", ("bundle", "import", "rows.jsonl", "--format", "swebench", "--store", "new")),
        ("rows.jsonl", ("grade", "ada__sums-1.review-1", "--review", "rows.jsonl")),
        ("store", ("tasks", "show", "{name}", "--store", "store")),
        ("ada__sums", ("mine", "git:ada__sums", "--store", "new", "--db", "new/m.db")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_what_another_user_may_not_read_is_one_line_with_exit_code_3(
    calm: Path, spare: Path, tmp_path: Path, secret: str, command: tuple[str, ...]
) -> None:
    shutil.copytree(spare / "bundle", tmp_path / "bundle")
    shutil.copytree(calm / "mergemill-store", tmp_path / "store")
    shutil.copy(spare / "rows.jsonl", tmp_path)
    make_history(tmp_path / "ada__sums", 1)
    (tmp_path / "mergemill.toml").touch()
    (tmp_path / "new").mkdir()
    (tmp_path / "new").chmod(0o777)
    let_others_in(tmp_path, calm)
    (tmp_path / secret).chmod(0o700 if (tmp_path / secret).is_dir() else 0o600)
    words = [word.format(name=find_review(calm)) for word in command]
    done = run_as_nobody(*words, cwd=tmp_path, MERGEMILL_DB=make_url(calm))
    assert done.exit_code == 3, done.stderr
    assert "Traceback" not in done.stderr
    line = done.stderr.splitlines()[0]
    assert "Permission denied" in line
    assert secret in line


def let_others_in(*folders: Path) -> None:
    """Let other users enter folders of a test; skip the test where they may not run the command."""
    above = {parent for folder in folders for parent in (folder, *folder.parents)}
    for folder in sorted(above - {Path(tempfile.gettempdir())}):
        if folder.is_relative_to(tempfile.gettempdir()):
            folder.chmod(0o755)
    if not may_nobody_run_commands():
        pytest.skip("another user may not run the command")


@cache
def may_nobody_run_commands() -> bool:
    """Return whether a user who owns nothing may start the command."""
    who = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    environment = make_command_environment(HOME="/nonexistent")
    return not subprocess.run([*who, "mergemill", "--version"], cwd="/", env=environment, check=False).returncode


def run_as_nobody(*arguments: str, cwd: Path, **variables: str) -> CommandResult:
    """Run `mergemill ARGUMENTS` as a user who owns nothing, which root alone may do."""
    environment = make_command_environment(HOME="/nonexistent", **variables)
    ended = start_command_server().run(arguments, cwd, environment, user=NOBODY)
    assert ended, "only a new process has these variables"
    return CommandResult(*ended)


def find_review(folder: Path) -> str:
    connection = sqlite3.connect(f"file:{folder}/m.db?mode=ro&immutable=1", uri=True)
    (name,) = connection.execute("SELECT name FROM task ORDER BY name LIMIT 1").fetchone()
    connection.close()
    return str(name)
