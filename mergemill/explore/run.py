"""A run of the steps from seeds to certified questions. The database is the queue, the ledger keeps every answer.

`STORE/explore/calls.jsonl` has the answers of all runs with this store (`backends.llm.ledger`). A run that ended early,
by whatever cause, is continued by the same command: what it had stored is not pending any more, what it was doing is
done again with the answers of the ledger, so that the same records come out and no call is paid twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from backends.llm.ledger import CallLedger
from core.errors import MergemillError, UsageError
from core.settings.group import list_given, replace_values
from core.settings.models import OFF
from mergemill.execution.reporter import Reporter
from mergemill.explore.corpora import open_corpus
from mergemill.explore.models import COMMAND, LEDGER_FOLDER, ExplorerPool
from mergemill.explore.steps import evolve_questions, gate_questions, make_walks, write_questions
from mergemill.explore.work import ExploreCount, ExploreRequest, ExploreWork
from taskdb.artifacts import require_writable_store
from taskdb.queries.questions import find_corpus
from taskdb.records.questions import CORPUS, ExploreStep
from taskdb.store import Store

if TYPE_CHECKING:
    from core.config import Settings

DEFAULTS = {"workers": 8, "llm_context": 128_000}
"""Settings of other commands that have values of their own here, where the user sets none."""


def run_exploring(request: ExploreRequest, settings: Settings, reporter: Reporter) -> tuple[dict[str, Any], int]:
    """Run steps over their pending items; return the summary and the exit code.

    Raises:
        InputError: corpus, seeds or database are not usable, or the endpoint rejects key or model.
        UsageError: no model is set.
        Transient: the disk is full, or the endpoint failed.
    """
    given = list_given(settings)
    settings = replace_values(settings, {name: value for name, value in DEFAULTS.items() if name not in given})
    if settings.llm.url == OFF:
        raise UsageError("a model is needed", advice="set --llm URL and --model NAME")
    artifacts = require_writable_store(settings.storage)
    with (
        Store.open(settings.storage.db, create=False, writes=True) as store,
        CallLedger(settings.storage.store_dir / LEDGER_FOLDER, COMMAND) as ledger,
        ExplorerPool(settings) as pool,
    ):
        corpus = find_corpus(store, request.corpus)
        work = ExploreWork(
            request=request,
            settings=settings,
            store=store,
            artifacts=artifacts,
            corpus=corpus,
            reader=open_corpus(corpus, settings.storage),
            models=pool.make_models(ledger),
            pool=pool,
            reporter=reporter,
        )
        started = time.monotonic()
        _run_steps(work)
        for line in describe_failures(work.failures):
            reporter.message(line)
        return _summarize(work, time.monotonic() - started), work.failures[0].exit_code if work.failures else 0


def _run_steps(work: ExploreWork) -> None:
    """Run the steps of the request; where both are among them, evolution and gates alternate until no round is left."""
    steps = work.request.steps
    if ExploreStep.WALK in steps:
        make_walks(work)
    if ExploreStep.WRITE in steps:
        write_questions(work)
    if ExploreStep.GATE in steps:
        gate_questions(work)
    if ExploreStep.EVOLVE not in steps:
        return
    # A retried reason would make each question of it pending for ever.
    while evolve_questions(work) and ExploreStep.GATE in steps and not work.request.retry:
        gate_questions(work)


def _summarize(work: ExploreWork, seconds: float) -> dict[str, Any]:
    counts = [work.counts.get(step, ExploreCount(step)) for step in work.request.steps]
    return {
        "event": "summary",
        "environment": CORPUS,
        "corpus": work.corpus.name,
        "steps": [count.to_json() for count in counts],
        **asdict(work.totals),
        "cost": round(work.totals.cost, 6),
        "seconds": round(seconds, 3),
    }


def describe_failures(failures: Sequence[MergemillError]) -> list[str]:
    """Return a line for each kind of failure, with how often it came."""
    counts = Counter(error.format_line() for error in failures)
    return [f"{number} failed: {line}; the same command continues" for line, number in counts.most_common(3)]
