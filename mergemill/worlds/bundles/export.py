"""`mergemill worlds export`: worlds are certified where they are not, their scenarios played, the bundle written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import exporters
from core.errors import InputError, UsageError
from core.text import format_count
from mergemill.bench.held_out import MARK, REFUSED, WITH_OPTION
from mergemill.execution.services import make_services
from mergemill.worlds.bundles.sources import WorldSource, find_sources
from mergemill.worlds.containers import OpenServer, open_world_container
from taskdb.queries.bench import find_held_out
from taskdb.schema.database import database_exists
from taskdb.store import Store
from worlds.bundles.contents import ENVIRONMENT, BundledScenario, BundledWorld, Certification
from worlds.bundles.formats import FORMATS
from worlds.bundles.playing import UnplayableScenarioError, play_scenario
from worlds.bundles.writer import check_folder, write_bundle
from worlds.definitions import ScenarioDefinition
from worlds.gates.scenario_gates import assess_scenario
from worlds.gates.world_gates import assess_world
from worlds.server.service import ServedWorld, WorldServer

if TYPE_CHECKING:
    from core.config import Settings
    from core.settings.storage import StorageSettings
    from mergemill.execution.progress import CountProgress
    from mergemill.execution.reporter import Reporter

HARBOR = "harbor"
HARBOR_ENGINE = "harbor_engine.py"
CERTIFIED_HERE = "this export"


@dataclass(frozen=True, kw_only=True)
class WorldExportRequest:
    """Options of `mergemill worlds export` other than settings.

    `with_uncertified`: whether worlds and scenarios without a certificate are exported as they are, without gates.
    """

    words: Sequence[str]
    formats: Sequence[str]
    out: Path
    """Folder of the bundle; of several formats, the folder of their folders."""
    with_uncertified: bool = False
    with_held_out: bool = False
    """Whether worlds that a frozen set holds out are exported, marked, too."""
    scenarios: frozenset[str] | None = None
    """Names of the scenarios that are exported; None for all of the worlds."""
    canary: str = ""
    """Text by which the files are recognised in training data; empty for none."""

    @property
    def folders(self) -> dict[str, Path]:
        """Format -> folder of its bundle."""
        return {name: self.out if len(self.formats) == 1 else self.out / name for name in self.formats}


def export_worlds(
    request: WorldExportRequest, settings: Settings, reporter: Reporter, open_server: OpenServer | None = None
) -> list[dict[str, Any]]:
    """Write a bundle in each format and return their summaries.

    Args:
        request: worlds, formats and folder.
        settings: database and engine.
        reporter: receiver of messages and progress.
        open_server: function that starts the server of worlds on this machine; None for a container.

    Raises:
        UsageError: a format is unknown, or none is given.
        InputError: there is no such world, or nothing that may be exported; the folder has other files.
        MachineError: no engine answers.
        Transient: the engine cannot be reached, or the disk is full.
    """
    advice = f"one of {', '.join(FORMATS)}"
    if not request.formats:
        raise UsageError("--format names no format", advice=advice)
    for name, folder in request.folders.items():
        if name not in FORMATS:
            raise UsageError(f"--format: {name} is unknown", advice=advice)
        check_folder(folder.resolve())
    sources = find_sources(request.words, settings.storage, with_uncertified=request.with_uncertified)
    if request.scenarios is not None:
        sources = [_select_scenarios(source, request.scenarios) for source in sources]
    held_out = find_held_out_worlds(sources, settings.storage)
    refused = frozenset() if request.with_held_out else held_out
    if sources and len(refused) == len(sources):
        raise InputError("all these worlds are held out", advice=f"{WITH_OPTION} exports them, too")
    open_server = open_server or partial(open_world_container, make_services(settings, engine=True))
    with open_server() as server:
        exporter = _Exporter(request, server, reporter)
        worlds = exporter.prepare(sources, refused)
    if not any(world.scenarios for world in worlds):
        raise InputError("no scenario of these worlds can be exported", advice="the lines before this one say why")
    return [_write(request, name, worlds, exporter.left_out, held_out) for name in request.folders]


def find_held_out_worlds(sources: Sequence[WorldSource], storage: StorageSettings) -> frozenset[str]:
    """Return the names of the worlds that sets of the database hold out; without a database there are none."""
    if not database_exists(storage.db):
        return frozenset()
    with Store.open(storage.db, create=False) as store:
        held_out = find_held_out(store)
    return frozenset(
        source.name
        for source in sources
        if held_out.covers_world(source.name, [scenario.name for scenario in source.contents.scenarios])
    )


def _select_scenarios(source: WorldSource, names: frozenset[str]) -> WorldSource:
    chosen = tuple(scenario for scenario in source.contents.scenarios if scenario.name in names)
    return replace(source, contents=replace(source.contents, scenarios=chosen))


def _write(
    request: WorldExportRequest,
    name: str,
    worlds: Sequence[BundledWorld],
    left_out: Counter[str],
    held_out: frozenset[str],
) -> dict[str, Any]:
    folder, files = request.folders[name], _read_harbor_engine() if name == HARBOR else {}
    n_held_out = sum(len(world.scenarios) for world in worlds if world.name in held_out)
    counts = write_bundle(
        worlds,
        folder,
        FORMATS[name],
        left_out=left_out,
        files=files,
        canary=request.canary,
        notes={MARK: n_held_out} if n_held_out else {},
    )
    return {
        "event": "summary",
        "environment": ENVIRONMENT,
        "format": name,
        "out": str(folder),
        "worlds": len(worlds),
        "scenarios": counts.scenarios,
        "rows": counts.rows,
        "left_out": dict(sorted(counts.left_out.items())),
    }


class _Exporter:
    """Makes worlds ready for a bundle. `left_out` counts the scenarios that are not: reason -> number."""

    def __init__(self, request: WorldExportRequest, server: WorldServer, reporter: Reporter) -> None:
        self._request = request
        self._server = server
        self._reporter = reporter
        self.left_out: Counter[str] = Counter()

    def prepare(self, sources: Sequence[WorldSource], refused: frozenset[str]) -> list[BundledWorld]:
        """Return the worlds with the scenarios that can be played; `refused`: names of those that are left out."""
        permitted = [source for source in sources if source.name not in refused]
        for source in sources:
            if source.name in refused:
                self._leave_out(source.name, REFUSED, len(source.contents.scenarios))
        total = sum(len(source.contents.scenarios) for source in permitted)
        with self._reporter.open_progress("scenario", total) as progress:
            worlds = [self._prepare_world(source, progress) for source in permitted]
        return [world for world in worlds if world is not None]

    def _prepare_world(self, source: WorldSource, progress: CountProgress) -> BundledWorld | None:
        contents, name = source.contents, source.name
        if source.needs_gates and not self._request.with_uncertified:
            report = assess_world(contents.definition, self._server)
            if report.failure is not None:
                self._leave_out(name, f"{report.reason}: {report.failure.detail}", len(contents.scenarios))
                return None
            certification = Certification(by=CERTIFIED_HERE, gates=report.values)
            contents = replace(contents, certification=certification)
        elif contents.certification is None and not self._request.with_uncertified:
            self._leave_out(name, "not certified", len(contents.scenarios))
            return None
        with self._server.load(contents.definition) as served:
            scenarios = []
            for scenario in contents.scenarios:
                if (bundled := self._prepare_scenario(source, scenario, served)) is not None:
                    scenarios.append(bundled)
                progress.advance()
        return BundledWorld(contents=contents, scenarios=tuple(scenarios))

    def _prepare_scenario(
        self, source: WorldSource, scenario: ScenarioDefinition, served: ServedWorld
    ) -> BundledScenario | None:
        if source.needs_gates and not self._request.with_uncertified:
            report = assess_scenario(scenario, served, self._server)
            if report.failure is not None:
                self._leave_out(scenario.name, f"{report.reason}: {report.failure.detail}", 1)
                return None
        try:
            played = play_scenario(scenario, served, self._server)
            return replace(played, rollouts=source.contents.rollouts.get(scenario.name, ()))
        except UnplayableScenarioError as error:
            self._leave_out(scenario.name, str(error), 1)
            return None

    def _leave_out(self, name: str, why: str, scenarios: int) -> None:
        self.left_out[why.partition(":")[0]] += scenarios
        self._reporter.message(f"{name} is left out: {why}")


def describe_export(summary: dict[str, Any]) -> str:
    """Return the line for people about an export."""
    noun = "task" if summary["format"] == HARBOR else "row"
    counted = ", ".join(format_count(summary[key], key[:-1]) for key in ("worlds", "scenarios"))
    rows = format_count(summary["rows"], noun)
    return f"{summary['out']}: {rows} of {counted} ({summary['format']}; environment: {ENVIRONMENT})"


def _read_harbor_engine() -> dict[str, bytes]:
    """Return Harbor's environment class for a plain engine, which bundles of tasks hold as well."""
    return {HARBOR_ENGINE: Path(exporters.__file__).with_name(HARBOR_ENGINE).read_bytes()}
