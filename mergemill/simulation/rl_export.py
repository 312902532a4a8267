"""Rows for reinforcement learning in a simulated environment: `mergemill simulate rl`.

=====================  ==============================================================================
`rows.json`            `{system, conversations}` for Simia's trainer
`verl.parquet`         prompts for verl's agent loop
`README.md`            card: simulator, how true it was measured to be, licences, how to serve and train
`manifest.json`        the content that was exported, with hashes
=====================  ==============================================================================

No row has a reward: that of an episode is given by the server's judge. So a simulator that was never measured, or that
may pay too many wrong submissions, is refused here.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import InputError, make_write_error
from mergemill import __version__
from mergemill.bench.held_out import MARK, refuse_seeds
from mergemill.simulation.measurement import require_measured_simulator
from simulators.domains.pack import DomainPack, load_pack
from simulators.environment.options import resolve_options
from simulators.environment.rows import (
    EPISODES,
    build_simia_row,
    find_first_message,
    make_episode,
    render_rows,
)
from simulators.seeds.reading import read_seeds
from simulators.seeds.seed import Seed
from simulators.trajectory import ENVIRONMENT
from taskdb.store import Store
from training_data.card import Card, Section, render_card, render_table
from training_data.episodes import VERL
from training_data.formats import FORMATS
from training_data.row_files import replace_file
from training_data.writer import RowWriter

if TYPE_CHECKING:
    from core.config import Settings
    from core.text import format_count
from core.settings.simulation import SimulationSettings

ROWS_NAME, VERL_NAME, MANIFEST_NAME, CARD_NAME = "rows.json", "verl.parquet", "manifest.json", "README.md"
DESCRIPTION = """\
{rows} for reinforcement learning, `environment: {environment}`: `{simulator}` plays person, tools and judge, and
nothing that happens in an episode is real. Rewards are its estimates. A row has no reward; an episode without a
judgement has none either, and is dropped."""
MEASURED = """\
Measured by `mergemill simulate measure` on {measured} submissions to tasks of code that were graded really, too, and
not in this domain:"""
BOUNDS = "Brier score: {brier}. Exports refuse a bound above {max_false_pass:g}."
COMMAND = (
    "    mergemill simulate env --seeds SEEDS --domain {domain} --profile {profile} --llm URL --model {simulator}"
    " --port 8500"
)
TRAINING = """\
The seeds are those of this export. `rows.json` is for Simia's trainer, `verl.parquet` for verl with
`mergemill_client.simulated.verl`. RAGEN needs no rows: `mergemill_client.simulated.ragen` has its environment."""
SHARES = {
    "false_pass": "wrong submissions that it pays",
    "false_fail": "right submissions that it does not pay",
    "submissions": "submissions predicted rightly",
}
"""Share of a measured simulator -> its words on the card."""


@dataclass(frozen=True, kw_only=True)
class SimulatedExportRequest:
    """Content that is exported, besides settings. `simulator`: the model that will play."""

    seeds: Path
    domain: str
    out: Path
    profile: str
    simulator: str
    seeds_license: str = ""
    with_held_out: bool = False
    """Whether conversations on held-out tasks may be seeds."""


def export_simulated(
    request: SimulatedExportRequest, settings: Settings, report: Callable[[str], None]
) -> dict[str, Any]:
    """Write the rows of a domain to a new or empty folder; return the manifest, and how many seeds are left out.

    Args:
        request: seeds, domain, folder and simulator.
        settings: database with the measurements, and the limit.
        report: function that receives a line for each seed that cannot be read or has no first message.

    Raises:
        InputError: seeds, domain or folder are not usable, or the simulator's rewards must not be trained on.
        UsageError: there is no such profile.
        Transient: the disk is full.
    """
    resolve_options(request.profile, settings)
    with Store.open(settings.storage.db, create=False) as store:
        measured = require_measured_simulator(store, request.simulator, settings.measurement.max_false_pass)
    pack = load_pack(request.domain)
    collection = read_seeds(request.seeds, license_id=request.seeds_license)
    for problem in collection.problems:
        report(problem.format_line())
    permitted, n_held_out = refuse_seeds(
        collection.seeds, settings.storage, report, with_held_out=request.with_held_out
    )
    usable = [seed for seed in permitted if find_first_message(seed)]
    without = len(permitted) - len(usable)
    if without:
        report(f"{without} seeds left out: nobody writes a first message")
    if not usable:
        raise InputError(f"{request.seeds} has no seed that begins with a person's message")
    try:
        request.out.mkdir(parents=True, exist_ok=True)
        if any(request.out.iterdir()):
            raise InputError(f"{request.out} is not empty", advice="name a new folder")
        return {
            **_write(request, settings.simulation, pack, usable, measured, n_held_out=n_held_out),
            "left_out": len(collection.seeds) - len(usable) + len(collection.problems),
        }
    except OSError as error:
        raise make_write_error(f"cannot write to {request.out}", error, advice="free some space") from error


def _write(
    request: SimulatedExportRequest,
    simulation: SimulationSettings,
    pack: DomainPack,
    seeds: list[Seed],
    measured: dict[str, Any],
    *,
    n_held_out: int,
) -> dict[str, Any]:
    target = simulation.target or "qwen"
    rows = [
        build_simia_row(seed, pack, profile=request.profile, target=target, simulator=request.simulator)
        for seed in seeds
    ]
    replace_file(request.out / ROWS_NAME, render_rows(rows))
    with RowWriter(request.out, FORMATS[VERL], EPISODES, names={"train": VERL}) as writer:
        for seed in seeds:
            writer.add(make_episode(seed, pack, simulator=request.simulator))
    card = _build_card(request, pack, seeds, measured, n_held_out)
    replace_file(request.out / CARD_NAME, render_card(card))
    names = (ROWS_NAME, VERL_NAME, CARD_NAME)
    manifest = {
        "kind": "mergemill-simulated-environment",
        "mergemill": __version__,
        "environment": ENVIRONMENT,
        "domain": pack.name,
        "pack_version": pack.version,
        "profile": request.profile,
        "simulator": request.simulator,
        "rows": len(rows),
        "measured": measured,
        **({"held_out": n_held_out} if n_held_out else {}),
        "files": {name: hashlib.sha256((request.out / name).read_bytes()).hexdigest() for name in names},
    }
    replace_file(request.out / MANIFEST_NAME, json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    return manifest


def _build_card(
    request: SimulatedExportRequest, pack: DomainPack, seeds: list[Seed], measured: dict[str, Any], n_held_out: int
) -> Card:
    licenses = Counter(seed.license for seed in seeds)
    description = DESCRIPTION.format(rows=f"{len(seeds)} rows", environment=ENVIRONMENT, simulator=request.simulator)
    command = COMMAND.format(domain=pack.name, profile=request.profile, simulator=request.simulator)
    listed = "\n".join(f"- `{name}`: {number}" for name, number in sorted(licenses.items()))
    return Card(
        title=f"Simulated environment: {pack.name}",
        tags=("agent", "tools", ENVIRONMENT, "reinforcement-learning", "mergemill"),
        licenses=licenses,
        rows=len(seeds),
        languages=(),
        environment=ENVIRONMENT,
        sections=(
            Section("", [description, f"**{format_count(n_held_out, 'seed')}: {MARK}.**" if n_held_out else ""]),
            Section(
                "How true the simulator is",
                [MEASURED.format(**measured), _render_shares(measured), BOUNDS.format(**measured)],
            ),
            Section("Training", [command, TRAINING]),
            Section("Licences", ["The licence of a row is that of its seed.", listed]),
        ),
    )


def _render_shares(measured: dict[str, Any]) -> str:
    rows = []
    for name, words in SHARES.items():
        share = measured[name]
        rows.append((words, share["n"], share["of"], f"{share['low']:.3f} to {share['high']:.3f}"))
    return render_table(("share", "n", "of", "95 %"), rows)
