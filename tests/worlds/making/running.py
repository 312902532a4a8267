"""The commands that make worlds, with the scripted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taskdb.records.worlds import Scenario, ScenarioCertificate, Theme, World, WorldCertificate, WorldRejection
from taskdb.schema.mapping import RECORD_TABLES
from taskdb.store import Store
from tests.cli import CommandResult, run_mergemill
from tests.samplers.scripted_model import ScriptedModel

FAST = (
    *("--worlds-themes", "3", "--worlds-states", "2", "--worlds-rollouts", "2"),
    *("--worlds-gate-calls", "80", "--worlds-rounds", "32"),
)
"""Options of a run over the golden worlds that takes little time."""
RECORDS = (Theme, World, WorldCertificate, Scenario, ScenarioCertificate, WorldRejection)


def make_worlds(step: str, folder: Path, model: ScriptedModel | str, *words: str, **variables: str) -> CommandResult:
    """Run `mergemill worlds STEP` with JSON output."""
    url = model if isinstance(model, str) else model.url
    named = ("--llm", url, "--model", "scripted")
    return run_mergemill("worlds", step, *named, *words, "--json", cwd=folder, **variables)


def list_records(folder: Path) -> dict[str, list[Any]]:
    """Return the contents of all records of worlds, by class, in the order of their ids."""
    assert set(RECORDS) <= set(RECORD_TABLES)
    with Store.open(f"sqlite:///{folder}/mergemill.db", create=False) as store:
        stored = {kind.__name__: store.load_all(kind) for kind in RECORDS}
    return {
        name: [(record.id, record.model_dump(mode="json")) for record in sorted(records, key=lambda record: record.id)]
        for name, records in stored.items()
    }


def count_reasons(folder: Path) -> dict[str, int]:
    """Return reason -> number of rejections."""
    counts: dict[str, int] = {}
    for _, record in list_records(folder)["WorldRejection"]:
        counts[record["reason"]] = counts.get(record["reason"], 0) + 1
    return counts
