"""The commands that make questions over the planted corpus, with the scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from taskdb.records.questions import Corpus, Question, QuestionCertificate, QuestionRejection, Walk
from taskdb.store import Store
from tests.cli import CommandResult, run_mergemill
from tests.explorers.planted import CHAINS, make_pages

FAST = {
    "MERGEMILL_EXPLORE_SAMPLES": "1",
    "MERGEMILL_EXPLORE_CLOSED_SAMPLES": "0",
    "MERGEMILL_EXPLORE_EASY_TURNS": "2",
    "MERGEMILL_WORKERS": "4",
}
"""Variables of a run that takes little time."""
RECORDS = (Corpus, Walk, Question, QuestionCertificate, QuestionRejection)


def index_planted(folder: Path, seeds: int = len(CHAINS)) -> None:
    """Index the planted corpus in a folder, with a file of seeds."""
    (folder / "pages.jsonl").write_text("".join(json.dumps(page.to_json()) + "\n" for page in make_pages()))
    (folder / "seeds.txt").write_text("".join(f"{chain.seed}\n" for chain in CHAINS[:seeds]))
    done = run_mergemill("explore", "corpus", "planted", "pages.jsonl", cwd=folder)
    assert done.exit_code == 0, done.stderr


def explore(step: str, folder: Path, url: str, *words: str, **variables: str) -> CommandResult:
    """Run `mergemill explore STEP` on the planted corpus with JSON output."""
    named = ("--corpus", "planted", "--llm", url, "--model", "scripted")
    return run_mergemill("explore", step, *named, *words, "--json", cwd=folder, **FAST | variables)


def list_records(folder: Path) -> dict[str, list[Any]]:
    """Return the contents of all records, by class, in the order of their ids."""
    with Store.open(f"sqlite:///{folder}/mergemill.db", create=False) as store:
        stored = {kind.__name__: store.load_all(kind) for kind in RECORDS}
    return {
        name: [(record.id, record.model_dump(mode="json")) for record in sorted(records, key=lambda record: record.id)]
        for name, records in stored.items()
    }
