"""A database with whole chains in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taskdb.chains import Finished
from taskdb.records import Stage, Task
from taskdb.store import Store
from tests import records


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/m.db"


def whole_chain(
    store: Store, number: int = 1, *, source: str = "git:greet", to: Stage = Stage.CERTIFY, **candidate_fields: Any
) -> Task:
    """A change taken through all stages up to one; its task."""
    pull = records.pull_request(number, source=source)
    candidate = records.candidate(pull, **candidate_fields)
    environment = records.environment(candidate)
    verification = records.verification(environment)
    verdict = records.verdict(verification)
    task = records.task(verification, candidate)
    store.mined((pull, candidate, 0.1))
    made = {
        Stage.BUILD: environment,
        Stage.VERIFY: verification,
        Stage.JUDGE: verdict,
        Stage.DERIVE: task,
        Stage.CERTIFY: records.certificate(task),
    }
    for stage, record in made.items():
        store.finish(Finished(stage=stage, result=record, source=source, name=pull.name, seconds=1.0))
        if stage is to:
            break
    return task
