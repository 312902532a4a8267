"""`mergemill worlds import`: EnvScaler's files through all gates, each world with its scenarios, into the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import InputError, MergemillError
from core.files import read_input
from guest.world.schema_check import find_schema_error
from mergemill.execution.services import make_services
from mergemill.worlds.containers import open_world_container
from mergemill.worlds.records import (
    NO_ASSERTION,
    make_scenario_certificate,
    make_scenario_record,
    make_world_certificate,
    make_world_record,
)
from taskdb.artifacts import Artifacts, require_writable_store
from taskdb.queries.worlds import find_scenario_certificate, find_world_certificate, find_world_rejection
from taskdb.records.worlds import (
    Scenario,
    ScenarioCertificate,
    World,
    WorldCertificate,
    WorldOrigin,
    WorldRejection,
    WorldStep,
)
from taskdb.store import Store
from worlds.bundles.envscaler_reader import ReadScenario, ReadWorld, add_states, read_environments, read_scenarios
from worlds.definitions import ScenarioDefinition, State, WorldDefinition
from worlds.gates.scenario_gates import assess_scenario
from worlds.gates.world_gates import WorldGateSettings, assess_world
from worlds.program.analysis import analyse_program
from worlds.program.foreign_keys import find_dangling_key
from worlds.reasons import Reason
from worlds.server.service import ServedWorld, WorldServer

if TYPE_CHECKING:
    from core.config import Settings
    from mergemill.execution.reporter import Reporter
    from taskdb.records import Record

_ADVICE: Mapping[Reason | None, str] = {Reason.NO_STATE: "initial states come from the file of scenarios"}
N_SERVERS = 2
"""One runs the calls, the other replays some of them."""


@dataclass(frozen=True, kw_only=True)
class WorldImportRequest:
    """Options of `mergemill worlds import` other than settings. `license`: of worlds that name none."""

    environments: Path
    scenarios: Path | None = None
    license: str = ""


@dataclass(frozen=True, kw_only=True)
class ImportVerdict:
    """Verdict on a world or a scenario. `gates`: name -> the value that it measured, of those that were run."""

    kind: str
    name: str
    reason: str | None = None
    detail: str = ""
    gates: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the line of the verdict."""
        return {
            "kind": self.kind,
            "name": self.name,
            "ok": self.reason is None,
            "reason": self.reason,
            "detail": self.detail,
            "gates": dict(self.gates),
        }


@dataclass(frozen=True)
class ImportedWorld:
    """Results that the import of a world gave: verdicts, the world's first, and records."""

    verdicts: tuple[ImportVerdict, ...]
    records: tuple[Record, ...]


def import_worlds(request: WorldImportRequest, settings: Settings, reporter: Reporter) -> int:
    """Import files and return the exit code: 3 where an entry is malformed, 75 where some could not be tried.

    Raises:
        InputError: a file cannot be read.
        MachineError: no engine answers.
        Transient: the engine cannot be reached.
    """
    worlds = read_environments(_read(request.environments), request.environments.name)
    scenarios = (
        read_scenarios(_read(request.scenarios), request.scenarios.name) if request.scenarios is not None else []
    )
    by_world: dict[str, list[ReadScenario]] = defaultdict(list)
    for scenario in scenarios:
        by_world[scenario.world].append(scenario)
    known = {world.name for world in worlds}
    lost = [scenario for name, listed in by_world.items() if name not in known for scenario in listed]
    for scenario in lost:
        reporter.event(_refuse_lost(scenario, request.environments.name).to_json())
    has_problems = any(world.problem for world in worlds) or any(scenario.problem for scenario in scenarios)
    codes = [InputError.exit_code if has_problems else 0]
    artifacts = require_writable_store(settings.storage)
    with _open_servers(settings) as servers, Store.open(settings.storage.db) as store:
        importer = WorldImporter(request, servers, store, artifacts)
        with reporter.open_progress("world", len(worlds)) as progress:
            for outcome in _run(
                importer, [(world, by_world[world.name]) for world in worlds], settings.cluster.workers
            ):
                progress.advance()
                if isinstance(outcome, MergemillError):
                    reporter.message(outcome.format_line())
                    codes.append(outcome.exit_code)
                    continue
                store.add(*outcome.records)
                for verdict in outcome.verdicts:
                    reporter.event(verdict.to_json())
        if max(codes):
            store.discard_if_empty()
    return max(codes)


@contextmanager
def _open_servers(settings: Settings) -> Iterator[list[WorldServer]]:
    services = make_services(settings, engine=True)
    with ExitStack() as opened:
        yield [opened.enter_context(open_world_container(services)) for _ in range(N_SERVERS)]


def _run(
    importer: WorldImporter, entries: Sequence[tuple[ReadWorld, Sequence[ReadScenario]]], workers: int
) -> Iterator[ImportedWorld | MergemillError]:
    """Yield the results that each entry gave, as they finish; after Ctrl-C no further entry is begun."""
    threads = ThreadPoolExecutor(workers)
    try:
        futures: list[Future[ImportedWorld]] = [threads.submit(importer.import_world, *entry) for entry in entries]
        for future in as_completed(futures):
            try:
                yield future.result()
            except MergemillError as error:
                yield error
    finally:
        # The threads are not waited for: the end of their servers ends their work.
        threads.shutdown(wait=False, cancel_futures=True)


class WorldImporter:
    """Runs the gates on worlds and scenarios, unless the database has a verdict on the same programs. Threads share it.

    Args:
        request: the selection that is imported.
        servers: run the worlds.
        store: the database.
        artifacts: artifacts where the texts of records go.
    """

    def __init__(
        self, request: WorldImportRequest, servers: Sequence[WorldServer], store: Store, artifacts: Artifacts
    ) -> None:
        self._request = request
        self._server, self._replay_server = servers
        self._store = store
        self._artifacts = artifacts

    def import_world(self, world: ReadWorld, scenarios: Sequence[ReadScenario]) -> ImportedWorld:
        """Return verdicts and records of a world and its scenarios.

        Raises:
            Transient: a container has ended, or the engine cannot be reached.
        """
        if world.definition is None:
            verdict = ImportVerdict(kind="world", name=world.name, reason=Reason.MALFORMED.value, detail=world.problem)
            others = [_refuse_with_world(scenario, verdict) for scenario in scenarios]
            return ImportedWorld((verdict, *others), ())
        # A program that breaks a rule is rejected without being run.
        if analyse_program(world.definition.program).violations:
            return self._judge(world.definition, world.license, scenarios, None)
        with self._server.load(world.definition) as served:
            states = {name: complete_state(served, state) for name, state in world.definition.states.items()}
            scenarios = [_complete(scenario, served) for scenario in scenarios]
            read = [scenario.definition for scenario in scenarios if scenario.definition is not None]
            usable = [definition for definition in read if _fits(definition.state, served)]
            definition = add_states(replace(world.definition, states=states), usable or read)
            return self._judge(definition, world.license, scenarios, served)

    def _judge(
        self,
        definition: WorldDefinition,
        license_id: str,
        scenarios: Sequence[ReadScenario],
        served: ServedWorld | None,
    ) -> ImportedWorld:
        if license_id == NO_ASSERTION and self._request.license:
            license_id = self._request.license
        record = make_world_record(
            definition,
            self._artifacts,
            origin=WorldOrigin.IMPORTED,
            license_id=license_id,
            source=str(self._request.environments),
        )
        verdict, records = self._judge_world(definition, record)
        verdicts = [verdict]
        for scenario in scenarios:
            if served is None or verdict.reason is not None or scenario.definition is None:
                refused = _refuse_with_world(scenario, verdict)
                added = self._reject_unread(scenario, record, refused)
            else:
                refused, added = self._judge_scenario(scenario.definition, definition, record, served)
            verdicts.append(refused)
            records += added
        return ImportedWorld(tuple(verdicts), tuple(records))

    def _judge_world(self, definition: WorldDefinition, record: World) -> tuple[ImportVerdict, list[Record]]:
        if (certificate := find_world_certificate(self._store, record)) is not None:
            return ImportVerdict(kind="world", name=record.name, gates=_list_gates(certificate)), [record]
        if (rejection := find_world_rejection(self._store, record)) is not None:
            return _repeat(rejection, "world"), [record]
        settings = WorldGateSettings()
        report = assess_world(definition, self._server, self._replay_server, settings)
        if report.failure is None:
            certificate = make_world_certificate(record, report, n_calls=settings.calls_per_tool)
            return ImportVerdict(kind="world", name=record.name, gates=report.values), [record, certificate]
        verdict = ImportVerdict(
            kind="world",
            name=record.name,
            reason=(report.reason or Reason.MALFORMED).value,
            detail=report.failure.detail or _ADVICE.get(report.reason, ""),
            gates=report.values,
        )
        return verdict, [record, self._reject(record, record, WorldStep.ASSESS, verdict)]

    def _judge_scenario(
        self, scenario: ScenarioDefinition, world: WorldDefinition, parent: World, served: ServedWorld
    ) -> tuple[ImportVerdict, list[Record]]:
        record = make_scenario_record(scenario, parent, self._artifacts)
        if (certificate := find_scenario_certificate(self._store, record)) is not None:
            return ImportVerdict(kind="scenario", name=record.name, gates=_list_gates(certificate)), [record]
        rejection = find_world_rejection(self._store, record)
        # A scenario that was unsolved is tried again, as its file may have a solution now.
        if rejection is not None and rejection.reason != Reason.UNSOLVED:
            return _repeat(rejection, "scenario"), [record]
        report = assess_scenario(scenario, served, self._server)
        if report.failure is None:
            certificate = make_scenario_certificate(record, scenario, world, report, self._artifacts, origin="written")
            return ImportVerdict(kind="scenario", name=record.name, gates=report.values), [record, certificate]
        verdict = ImportVerdict(
            kind="scenario",
            name=record.name,
            reason=(report.reason or Reason.MALFORMED).value,
            detail=report.failure.detail,
            gates=report.values,
        )
        return verdict, [record, self._reject(record, parent, WorldStep.SCENARIOS, verdict)]

    def _reject_unread(self, scenario: ReadScenario, world: World, verdict: ImportVerdict) -> list[Record]:
        """Return the rejection of a scenario on which no gate was run."""
        if scenario.definition is not None:
            record = make_scenario_record(scenario.definition, world, self._artifacts)
            return [record, self._reject(record, world, WorldStep.SCENARIOS, verdict)]
        return [self._reject(world, world, WorldStep.SCENARIOS, verdict)]

    def _reject(
        self, record: World | Scenario, world: World, step: WorldStep, verdict: ImportVerdict
    ) -> WorldRejection:
        return WorldRejection(
            parent=record.id,
            name=verdict.name,
            source=world.source,
            step=step,
            reason=verdict.reason or "",
            detail=verdict.detail,
        )


def complete_state(served: ServedWorld, state: State) -> State:
    """Return the state of a world's object that was made from a state; one that cannot be loaded comes back as it is.

    Programs of EnvScaler add attributes of their own to the fields that a scenario has.
    """
    with served.open_episode(state) as episode:
        return state if episode.fault is not None else episode.get_state()


def _complete(scenario: ReadScenario, served: ServedWorld) -> ReadScenario:
    if scenario.definition is None:
        return scenario
    state = complete_state(served, scenario.definition.state)
    return replace(scenario, definition=replace(scenario.definition, state=state))


def _fits(state: State, served: ServedWorld) -> bool:
    """Return whether a state is as the program declares it; one that is not costs its scenario, and not the world."""
    analysis = served.analysis
    return not find_schema_error(state, analysis.state_schema) and not find_dangling_key(state, analysis.foreign_keys)


def _refuse_lost(scenario: ReadScenario, file_name: str) -> ImportVerdict:
    if scenario.definition is None:
        return _refuse_malformed(scenario)
    detail = f"{file_name} has no world {scenario.world}"
    return ImportVerdict(kind="scenario", name=scenario.name, reason=Reason.NO_WORLD.value, detail=detail)


def _refuse_with_world(scenario: ReadScenario, world: ImportVerdict) -> ImportVerdict:
    """Return the verdict on a scenario that is malformed, or whose world is rejected."""
    if scenario.definition is None:
        return _refuse_malformed(scenario)
    detail = f"{world.name}: {world.reason}"
    return ImportVerdict(kind="scenario", name=scenario.name, reason=Reason.WORLD_REJECTED.value, detail=detail)


def _refuse_malformed(scenario: ReadScenario) -> ImportVerdict:
    return ImportVerdict(kind="scenario", name=scenario.name, reason=Reason.MALFORMED.value, detail=scenario.problem)


def _repeat(rejection: WorldRejection, kind: str) -> ImportVerdict:
    return ImportVerdict(kind=kind, name=rejection.name, reason=rejection.reason, detail=rejection.detail)


def _list_gates(certificate: WorldCertificate | ScenarioCertificate) -> dict[str, float]:
    return {finding.name: finding.value for finding in certificate.gates}


def _read(path: Path) -> bytes:
    try:
        return read_input(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
