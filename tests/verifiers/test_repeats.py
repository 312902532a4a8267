"""Repeats of the pair of runs: a fixed number, or two where nothing was ever seen to be flaky."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.config import Settings
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from taskdb.records import RunVariant
from verifiers.verify import CandidateVerifier, VerificationFailure

STEADY = {RunVariant.TEST_ONLY: "failed", RunVariant.GOLD: "passed"}
NOTHING = cast("Any", None)


def make_run(status: str, *, seed: int = 0) -> Any:
    report = EvaluationReport(outcomes={"tests/a.py::x": Outcome(status=OutcomeStatus(status))}, uncollected={})
    result = SimpleNamespace(
        report=report,
        started=1.0,
        is_applied=True,
        script_error=None,
        has_forged_canary=False,
        exec_result=SimpleNamespace(killed_by=None),
    )
    return SimpleNamespace(report=report, record=SimpleNamespace(seed=seed, log=""), result=result)


@dataclass(kw_only=True)
class RecordedVerifier(CandidateVerifier):
    """Verifier whose runs have recorded results: (variant, seed) -> status of its only test, else `STEADY`."""

    results: dict[tuple[RunVariant, int], str] = field(default_factory=dict)
    dies: bool = False
    in_turn: tuple[str, ...] = ()
    """Status of the gold run of each pair in one container, as far as there are such containers."""
    gold_tree: Any = None
    """No id of these tests holds a date that the tree could explain."""
    commands: list[str] = field(default_factory=list)
    """Names of the runs, one for each container."""

    def _add_run(self, variant: RunVariant, seed: int) -> VerificationFailure | None:
        self.commands.append(variant.value)
        return self._record_run(variant, make_run(self.results.get((variant, seed), STEADY[variant]), seed=seed))

    def _run_pair_in_turn(self, seed: int) -> list[Any]:
        if not self.in_turn:
            return []
        self.commands.append("pair")
        gold, *self.in_turn = self.in_turn
        return [make_run(STEADY[RunVariant.TEST_ONLY], seed=seed), make_run(gold, seed=seed)]

    def _record_run(self, variant: RunVariant, run: Any) -> VerificationFailure | None:
        (self.gold_runs if variant is RunVariant.GOLD else self.test_only_runs).append(run)
        if self.dies and variant is RunVariant.TEST_ONLY:
            self.base_runs.append(run)
        return None


def repeat(repeats: Any, *, is_steady: bool = True, **changes: Any) -> RecordedVerifier:
    settings = Settings() if repeats is None else Settings(repeats=repeats)
    services: Any = SimpleNamespace(settings=settings)
    verifier = RecordedVerifier(
        candidate=NOTHING,
        tests=NOTHING,
        environment=NOTHING,
        services=services,
        pool=NOTHING,
        started=time.perf_counter(),
        is_steady=is_steady,
        **changes,
    )
    for variant in (RunVariant.GOLD, RunVariant.TEST_ONLY):
        verifier._add_run(variant, 0)
    assert verifier._run_repeats() is None
    assert len(verifier.gold_runs) == len(verifier.test_only_runs)
    assert [run.record.seed for run in verifier.gold_runs] == list(range(len(verifier.gold_runs)))
    return verifier


def count_pairs(repeats: Any, **changes: Any) -> int:
    return len(repeat(repeats, **changes).gold_runs)


@pytest.mark.parametrize("repeats", [None, "adaptive"])
def test_two_pairs_that_agree_are_enough_where_nothing_was_ever_flaky(repeats: str | None) -> None:
    assert count_pairs(repeats) == 2
    assert count_pairs(repeats, is_steady=False) == 3


@pytest.mark.parametrize("variant", list(STEADY))
def test_a_test_that_varies_gets_all_repeats(variant: RunVariant) -> None:
    other = {"failed": "passed", "passed": "failed"}[STEADY[variant]]
    assert count_pairs("adaptive", results={(variant, 1): other}) == 3


def test_a_runner_that_died_gets_all_repeats() -> None:
    assert count_pairs("adaptive", dies=True) == 3


@pytest.mark.parametrize("repeats", [1, 2, "3", 5])
def test_a_number_of_repeats_holds_for_every_change(repeats: int | str) -> None:
    assert count_pairs(repeats) == count_pairs(repeats, is_steady=False) == int(repeats)


@pytest.mark.parametrize("repeats", ["0", "-1", "1.5", "often", ""])
def test_another_value_is_an_error(repeats: str) -> None:
    with pytest.raises(ValueError, match="it is adaptive, or a number from 1"):
        Settings(repeats=repeats)  # type: ignore[arg-type]


FIRST = ["gold", "test-only"]


def test_a_repeat_takes_one_container_where_the_gold_run_has_the_outcomes_of_the_first() -> None:
    verifier = repeat("adaptive", in_turn=("passed",))
    assert verifier.commands == [*FIRST, "pair"]
    verifier = repeat("3", in_turn=("passed", "passed"))
    assert verifier.commands == [*FIRST, "pair", "pair"]


def test_a_test_that_fails_behind_the_test_only_run_alone_does_not_vary() -> None:
    verifier = repeat("adaptive", in_turn=("failed", "failed"))
    assert verifier.commands == [*FIRST, "pair", "pair", "gold", "test-only", "gold"]
    lists = verifier.compute_lists()
    assert lists is not None
    assert not lists.flaky


def test_a_test_that_fails_in_one_of_two_such_containers_varies() -> None:
    verifier = repeat("adaptive", in_turn=("failed", "passed"))
    assert verifier.commands == [*FIRST, "pair", "pair", "test-only", "gold"]
    lists = verifier.compute_lists()
    assert lists is not None
    assert [flaky.test for flaky in lists.flaky] == ["tests/a.py::x"]


def test_a_test_that_fails_in_its_own_container_as_well_varies() -> None:
    verifier = repeat("adaptive", in_turn=("failed", "failed"), results={(RunVariant.GOLD, 1): "failed"})
    lists = verifier.compute_lists()
    assert lists is not None
    assert [flaky.test for flaky in lists.flaky] == ["tests/a.py::x"]
