"""Bundles of a small database with real patches, artifacts and base trees, and changes to their files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from backends.services import Services
from exporters import manifest
from taskdb.records import Environment, PullRequest, Task, Verification
from taskdb.store import Store
from tests import records
from tests.exporters.tasks import make_certificate, make_task


def add_tasks(
    store: Store,
    services: Services,
    folder: Path,
    *,
    count: int = 2,
    repos: Sequence[str] = ("ada/words",),
    n_judged: int | None = None,
    **changes: object,
) -> list[Task]:
    """Add tasks with complete chains to a database, of each repository in turn, and return them.

    `n_judged`: how many have a verdict, all by default. `changes`: fields of every task.
    """
    tasks = []
    for number in range(1, count + 1):
        made = make_task(services, folder, name=f"ada__words-{number}")
        repo = repos[number % len(repos)]
        pull: PullRequest = records.make_pull_request(
            number, source=made.source, repo=repo, name=f"ada__words-{number}", base_commit=made.base_commit
        )
        candidate = records.make_candidate(pull, gold_patch=made.gold_patch, test_patch=made.test_patch)
        environment: Environment = records.make_environment(candidate)
        verification: Verification = records.make_verification(environment)
        task = Task(
            **made.model_dump() | {"parent": verification.id, "candidate": candidate.id, "repo": repo} | changes
        )
        store.add_mined_changes((pull, candidate, 0.1), tags=[records.make_tags(pull)])
        is_judged = n_judged is None or number <= n_judged
        verdicts = [records.make_verdict(verification)] if is_judged else []
        store.add(environment, verification, *verdicts, task, make_certificate(task))
        tasks.append(task)
    return tasks


def edit_manifest(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Change a bundle's manifest."""
    path = folder / manifest.MANIFEST_NAME
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def seal(folder: Path) -> None:
    """Write the hashes of the present files into the manifest, as an attacker would."""
    files = {path.as_posix(): manifest.hash_file(folder / path) for path in manifest.list_files(folder)}
    edit_manifest(folder, lambda content: content.update(files=files))
