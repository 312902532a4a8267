"""A database in which every text of a repository is hostile: a change for every sixteen strings of the corpus."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from core.config import Settings
from taskdb.artifacts import Artifacts
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Kind, Stage
from taskdb.store import Store
from tests.web.seed import (
    ForeignTexts,
    SeededDatabase,
    add_change,
    add_rejected_change,
    add_rollout,
    add_run,
)

CORPUS = Path(__file__).parent / "data" / "hostile_strings.jsonl"
STRINGS: tuple[str, ...] = tuple(json.loads(line) for line in CORPUS.read_text().splitlines())
PATCH = "diff --git a/{text} b/{text}\n--- a/{text}\n+++ b/{text}\n@@ -1,2 +1,2 @@ {text}\n {text}\n-{text}\n+{text}\n"


GROUP = 64
"""Strings of one change."""


@dataclass(frozen=True)
class HostileTask:
    """Strings that stand in every text of a change, and the addresses of its records."""

    strings: list[str]
    task: str
    change: str
    log: str


def make_hostile_texts(number: int, text: str) -> ForeignTexts:
    line = text.replace("\r", "").replace("\n", " ")
    return ForeignTexts(
        name=f"{text}-{number}",
        title=text,
        statement=f"{text}\n\nBefore {text} after.\n\n    {line}\n",
        patch=PATCH.format(text=line),
        test_patch=f"{text}\n{PATCH.format(text=line)}",
        test=f"tests/{text}.py::test_{text}",
        quote=text,
        log=f"{text}\nE   {text}\n",
        repo=f"{text}/{number}",
        hints=text,
        author=text,
        language=text,
        license=text,
    )


def seed_hostile_database(folder: Path) -> tuple[SeededDatabase, list[HostileTask]]:
    """Fill a database with the corpus and return the addresses of its records."""
    settings = Settings(db=f"sqlite:///{folder}/hostile.db", store=folder / "hostile-store")
    artifacts = Artifacts(settings.storage.store_dir / "artifacts")
    groups = [list(STRINGS[start : start + GROUP]) for start in range(0, len(STRINGS), GROUP)]
    tasks = []
    with Store.open(settings.storage.db) as store:
        for number, strings in enumerate(groups):
            text = "\n".join(strings)
            texts = make_hostile_texts(number, text)
            name = add_change(store, artifacts, number, texts, kind=Kind.BUGFIX)
            add_rejected_change(
                store, artifacts, 1000 + number, Stage.BUILD, text, text, title=text, name=f"{text}-rejected-{number}"
            )
            (row,) = [row for row in queries.list_tasks(store, TaskFilters()) if row["name"] == name.replace("\0", "?")]
            change = queries.resolve_change(store, queries.resolve_task(store, row["id"]).candidate)
            tasks.append(HostileTask(strings, row["id"], change.id, artifacts.put_text(texts.log)))
    add_rollout(settings.storage.store_dir / "rollouts", "hostile", STRINGS[0], "\n\n".join(STRINGS))
    add_run(settings.storage.store_dir / "runs", "\n".join(STRINGS))
    database = SeededDatabase(settings, tasks[0].task, tasks[0].change, tasks[0].change, "hostile", tasks[0].log)
    return database, tasks
