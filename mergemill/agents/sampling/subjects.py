"""Run the pending rollouts of tasks or scenarios: one way for all subjects.

Rollouts that a killed driver left behind begin again; the answers of their models are read from the gateway's log
instead of being paid again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TypeVar

from core.config import Settings
from mergemill.agents.sampling.delivery import leave_out_undelivered
from mergemill.agents.sampling.driver import RolloutDriver, open_threads, run_events, run_on_nodes
from mergemill.agents.sampling.nodes import NodeRollouts
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import AttemptRequest, list_pending
from mergemill.agents.sampling.subject_source import SubjectSource
from mergemill.execution.clusters import LOCAL, check_cluster_settings
from mergemill.execution.nodes import share_settings
from taskdb.artifacts import require_writable_store
from taskdb.records import Task
from taskdb.records.instructions import InstructionSource
from taskdb.records.worlds import Scenario
from taskdb.store import Store

RecordT = TypeVar("RecordT", Task, Scenario)


def sample_subjects(
    request: AttemptRequest,
    settings: Settings,
    progress: SamplingProgress,
    *,
    select: Callable[[Store], Sequence[RecordT]],
    make_source: Callable[[Sequence[RecordT]], SubjectSource],
    list_sources: Callable[[RecordT], Collection[InstructionSource]] = lambda _: (),
) -> int:
    """Run the pending rollouts of a request and store them; return the exit code.

    Args:
        request: the attempts that are made.
        settings: database, store, engine, upstream and limits.
        progress: function that receives the events.
        select: function that returns the records of the subjects.
        make_source: function that returns their source; called where a rollout is pending, with all records.
        list_sources: function that returns the sources of a subject's instructions besides its statement.

    Raises:
        InputError: there is no database or no such subject, or a subject is not certified.
        MachineError: no engine answers, or a program cannot be installed.
        Transient: a model cannot be reached, or database or disk fail.
        UsageError: a model is needed and no endpoint is named, or no scaffold delivers the instructions of a subject.
    """
    check_cluster_settings(settings.cluster)
    require_writable_store(settings.storage)
    with Store.open(settings.storage.db, create=False, writes=True) as store:
        records = select(store)
        sources = [(record, list_sources(record)) for record in records]
        left_out = leave_out_undelivered(sources, request.scaffolds, progress.print_message)
        find_pending = partial(list_pending, store, records, request, left_out)
        planned, pending = find_pending()
        progress.set_work(n_planned=planned, n_pending=len(pending))
        if not pending:
            return progress.end()
        source = make_source(records)
        make_driver = partial(
            RolloutDriver,
            store=store,
            settings=settings,
            progress=progress,
            list_pending=find_pending,  # again: another driver, for whose end this one waited, may have done it
            is_staged=request.attempts is None,
        )
        if settings.cluster.address != LOCAL:
            run = NodeRollouts(settings=share_settings(settings), source=source)
            engine, upstreams = source.needs_engine(settings), source.list_upstreams(settings)
            run_on_nodes(make_driver, run, settings, progress, engine=engine, upstreams=upstreams)
        else:
            with source.open_sampler(settings, store, progress, records=records) as sampler:
                make_driver(
                    cluster=open_threads(settings.cluster, sampler.services),
                    run=partial(run_events, sampler.run),
                    forget=sampler.forget,
                ).run_all()
        return progress.end()
