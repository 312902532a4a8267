"""Rows of OctoCodingBench made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.config import Settings
from taskdb.records import Task
from taskdb.records.bench import BenchSet
from taskdb.store import Store
from tests.cli import CommandResult, run_mergemill

ROW: Mapping[str, Any] = {
    "instance_id": "md-greet-1",
    "user_query": ["Please greet twice.", "Now add a test."],
    "system_prompt": "Answer in English.",
    "category": "Claude.md",
    "image": "registry.invalid/bench/greet:1",
    "workspace_abs_path": "/workspace/greet",
    "scaffold": {"name": "claudecode", "version": "2.0.69"},
    "expected_skill": None,
    "checklist": {
        "SP": {
            "description": "System prompt",
            "checks": [
                {"check_id": "SP_read", "description": "Read before an edit.", "check_type": "compliance"},
                {"check_id": "SP_language", "description": "Answers are English.", "check_type": "compliance"},
            ],
        },
        "User query": {
            "description": "Request",
            "checks": [{"check_id": "UQ_done", "description": "It greets twice.", "check_type": "implementation"}],
        },
        "Agents.md": {
            "description": "CLAUDE.md",
            "checks": [{"check_id": "A_push", "description": "Nothing is pushed.", "check_type": "compliance"}],
        },
        "Skill.md": {
            "description": "Skill",
            "checks": [{"check_id": "S_tests", "description": "Tests are run.", "check_type": "testing"}],
        },
    },
}
TABLE = """
[[bind]]
check_id = "SP_read"
check = "read-before-edit"

[[bind]]
check_id = "A_push"
check = "never-command"
arguments = {commands = ["git push"]}

[[bind]]
instance_id = "md-greet-2"
check_id = "A_push"
check = "new-files-never"
arguments = {globs = ["*.md"]}
"""


def make_row(name: str = "md-greet-1", **fields: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(ROW)), "instance_id": name, **fields}


def dump_rows(rows: Sequence[object]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def make_settings(folder: Path, **fields: Any) -> Settings:
    return Settings.model_validate({"db": f"sqlite:///{folder}/m.db", "store": folder / "store", **fields})


def run(folder: Path, *words: str) -> CommandResult:
    done = run_mergemill(*words, "--db", f"sqlite:///{folder}/m.db", "--store", str(folder / "store"), cwd=folder)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def import_rows(folder: Path, rows: Sequence[object] | str, *words: str, table: str = "") -> CommandResult:
    """Import rows in a folder with a database of its own; with a table of bindings if there is one."""
    folder.mkdir(exist_ok=True)
    (folder / "rows.jsonl").write_text(rows if isinstance(rows, str) else dump_rows(rows))
    if table:
        (folder / "bind.toml").write_text(table)
        words = (*words, "--bind", "bind.toml")
    return run(folder, "bench", "import", "rows.jsonl", "--format", "octo", *words)


def load_set(folder: Path) -> tuple[BenchSet, dict[str, Task]]:
    """Return the only set of a folder's database, and its tasks by name."""
    with Store.open(f"sqlite:///{folder}/m.db", create=False) as store:
        (bench_set,) = store.load_all(BenchSet)
        tasks = store.get_many(Task, [subject.id for subject in bench_set.subjects])
    return bench_set, {task.name: task for task in tasks.values()}
