"""An invocation of `run` or of a single stage: which steps run over which changes, and the state afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from backends.sandbox.docker import DockerSandbox
from backends.services import Services
from core.config import Settings
from core.log_fields import set_process_fields
from core.settings.group import replace_values
from core.settings.machine import OperationSettings
from core.settings.storage import StorageSettings
from core.text import format_count
from derivers.instructions.constraints import load_constraints
from mergemill.execution.clusters import LOCAL, check_cluster_settings, open_cluster
from mergemill.execution.images.budget import ImageBudget
from mergemill.execution.images.fetch import enable_fetching
from mergemill.execution.progress import MessageProgress, Progress
from mergemill.execution.quotas import load_quotas
from mergemill.execution.run_status import RunStatusFile
from mergemill.execution.services import make_services
from mergemill.execution.sources import resolve_source
from mergemill.execution.telemetry.logs import is_structured
from mergemill.execution.telemetry.run_log import RunLog
from mergemill.execution.usage import describe_disk, measure_engine
from mergemill.pipeline.base_trees import keep_missing_trees
from mergemill.pipeline.environment_tasks import EnvironmentRounds, EnvironmentTaskRequest
from mergemill.pipeline.kinds import get_prerequisites
from mergemill.pipeline.pipeline import MakeFunction, PipelineRun, PipelineStep, list_steps
from mergemill.pipeline.renewal import ChangeRenewal
from mergemill.pipeline.similar_changes import SimilarChangeFinder
from taskdb.artifacts import require_writable_store
from taskdb.queries.tasks import compute_funnel, compute_summary, find_examples
from taskdb.records import Kind, Stage
from taskdb.records.lineage import Lineage
from taskdb.records.work import Scope
from taskdb.store import Store

ENGINE_STAGES = (Stage.BUILD, Stage.VERIFY)
"""Stages that need a Docker engine, whatever kinds of tasks are requested."""


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """Result of an invocation. `summary`, `funnel` and `examples` describe the run's sources in the database."""

    exit_code: int
    n_new: int
    """Results that this invocation wrote."""
    summary: dict[str, Any]
    funnel: list[dict[str, Any]]
    examples: dict[tuple[str, str], str]
    """(stage, reason) -> name of the newest change that was rejected so."""
    environments: list[dict[str, Any]]
    """Environments that gave fewer tasks than wanted (`EnvironmentRounds.describe_short`)."""


def run_stages(
    stage: Stage | None,
    scope: Scope,
    settings: Settings,
    progress: MessageProgress,
    on_stop: Callable[[], None] = lambda: None,
    *,
    max_tasks: int | None = None,
    environments: EnvironmentTaskRequest | None = None,
) -> RunReport:
    """Run a stage, or all stages of the scope for None, over everything that is pending.

    Args:
        stage: the stage, or None for `run`.
        scope: sources, changes, kinds and stages.
        settings: all settings.
        progress: progress that is shown each result; entered and left here.
        on_stop: function that is called when Ctrl-C interrupts the run, before the containers are stopped.
        max_tasks: begin no further change once the sources have this many certified tasks.
        environments: tasks that are derived from environments, in place of those of changes.

    Raises:
        MachineError: no engine answers, and a stage needs an engine.
        UsageError: there is no such cluster or registry.
        InputError: there is no database, and the stage reads a database; or database or store can only be read.
        Transient: the database cannot be written.
    """
    _check_settings(settings, scope)
    if stage is Stage.MINE:
        # Mining is the work of the driver, so it needs no cluster.
        settings = replace_values(settings, {"cluster": LOCAL})
    needs_engine, is_local = _needs_engine(scope), settings.cluster.address == LOCAL
    # On a cluster the nodes have the engines.
    services = make_services(settings, engine=needs_engine and is_local)
    if scope.retry:
        _clear_build_failures(settings.storage)
    mines = stage in (None, Stage.MINE)
    command = stage.value if stage else "run"
    observed = _observe(progress, command, settings.storage, settings.operation, services)
    recorded = RunStatusFile(observed, settings.storage.store_dir / "runs", command, scope.sources)
    set_process_fields(run=recorded.id)
    patience = settings.cluster.db_patience
    with (
        Store.open(settings.storage.db, create=mines, clock=services.clock, writes=True, patience=patience) as store,
        recorded,
    ):
        services = enable_fetching(services, store)
        stop = partial(
            _stop_services, services if needs_engine and is_local else None, on_stop if needs_engine else None
        )
        resolve = partial(resolve_source, storage=settings.storage, store=store)
        with open_cluster(
            settings,
            engine=needs_engine,
            notify=progress.print_message,
            stop=stop,
            is_draining=lambda: progress.work.is_draining,
        ) as cluster:
            run = PipelineRun(
                store,
                services,
                cluster,
                recorded,
                settings.cluster.workers,
                resolve_source=resolve,
                max_tasks=max_tasks,
            )
            if not is_local:
                run.make_function = _make_node_function(settings, engine=needs_engine)
            if not scope.renews:  # quotas limit new work
                run.quotas = load_quotas(store, settings.quota)
            _count_earlier_work(run, _resolve_scope(scope, resolve))
            if settings.operation.image_budget is not None and Stage.BUILD in scope.stages and is_local:
                run.make_room = ImageBudget(services, store, progress.print_message).free_space
            chosen = _resolve_paths(scope, resolve) if mines else _resolve_scope(scope, resolve)
            short = process_environments(run, stage, chosen, environments) if environments else []
            if environments is None:
                _process(run, stage, chosen)
        if left_out := run.quotas.format_left_out():
            recorded.print_message(left_out)
        # Resolved again, as mining may have stored earlier names of the sources.
        resolved = _resolve_scope(scope, resolve)
        if stage is None and not progress.work.is_draining:
            keep_missing_trees(store, services, resolved.sources)
        if run.exit_code:
            store.discard_if_empty()
        return _build_report(run, resolved, short)


def _check_settings(settings: Settings, scope: Scope) -> None:
    """Check the settings that would end the run later, or for every change: cluster, store and constraints.

    Raises:
        UsageError, InputError: they are wrong.
    """
    check_cluster_settings(settings.cluster)
    require_writable_store(settings.storage)
    if Kind.INSTRUCTIONS in scope.kinds:
        load_constraints(settings.derive.constraint_folder)


def _make_node_function(settings: Settings, *, engine: bool) -> MakeFunction:
    # A run on a single machine needs no steps of nodes.
    from mergemill.pipeline.node_steps import make_node_steps  # noqa: PLC0415

    return partial(make_node_steps, settings, engine=engine)


def _observe(
    progress: Progress, command: str, storage: StorageSettings, operation: OperationSettings, services: Services
) -> Progress:
    """Return the progress that also logs, exports traces and serves metrics, where they are wanted."""
    if is_structured():
        progress = RunLog(progress)
    if wants_traces(os.environ):
        try:
            # Traces need an extra, which most runs do without.
            from mergemill.execution.telemetry.traces import RunTraces  # noqa: PLC0415
        except ImportError:
            progress.print_message("no traces are exported: the extra otel is missing (pip install 'mergemill[otel]')")
        else:
            progress = RunTraces(progress, command)
    if operation.metrics_port is None:
        return progress
    # Most runs serve no metrics.
    from mergemill.execution.telemetry.metrics import RunMetrics  # noqa: PLC0415

    def measure() -> dict[str, Any]:
        sandbox = services.sandbox
        engine = measure_engine(sandbox) if isinstance(sandbox, DockerSandbox) else None
        return {"disk": describe_disk(storage.store_dir), "engine": engine}

    return RunMetrics(progress, command, operation.metrics_host, operation.metrics_port, measure)


def wants_traces(variables: Mapping[str, str]) -> bool:
    """Return whether OpenTelemetry's variables name a receiver of traces."""
    named = any(variables.get(f"OTEL_EXPORTER_OTLP_{name}ENDPOINT") for name in ("", "TRACES_"))
    is_off = variables.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return named and not is_off and variables.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp"


def _count_earlier_work(run: PipelineRun, scope: Scope) -> None:
    """Set the work that earlier runs have done of the scope."""
    work, summary = run.progress.work, compute_summary(run.store, scope.sources)
    counts = {Stage(row["stage"]): row["out"] for row in compute_funnel(run.store, scope.sources)}
    counts |= {Stage.DERIVE: sum(summary["tasks"].values()), Stage.CERTIFY: summary["certified"]}
    work.earlier = {stage: count for stage, count in counts.items() if count}
    if scope.renews:
        work.n_expected = run.store.count_renewals(scope)
    else:
        n_lineages, work.n_expected = run.store.count_lineages(scope)
        work.n_earlier = n_lineages - work.n_expected
    run.n_certified = summary["certified"]


def _build_report(run: PipelineRun, scope: Scope, environments: list[dict[str, Any]]) -> RunReport:
    return RunReport(
        exit_code=run.exit_code,
        n_new=run.n_new,
        summary=compute_summary(run.store, scope.sources),
        funnel=compute_funnel(run.store, scope.sources),
        examples=find_examples(run.store, scope.sources),
        environments=environments,
    )


def _clear_build_failures(storage: StorageSettings) -> None:
    # Only a retry needs the builders here.
    from builders.layer_failures import clear_failures  # noqa: PLC0415

    clear_failures(storage.store_dir)


def _needs_engine(scope: Scope) -> bool:
    """Whether a Docker engine must answer at the start.

    The deriver opens an engine later when a kind runs something.
    """
    certified = get_prerequisites(scope.certified if Stage.CERTIFY in scope.stages else ())
    certifies_in_engine = any(prerequisites.needs_environment for prerequisites in certified.values())
    return certifies_in_engine or any(stage in ENGINE_STAGES for stage in scope.stages)


def _resolve_scope(scope: Scope, resolve_source: Callable[[str], str]) -> Scope:
    """Return the scope with its sources spelled as records have them."""
    return replace(scope, sources=list(dict.fromkeys(map(resolve_source, scope.sources))))


def _resolve_paths(scope: Scope, resolve: Callable[[str], str]) -> Scope:
    """Return the scope with absolute paths; the miner itself finds the names of GitHub's repositories."""
    sources = [source if source.startswith("github:") else resolve(source) for source in scope.sources]
    return replace(scope, sources=list(dict.fromkeys(sources)))


def _process(run: PipelineRun, stage: Stage | None, scope: Scope) -> None:
    if stage is Stage.MINE:
        run.process((), _mine(run, scope))
        return
    steps = tuple(step for step in list_steps() if step.stage in scope.stages)
    if scope.renews:
        run.processor = ChangeRenewal
        run.process(steps, run.store.find_renewals(scope), partial(run.store.reload_renewal, scope=scope))
        return
    find_similar = SimilarChangeFinder(run.store, run.services).add_similar
    if stage is Stage.DERIVE:
        run.prepare = find_similar
    lineages = _mine(run, scope) if stage is None else run.store.find_pending(stage, scope)
    run.process(steps, lineages, partial(_reload, run.store, scope))
    # A task of two changes can be derived only once both are judged.
    if stage in (None, Stage.DERIVE):
        pair_steps = tuple(step for step in steps if step.stage in (Stage.DERIVE, Stage.CERTIFY))
        pairs = _resolve_scope(scope, run.resolve_source)
        run.process(pair_steps, run.store.find_open_pairs(pairs), partial(_reload_pair, run.store, pairs))
    # A change of any source may be mirrored, so that is done once all of them are mined.
    if stage is None and Kind.MIRRORED in scope.kinds:
        mirrored = replace(_resolve_scope(scope, run.resolve_source), kinds=get_prerequisites([Kind.MIRRORED]))
        run.prepare = find_similar
        run.process(pair_steps, run.store.find_pending(Stage.DERIVE, mirrored), partial(_reload, run.store, mirrored))


def process_environments(
    run: PipelineRun, stage: Stage | None, scope: Scope, request: EnvironmentTaskRequest
) -> list[dict[str, Any]]:
    """Derive tasks from environments, with `run` after building those of new changes, and certify them there.

    Returns:
        The environments that gave fewer tasks than wanted.
    """
    steps, work = {step.stage: step for step in list_steps()}, run.progress.work
    run.prepare = SimilarChangeFinder(run.store, run.services).add_similar
    # Environments are counted kind by kind.
    work.n_earlier = work.n_expected = 0
    if stage is None:
        built = replace(scope, stages=(Stage.MINE, Stage.BUILD))
        work.n_expected = run.store.count_lineages(_resolve_scope(built, run.resolve_source))[1]
        run.process((steps[Stage.BUILD],), _mine(run, built), partial(_reload, run.store, built))
        scope = _resolve_scope(scope, run.resolve_source)
        derived = replace(scope, stages=(Stage.CERTIFY,))
        run.process(
            (steps[Stage.CERTIFY],), run.store.find_open_lineages(derived), partial(_reload, run.store, derived)
        )

    def count_left() -> int | None:
        limit, number = (request.total, run.n_derived) if stage else (run.max_tasks, run.n_certified)
        return None if limit is None else limit - number

    last = (steps[Stage.DERIVE],) if stage else (steps[Stage.DERIVE], steps[Stage.CERTIFY])
    short = list[dict[str, Any]]()
    for kind in scope.kinds:
        rounds = EnvironmentRounds(
            store=run.store, services=run.services, scope=scope, kind=kind, request=request, count_left=count_left
        )
        _run_rounds(run, rounds, last)
        short += rounds.describe_short()
    return short


def _run_rounds(run: PipelineRun, rounds: EnvironmentRounds, steps: Sequence[PipelineStep]) -> None:
    """Run rounds over the environments of a kind until none may give more, or the run ends."""
    work = run.progress.work
    n_open, n_searched = rounds.count()
    work.n_expected += n_open
    if n_searched:
        gave = f"{format_count(n_searched, 'environment')} gave fewer {rounds.kind.value} tasks than wanted before"
        run.progress.print_message(f"{gave}; --retry REASON searches again")
    while not (run.is_cut_off or work.is_draining):
        n_read, n_repeated = work.n_read, rounds.n_repeated
        run.process(steps, rounds.plan(), run.store.reload_environment)
        # Each further step of a search counts as a change of its own.
        work.n_expected += rounds.n_repeated - n_repeated
        if work.n_read == n_read:
            break
    if waiting := rounds.format_waiting():
        run.progress.print_message(waiting)


def _reload(store: Store, scope: Scope, lineage: Lineage) -> Lineage | None:
    """Return a change as it is stored now; None where no stage of the scope is pending."""
    return next(store.find_open_lineages_of([lineage.candidate], scope), None)


def _reload_pair(store: Store, scope: Scope, lineage: Lineage) -> Lineage | None:
    key = lineage.candidate.id
    return next((pair for pair in store.find_open_pairs(scope) if pair.candidate.id == key), None)


def _mine(run: PipelineRun, scope: Scope) -> Iterator[Lineage]:
    # The other stages run without loading the miner.
    from miner.mine import mine, open_readers  # noqa: PLC0415

    with open_readers(scope.sources, run.services) as readers:
        yield from run.mine(partial(mine, only=scope.only, find_similar=run.find_similar, readers=readers), scope)


def _stop_services(services: Services | None, on_stop: Callable[[], None] | None, error: BaseException) -> None:
    """End the work that the users of services wait for; `on_stop` is called first, if Ctrl-C is the reason."""
    # After Ctrl-C in the driver's own code, the cluster is left by GeneratorExit.
    if on_stop and (isinstance(error, KeyboardInterrupt) or isinstance(error.__context__, KeyboardInterrupt)):
        on_stop()
    if services is not None:
        services.sandbox.stop()
        if services.model is not None:
            services.model.stop()
