"""Win rate of a simulator against another, paired by seed and by submission.

By seed: whether a conversation that it wrote of the seed is kept by all steps. By submission to a certified task: the
share of its simulated gradings that are right, from `simulate measure`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import InputError
from evaluation.statistics.wins import PairedUnit, compute_win_rate
from taskdb.queries.families import find_families
from taskdb.queries.simulations import SeedKey, count_outcomes, list_conversation_simulators
from taskdb.queries.simulator_agreement import list_simulators, load_measurements
from taskdb.records.simulator_measurements import SimulatorMeasurement
from taskdb.store import Store

Submission = tuple[str, str]
"""Id of a task, and sha256 of a submission to it."""


def compare_simulators(
    store: Store, simulators: tuple[str, str], *, domains: Sequence[str] = (), profiles: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the win rate of the first of two simulators as rows: `kept` by seed, `right` by submission.

    A measure for which nothing is known of both has no row.

    Args:
        store: the database.
        simulators: names of both models.
        domains: domain packs of the seeds; all, if empty.
        profiles: profiles of their conversations; all, if empty.

    Raises:
        InputError: a simulator is unknown, both are the same, or they have no seed and no submission in common.
    """
    first, second = simulators
    if first == second:
        raise InputError(f"both names are {first}", advice="name two simulators")
    known = sorted({*list_conversation_simulators(store), *list_simulators(store)})
    for name in simulators:
        if name not in known:
            listed = ", ".join(known[:5]) or "none"
            raise InputError(f"there is nothing of a simulator {name} (known: {listed})")
    outcomes = [count_outcomes(store, name, domains, profiles) for name in simulators]
    measured = [_index_measurements(load_measurements(store, name)) for name in simulators]
    rows = []
    for measure, units in (("kept", _pair_seeds(*outcomes)), ("right", _pair_submissions(store, *measured))):
        if (rate := compute_win_rate(units)) is not None:
            rows.append({"measure": measure, "first": first, "second": second, **rate.to_json()})
    if not rows:
        raise InputError(
            f"{first} and {second} have no seed and no submission in common",
            advice="run `mergemill simulate sft` on the same seeds, or `simulate measure` on the same tasks",
        )
    return rows


def _pair_seeds(
    first: Mapping[SeedKey, tuple[int, int]], second: Mapping[SeedKey, tuple[int, int]]
) -> list[PairedUnit]:
    return [
        PairedUnit(family=key.seed, first=_list_outcomes(first.get(key)), second=_list_outcomes(second.get(key)))
        for key in sorted(first.keys() | second.keys())
    ]


def _list_outcomes(counts: tuple[int, int] | None) -> list[float]:
    """Return 1 for each conversation that was kept, and 0 for each that was dropped."""
    kept, dropped = counts or (0, 0)
    return [1.0] * kept + [0.0] * dropped


def _index_measurements(measured: Sequence[SimulatorMeasurement]) -> dict[Submission, SimulatorMeasurement]:
    return {(measurement.parent, measurement.submission): measurement for measurement in measured}


def _pair_submissions(
    store: Store,
    first: Mapping[Submission, SimulatorMeasurement],
    second: Mapping[Submission, SimulatorMeasurement],
) -> list[PairedUnit]:
    keys = sorted(first.keys() | second.keys())
    families = find_families(store, [task for task, _ in keys])
    return [
        PairedUnit(
            family=families[key[0]], first=_list_rightness(first.get(key)), second=_list_rightness(second.get(key))
        )
        for key in keys
    ]


def _list_rightness(measurement: SimulatorMeasurement | None) -> list[float | None]:
    """Return the share of the simulated gradings that are right, None where none is usable; nothing if unmeasured."""
    if measurement is None:
        return []
    if measurement.probability is None:
        return [None]
    return [1 - abs(measurement.probability - measurement.resolved)]
