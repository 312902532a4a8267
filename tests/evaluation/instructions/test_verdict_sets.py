"""CSR and ISR of twenty sets of verdicts made by hand equal those that were computed on paper, bounds included."""

from __future__ import annotations

import pytest

from evaluation.instructions.checklist import ConstraintChecklist, VerdictState
from tests.evaluation.instructions.verdict_sets import VerdictSet, load_sets

SETS = load_sets()


def test_the_sets_have_every_state() -> None:
    states = {verdict.state for verdict_set in SETS for verdict in verdict_set.verdicts}
    assert (len(SETS), states) == (20, set(VerdictState))


@pytest.mark.parametrize("verdict_set", SETS, ids=lambda verdict_set: verdict_set.name)
def test_parts_of_the_reward_are_those_of_the_sheet(verdict_set: VerdictSet) -> None:
    parts = ConstraintChecklist(verdicts=verdict_set.verdicts).list_parts()
    assert {name: parts.get(name) for name in verdict_set.expected} == pytest.approx(verdict_set.expected, abs=1e-6)
