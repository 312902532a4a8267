"""Every command that prints data ends quietly when the reader closes the pipe, as `head` does."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from mergemill.cli.commands import COMMANDS
from taskdb.artifacts import Artifacts
from taskdb.store import Store
from tests.cli import make_command_environment, run_with_closed_pipe
from tests.sample import make_sample
from tests.taskdb.lineages import add_lineage
from tests.taskdb.simulations import add_conversation, drop
from tests.taskdb.test_rollouts import make_rollout
from tests.taskdb.worlds import add_library

INSTANCE = {
    "instance_id": "ada__greet-1",
    "repo": "ada/greet",
    "base_commit": "0" * 40,
    "patch": "diff --git a/greet.py b/greet.py\n--- a/greet.py\n+++ b/greet.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n",
    "test_patch": "diff --git a/test_x.py b/test_x.py\n--- a/test_x.py\n+++ b/test_x.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n",
    "problem_statement": "Greeting must be polite.",
    "created_at": "2024-01-01T00:00:00Z",
    "FAIL_TO_PASS": '["test_x.py::test_x"]',
    "PASS_TO_PASS": "[]",
}
READING_COMMANDS = [
    "--help",
    "tasks list",
    "tasks list --json",
    "tasks search fix",
    "tasks search fix --json",
    "tasks list --columns name,strength --sample 1",
    "tasks select some --min-f2p 1",
    "tasks selections --json",
    "tasks stats",
    "tasks stats --json",
    "tasks yields",
    "tasks yields --json",
    "tasks show ada__greet-1.bugfix",
    "tasks show ada__greet-1.bugfix --json",
    "tasks table --out tasks.parquet --json",
    "tasks material ada__greet-1.bugfix --out material",
    "bench list",
    "bench list --json",
    "bench score --help",
    "funnel",
    "funnel --json",
    "funnel --by kind --json",
    "why ada__greet-1",
    "why ada__greet-1 --json",
    "sql 'SELECT * FROM changes'",
    "sql 'SELECT a.seq FROM event a, event b, event c, event d' --json",
    "status --sandbox bubblewrap",
    "status --sandbox bubblewrap --json",
    "gc --sandbox bubblewrap --dry-run",
    "gc --sandbox bubblewrap --dry-run --json",
    "skills list",
    "skills list --json",
    "skills check skills",
    "tags texts.jsonl",
    "tags texts.jsonl --json",
    "judge instances:instances.jsonl",
    "judge instances:instances.jsonl --json",
    "repos git:ada__greet --no-api",
    "repos git:ada__greet --no-api --json",
    "mine git:ada__greet",
    "mine git:ada__greet --json",
    "run git:ada__greet --kind review --json",
    "derive --kind review --json",
    "serve --help",
    "sample --help",
    "gateway --help",
    "simulate sft --help",
    "simulate env --help",
    "simulate measure --help",
    "simulate rl --help",
    "trajectories list --json",
    "trajectories select --json",
    "trajectories compare m n --json",
    "difficulty --json",
    "worlds discover --help",
    "worlds list",
    "worlds list --json",
    "worlds show library_loans",
    "worlds show library_loans.busy_morning --json",
    "worlds why library_loans --json",
    "worlds saturation",
    "worlds saturation --by tool --json",
    "funnel --of worlds",
    "funnel --of questions --json",
    "explore list",
    "explore list --of walks --json",
    "explore run --help",
    "funnel --of simulations --json",
    "simulate list",
    "simulate list --json",
    "simulate show aa-1",
    "simulate compare org/m org/n --json",
    "simulate export --out rows --json",
    "bench export --help",
    "bench import --help",
    "worlds export --help",
    "worlds import --help",
    "db compact",
    "db compact --json",
    "doctor",
    "doctor --json",
]
IMAGE_COMMANDS = [
    "build git:ada__greet --json",
    "verify git:ada__greet --json",
    "certify git:ada__greet --json",
    "grade ada__greet-3.bugfix --gold",
    "grade ada__greet-3.bugfix --noop --json",
    "export --format swebench --out piped-swebench",
    "export --format harbor --out piped-harbor --json",
    "bundle verify bundle-swebench",
    "bundle verify bundle-harbor --json",
    "bundle import bundle-swebench",
    "bundle import bundle-harbor --json",
    "bundle certify bundle-swebench --only ada__greet-3.bugfix --json",
    "audit ada__greet-3.bugfix",
    "audit ada__greet-3.bugfix --json",
]
"""Commands on the images of a finished run, and on bundles `bundle-FORMAT` of its tasks; run by test_end_to_end.py."""
ENGINE_COMMANDS = ["images list", "images list --json", "images prune --dry-run", "images prune --dry-run --json"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database, a repository, and files that the commands read."""
    folder = tmp_path_factory.mktemp("original")
    artifacts = Artifacts(folder / "mergemill-store" / "artifacts")
    patches = {"gold_patch": artifacts.put(b"gold\n"), "test_patch": artifacts.put(b"test\n")}
    with Store.open(f"sqlite:///{folder}/mergemill.db") as store:
        task = add_lineage(store, 1, **patches)
        add_lineage(store, 2, **patches)
        add_library(store, artifacts)
        add_conversation(store, artifacts)
        store.add(make_rollout(task, model="m"), make_rollout(task, model="n"))
        store.add(drop("aa", 2, "4 tools", "unknown-tool", simulator="org/n"))
    make_sample(folder / "ada__greet")
    (folder / "skills").mkdir()
    (folder / "texts.jsonl").write_text('{"message": "Fix a crash"}\n{"message": "Add a feature"}\n')
    (folder / "instances.jsonl").write_text(json.dumps(INSTANCE) + "\n")
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of that folder for one test."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize("command", READING_COMMANDS)
def test_a_closed_pipe_ends_a_command_quietly(command: str, folder: Path) -> None:
    done = run_with_closed_pipe(command, folder)
    assert done.exit_code in (0, 141), done.stderr
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


@pytest.mark.docker
@pytest.mark.parametrize("command", ENGINE_COMMANDS)
def test_a_closed_pipe_ends_a_command_that_needs_the_engine_quietly(command: str, folder: Path) -> None:
    done = run_with_closed_pipe(command, folder)
    assert done.exit_code in (0, 141), done.stderr
    assert "Broken" not in done.stderr


@pytest.mark.parametrize("command", ["tasks list --json", "funnel --json", "doctor --json"])
def test_head_reads_the_first_line_of_a_command(command: str, folder: Path) -> None:
    script = f"set -o pipefail; mergemill {command} | head -n 1"
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=make_command_environment(), capture_output=True, text=True, check=False
    )
    assert isinstance(json.loads(done.stdout), dict)
    assert done.returncode in (0, 4, 141) if command.startswith("doctor") else done.returncode in (0, 141)


def test_a_closed_standard_error_ends_a_command_quietly(folder: Path) -> None:
    script = "set -o pipefail; { sleep 0.2; mergemill tasks show nothing 2>&1; } | :"
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=make_command_environment(), check=False)
    assert done.returncode in (0, 141)


def test_every_command_that_prints_data_is_covered() -> None:
    covered = {command.split()[0] for command in READING_COMMANDS + ENGINE_COMMANDS + IMAGE_COMMANDS}
    assert set(COMMANDS) - covered == set()
