"""Rows of simulated conversations of the task database, as `simulate sft` writes those of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import InputError, UsageError, make_write_error
from mergemill.bench.held_out import MARK, WITH_OPTION
from mergemill.simulation.records import load_trajectories
from simulators.domains.pack import DomainPack
from simulators.exports.card import DatasetFacts
from simulators.exports.writer import FormatReport, write_exports
from simulators.options import resolve_options
from simulators.post_processing.steps import STEPS
from taskdb.artifacts import Artifacts, open_artifacts
from taskdb.queries.bench import find_held_out, find_held_out_sources
from taskdb.queries.simulations import (
    ConversationFilters,
    compute_simulation_funnel,
    list_conversations,
    load_conversations,
)
from taskdb.records.simulations import PREFILTER, SimulatedConversation
from training_data.formats import ConversationFormat

if TYPE_CHECKING:
    from core.settings.simulation import SimulationSettings
    from core.settings.storage import StorageSettings
    from taskdb.store import Store

SHARED = ("domain", "pack_version", "profile")
"""Facts that all conversations of an export have in common: rows of another domain or profile have other rules."""


@dataclass(frozen=True, kw_only=True)
class ExportedConversations:
    """Result of an export. `held_out`: conversations that were left out since a frozen set holds out their subjects."""

    facts: DatasetFacts
    reports: dict[str, FormatReport]
    held_out: int


def export_conversations(
    store: Store,
    storage: StorageSettings,
    simulation: SimulationSettings,
    filters: ConversationFilters,
    *,
    out: Path,
    formats: Sequence[ConversationFormat],
    with_held_out: bool = False,
) -> ExportedConversations:
    """Write the conversations of some filters to a new or empty folder.

    Those whose seeds are conversations on held-out tasks or scenarios are left out, or marked `with_held_out`.

    Raises:
        InputError: there is none, the folder has files, or an artifact is missing.
        UsageError: they are of several domains, pack versions or profiles.
        Transient: the disk is full.
    """
    _require_empty(out)
    columns = ("id", "simulator", *SHARED)
    rows = list_conversations(store, filters, columns=columns)
    if not rows:
        advice = "`mergemill simulate list` lists what there is; `mergemill simulate sft` makes conversations"
        raise InputError("no simulated conversation matches", advice=advice)
    for name in SHARED:
        if len(values := {row[name] for row in rows}) > 1:
            option = name.replace("_", "-")
            listed = ", ".join(sorted(values))
            raise UsageError(f"conversations of several values of {name} match: {listed}", advice=f"choose: --{option}")
    records = load_conversations(store, [row["id"] for row in rows])
    artifacts = open_artifacts(storage)
    kept = _list_permitted(store, artifacts, records)
    n_held_out = len(records) - len(kept)
    n_seeds = len({record.parent for record in records} - {record.parent for record in kept})
    if not with_held_out:
        records = kept
    if not records:
        advice = f"{n_held_out} are held out: {WITH_OPTION} exports them, too"
        raise InputError("no simulated conversation matches", advice=advice)
    facts = _make_facts(store, filters, records)
    if with_held_out and n_held_out:
        facts.warnings = {MARK: n_seeds}
    pack = load_kept_pack(artifacts, records[-1])
    options = resolve_options(records[-1].profile, simulation)
    reports = write_exports(
        load_trajectories(artifacts, records), out, formats, pack=pack, options=options, facts=facts
    )
    return ExportedConversations(facts=facts, reports=reports, held_out=0 if with_held_out else n_held_out)


def _list_permitted(
    store: Store, artifacts: Artifacts, records: Sequence[SimulatedConversation]
) -> list[SimulatedConversation]:
    """Return the conversations whose seeds are on no held-out subject, as far as their sources name these."""
    if not find_held_out(store).ids:
        return list(records)  # no content is read for it
    sources = [trajectory.origin for trajectory in load_trajectories(artifacts, records)]
    held_out = find_held_out_sources(store, sources)
    return [record for record, is_held_out in zip(records, held_out, strict=True) if not is_held_out]


def load_kept_pack(artifacts: Artifacts, record: SimulatedConversation) -> DomainPack:
    """Return the domain pack of a conversation, as far as rows need it.

    Raises:
        InputError: it was not kept.
    """
    if record.pack is None:
        raise InputError(f"the domain pack of {record.name} was not kept", advice="run `mergemill simulate sft` again")
    held = json.loads(artifacts.get(record.pack))
    return DomainPack(name=held["name"], policy=held["policy"], tools={tool["name"]: tool for tool in held["tools"]})


def describe_filters(filters: ConversationFilters) -> str:
    """Return the filters that select something, as text for a card."""
    given = {
        field.name: value for field in fields(filters) if (value := getattr(filters, field.name)) not in (None, ())
    }
    parts = [
        f"{name}: {', '.join(map(str, value)) if isinstance(value, tuple) else value}" for name, value in given.items()
    ]
    return "; ".join(parts)


def _make_facts(store: Store, filters: ConversationFilters, records: Sequence[SimulatedConversation]) -> DatasetFacts:
    """Return the facts that the card holds besides rows.

    Origin, and the counts of the domain and profile in the database.
    """
    first = records[0]
    counted, _ = compute_simulation_funnel(
        store, [step.name for step in STEPS], domains=[first.domain], profiles=[first.profile]
    )
    seeds = next(row for row in counted if row["step"] == PREFILTER)
    facts = DatasetFacts(
        domain=first.domain,
        pack_version=first.pack_version,
        profile=first.profile,
        prompt=", ".join(sorted({record.prompt for record in records})),
        simulator=", ".join(sorted({record.simulator for record in records})),
        selection=describe_filters(filters),
        n_seeds_read=seeds["in"],
        steps=[_describe_step(row) for row in counted if row["step"] != PREFILTER],
    )
    facts.rejected_seeds.update(seeds["rejected"])
    return facts


def _describe_step(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "step": row["step"],
        "before": row["in"],
        "repaired": "-",  # the database has the repairs of what was kept alone
        "dropped": row["rejected"],
        "after": row["out"],
    }


def _require_empty(out: Path) -> None:
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InputError(f"{out} is not an empty folder", advice="name a new folder")
    except OSError as error:
        raise make_write_error(f"cannot write to {out}", error, advice="name another folder") from error
