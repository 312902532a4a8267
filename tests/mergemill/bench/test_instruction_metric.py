"""Metric `instructions`: ISR and CSR of drawn verdicts as counting them gives, with both bounds of what is open."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from evaluation.instructions.checklist import UNCOUNTED
from evaluation.statistics.clusters import compute_clustered_mean
from evaluation.statistics.intervals import compute_share_interval
from mergemill.bench.instruction_metric import InstructionMetric, compute_rates
from mergemill.bench.metrics import OpenValue, PartsMetric, load_metric
from mergemill.bench.reports import list_remarks
from mergemill.bench.sets import freeze
from taskdb.records import Kind, Task
from taskdb.records.bench import BenchSet
from taskdb.records.instructions import BoundConstraint, InstructionSource
from taskdb.store import Store
from tests.evaluation.instructions.test_checklist import bind, make_oracle
from tests.evaluation.instructions.verdict_sets import load_sets
from tests.mergemill.bench.making import LIMITS, add_run, find_row, report
from tests.taskdb.lineages import add_lineage, make_url

SETS, RUNS = 20, 3
STATES = ("passed",) * 6 + ("failed",) * 2 + ("inactive", "void", "not-delivered")
SOURCES = (InstructionSource.SYSTEM, InstructionSource.MEMORY, InstructionSource.TURN)
Verdicts = Mapping[str, str]


def draw_constraints(rng: random.Random) -> list[BoundConstraint]:
    """Return constraints of which each, but the first, may be overridden by the first."""
    return [
        bind(
            f"c{number}",
            "read-before-edit",
            turn=rng.randint(1, 2),
            source=rng.choice(SOURCES),
            overridden_by="c0" if number and rng.random() < 0.1 else "",
        )
        for number in range(rng.randint(1, 8))
    ]


def add_tasks(folder: Path, drawn: Sequence[Sequence[BoundConstraint]]) -> tuple[BenchSet, list[Task]]:
    """Make a set with an instruction task of each list of constraints."""
    with Store.open(make_url(folder)) as store:
        tasks = [
            add_lineage(store, number, task_fields={"kind": Kind.INSTRUCTIONS, "oracle": make_oracle(*constraints)})
            for number, constraints in enumerate(drawn, 1)
        ]
        return freeze(store, "first", tasks, LIMITS, held_out=False), tasks


@dataclass
class DrawnRun:
    """Verdicts that are drawn for a run: (subject, attempt) -> those of its rollout, or None where it has no score."""

    drawn: Sequence[Sequence[BoundConstraint]]
    seed: int
    rollouts: dict[tuple[int, int], Verdicts | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        for number, constraints in enumerate(self.drawn):
            for attempt in range(1, RUNS + 1):
                verdicts = {
                    constraint.name: "overridden" if constraint.overridden_by else rng.choice(STATES)
                    for constraint in constraints
                }
                self.rollouts[number, attempt] = None if rng.random() < 0.1 else verdicts

    def get_value(self, number: int, attempt: int) -> float | None:
        return None if self.rollouts[number, attempt] is None else 0.5

    def get_verdicts(self, number: int, attempt: int) -> Verdicts:
        return self.rollouts[number, attempt] or {}

    def count(self, rate: str, group: str) -> Counted:
        """Return a rate of a group of constraints (`system`, `turn_2`, or empty for all), counted one by one."""
        counted = Counted()
        for number, constraints in enumerate(self.drawn):
            names = {c.name for c in constraints if group in {"", c.source.value, f"turn_{c.turn}"}}
            decided, lows, highs = [], [], []
            n_missing = 0
            for attempt in range(1, RUNS + 1):
                verdicts = self.rollouts[number, attempt]
                if verdicts is None:
                    n_missing += 1
                    continue
                states = [state for name, state in verdicts.items() if name in names]
                ends = count_rate(rate, states, is_whole=not group)
                if ends is None:
                    continue
                lows.append(ends[0])
                highs.append(ends[1])
                if ends[0] == ends[1]:
                    decided.append(ends[0])
            if decided:
                counted.units[number] = sum(decided, Fraction()) / len(decided)
            if lows or n_missing == RUNS:
                total = len(lows) + n_missing
                counted.ends[number] = sum(lows, Fraction()) / total, (sum(highs, Fraction()) + n_missing) / total
        return counted


@dataclass
class Counted:
    """Subject -> mean of its decided rollouts, and its mean with all that is open as 0 and as 1."""

    units: dict[int, Fraction] = field(default_factory=dict)
    ends: dict[int, tuple[Fraction, Fraction]] = field(default_factory=dict)


def count_rate(rate: str, states: Sequence[str], *, is_whole: bool) -> tuple[Fraction, Fraction] | None:
    """Return the least and the largest value of a rate; None for a group in which nothing counts."""
    passed, failed, void = (states.count(state) for state in ("passed", "failed", "void"))
    if not passed + failed + void:
        return (Fraction(1), Fraction(1)) if is_whole else None
    if rate == "isr":
        return Fraction(not failed and not void), Fraction(not failed)
    total = passed + failed + void
    return Fraction(passed, total), Fraction(passed + void, total)


def compute_average(values: Sequence[Fraction]) -> float:
    return float(sum(values, Fraction()) / len(values))


GROUPS = ("", *(source.value for source in SOURCES), "turn_1", "turn_2")
COLUMNS = [(rate, group) for rate in ("isr", "csr") for group in GROUPS]


def check_figures(rows: list[dict[str, Any]], run: str, drawn: DrawnRun) -> None:
    for rate, group in COLUMNS:
        counted = drawn.count(rate, group)
        row = find_row(rows, run=run, column=f"{rate}.{group}" if group else rate)
        units = list(counted.units.values())
        assert row["n"] == len(units)
        assert row["mean"] == pytest.approx(compute_average(units), abs=1e-6)
        bounds = [compute_average([ends[place] for ends in counted.ends.values()]) for place in (0, 1)]
        assert row["bounds"] == pytest.approx(bounds, abs=1e-6)
        share = compute_clustered_mean(list(map(float, units)), [str(number) for number in counted.units])
        assert (row["low"], row["high"]) == pytest.approx(compute_share_interval(share), abs=1e-6)


def test_rates_of_drawn_verdicts_are_those_of_counting(tmp_path: Path) -> None:
    rng = random.Random(5)
    constraints = [draw_constraints(rng) for _ in range(SETS)]
    bench_set, tasks = add_tasks(tmp_path, constraints)
    drawn = {name: DrawnRun(constraints, seed) for seed, name in enumerate("ab")}
    runs = [
        add_run(
            tmp_path,
            bench_set,
            tasks,
            values.get_value,
            runs=RUNS,
            checkpoint=name,
            get_verdicts=values.get_verdicts,
        )
        for name, values in drawn.items()
    ]
    made = report(tmp_path, runs[1], against=runs[0], metrics=[InstructionMetric()])
    for name, values in drawn.items():
        check_figures(made["figures"], f"first/react/m@{name}", values)
    for rate, group in COLUMNS:
        before, after = (values.count(rate, group) for values in drawn.values())
        row = find_row(made["differences"], column=f"{rate}.{group}" if group else rate)
        both = [number for number in before.units if number in after.units]
        expected = compute_average([after.units[number] - before.units[number] for number in both])
        assert (row["difference"], row["n"]) == (pytest.approx(expected, abs=1e-6), len(both))
        shared = [number for number in before.ends if number in after.ends]
        least = compute_average([after.ends[number][0] - before.ends[number][1] for number in shared])
        largest = compute_average([after.ends[number][1] - before.ends[number][0] for number in shared])
        assert row["bounds"] == pytest.approx([least, largest], abs=1e-6)


def test_rates_of_sets_made_by_hand_are_those_of_the_sheet(tmp_path: Path) -> None:
    sets = load_sets()
    bench_set, tasks = add_tasks(tmp_path, [[verdict.constraint for verdict in made.verdicts] for made in sets])
    run = add_run(
        tmp_path,
        bench_set,
        tasks,
        lambda *_: 0.0,
        runs=1,
        get_verdicts=lambda number, _: {
            verdict.constraint.name: verdict.state.value for verdict in sets[number].verdicts
        },
    )
    for made in sets:
        states = [verdict.state for verdict in made.verdicts if verdict.state not in UNCOUNTED]
        for rate, value in zip(("isr", "csr"), compute_rates(states), strict=True):
            bounds = value if isinstance(value, OpenValue) else (value, value)
            assert bounds == pytest.approx((made.expected[f"{rate}_low"], made.expected[f"{rate}_high"]), abs=1e-6)
    figures = {row["column"]: row for row in report(tmp_path, run, metrics=[InstructionMetric()])["figures"]}
    # Averages of the sheet's columns: those that are decided, and both bounds of all twenty.
    assert [figures["isr"][name] for name in ("n", "mean", "bounds")] == [14, 0.357143, [0.25, 0.55]]
    assert [figures["csr"][name] for name in ("n", "mean", "bounds")] == [11, 0.699134, [0.530357, 0.780357]]


def test_void_verdicts_are_open_and_missing_rollouts_are_in_the_bounds(tmp_path: Path) -> None:
    first, second = bind("close", "answer-ends"), bind("read", "read-before-edit", source="memory", turn=2)
    bench_set, tasks = add_tasks(tmp_path, [(first, second)] * 4)
    verdicts = [
        {"close": "passed", "read": "passed"},
        {"close": "passed", "read": "void"},
        {"close": "failed", "read": "void"},
        {},
    ]
    run = add_run(
        tmp_path,
        bench_set,
        tasks,
        lambda number, _: None if number == 3 else 0.0,
        runs=1,
        get_verdicts=lambda number, _: verdicts[number],
    )
    made = report(tmp_path, run, metrics=[load_metric("instructions")])
    figures = {row["column"]: (row["mean"], row["n"], row["bounds"]) for row in made["figures"]}
    assert figures == {
        # The second is 0 or 1, the third 0 whatever is void, the fourth missing.
        "isr": (0.5, 2, [0.25, 0.75]),
        "csr": (1.0, 1, [0.375, 0.875]),
        "isr.system": (round(2 / 3, 6), 3, [0.5, 0.75]),
        "csr.system": (round(2 / 3, 6), 3, [0.5, 0.75]),
        "isr.turn_1": (round(2 / 3, 6), 3, [0.5, 0.75]),
        "csr.turn_1": (round(2 / 3, 6), 3, [0.5, 0.75]),
        "isr.memory": (1.0, 1, [0.25, 1.0]),
        "csr.memory": (1.0, 1, [0.25, 1.0]),
        "isr.turn_2": (1.0, 1, [0.25, 1.0]),
        "csr.turn_2": (1.0, 1, [0.25, 1.0]),
    }
    assert made["runs"][0]["metrics"]["instructions"]["verdicts"] == {"failed": 1, "passed": 3, "void": 2}
    assert "first/react/m: instructions: 1 failed, 3 passed, 2 void" in list_remarks(made)


def test_an_empty_submission_has_followed_nothing(tmp_path: Path) -> None:
    winner, loser = bind("close", "answer-ends"), bind("open", "answer-ends", source="tool", overridden_by="close")
    bench_set, tasks = add_tasks(tmp_path, [(winner, loser)])
    run = add_run(tmp_path, bench_set, tasks, lambda *_: 0.0, runs=1)
    figures = {row["column"]: row["mean"] for row in report(tmp_path, run, metrics=[InstructionMetric()])["figures"]}
    assert figures == dict.fromkeys(("isr", "csr", "isr.system", "csr.system", "isr.turn_1", "csr.turn_1"), 0.0)


def test_other_kinds_have_no_rates(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        task = add_lineage(store)
        bench_set = freeze(store, "first", [task], LIMITS, held_out=False)
    run = add_run(tmp_path, bench_set, [task], lambda *_: 1.0, runs=1, parts={"speed": 0.5})
    made = report(tmp_path, run, metrics=[InstructionMetric(), PartsMetric()])
    assert [row["column"] for row in made["figures"]] == ["parts.speed"]
    assert "metrics" not in made["runs"][0]


@pytest.mark.parametrize(
    ("states", "isr", "csr"),
    [
        ((), 1.0, 1.0),
        (("passed", "passed"), 1.0, 1.0),
        (("passed", "failed"), 0.0, 0.5),
        (("void",), OpenValue(0.0, 1.0), OpenValue(0.0, 1.0)),
        (("failed", "void"), 0.0, OpenValue(0.0, 0.5)),
        (("passed", "passed", "passed", "void"), OpenValue(0.0, 1.0), OpenValue(0.75, 1.0)),
    ],
)
def test_rates_of_a_rollout(states: tuple[str, ...], isr: float | OpenValue, csr: float | OpenValue) -> None:
    assert compute_rates(states) == (isr, csr)
