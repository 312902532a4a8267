"""Complete chains of records in a database."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from taskdb.records import Stage, Task, TestRun
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests import records

NONE: Mapping[str, Any] = MappingProxyType({})


def make_url(folder: Path) -> str:
    return f"sqlite:///{folder}/m.db"


def add_lineage(
    store: Store,
    number: int = 1,
    *,
    source: str = "git:greet",
    to: Stage = Stage.CERTIFY,
    runs: tuple[TestRun, ...] = (),
    verdict_fields: Mapping[str, Any] = NONE,
    task_fields: Mapping[str, Any] = NONE,
    **candidate_fields: Any,
) -> Task:
    """Add a change with its records up to a stage and return its task."""
    pull = records.make_pull_request(number, source=source)
    candidate = records.make_candidate(pull, **candidate_fields)
    environment = records.make_environment(candidate)
    verification = records.make_verification(environment, runs=runs)
    verdict = records.make_verdict(verification, **verdict_fields)
    task = records.make_task(verification, candidate, **task_fields)
    store.add_mined_changes((pull, candidate, 0.1))
    made = {
        Stage.BUILD: environment,
        Stage.VERIFY: verification,
        Stage.JUDGE: verdict,
        Stage.DERIVE: task,
        Stage.CERTIFY: records.make_certificate(task),
    }
    results = [
        StageResult(stage=stage, result=record, source=source, name=pull.name, seconds=1.0)
        for stage, record in made.items()
    ]
    # In one transaction: the listings are brought up to date once.
    store.add_stage_results(*results[: list(made).index(to) + 1])
    return task
