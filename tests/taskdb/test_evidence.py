"""Evidence on a task and its words."""

from __future__ import annotations

from typing import Any

import pytest

from taskdb.listing import compute_flaky_bound
from taskdb.queries.evidence import (
    MAX_RANKED,
    MIN_RANKED,
    SHOWN_BOUND,
    VerdictRanks,
    count_with_evidence,
    describe_forger,
    describe_gold,
    describe_scores,
    load_gold_values,
    rank_verdict,
)
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Stage
from taskdb.records.verdicts import EVIDENCE, Finding, Opinion, QuotedClaim, QuoteSource, TestOpinion
from taskdb.store import Store
from tests import records
from tests.taskdb.lineages import add_lineage
from verifiers.judge.rules import DECISIVE


def make_finding(rule: str) -> Finding:
    return Finding(rule=rule, quote="nobody", detail="a line", quote_source=QuoteSource.TESTS)


def dump_verdict(**fields: Any) -> dict[str, Any]:
    environment = records.make_environment(records.make_candidate(records.make_pull_request()))
    return records.make_verdict(records.make_verification(environment), **fields).model_dump(mode="json")


@pytest.mark.parametrize(
    ("control_bound", "worst_block_bound", "evaluations", "shown"),
    [
        (None, None, 1, None),
        (0.0003, 0.25, 1, "0.0003, the worst test 0.25"),
        (1.0, 1.0, 1, "1, the worst test 1"),
        (1 / (3 * 2**10), None, 2, "unknown (copies)"),  # five copies of a test
        (1 / (12 * 4) ** 2, None, 2, "unknown (copies)"),
        (1 / 3**7, None, 2, "0.00046"),  # seven tests without copies
        (1 / (3 * 2**9), None, 11, "0.00065"),
        (1.0, None, 2, "1"),
    ],
)
def test_odds_that_rest_on_copies_are_unknown(
    control_bound: float | None, worst_block_bound: float | None, evaluations: int, shown: str | None
) -> None:
    candidate = records.make_candidate(records.make_pull_request())
    task = records.make_task(
        records.make_verification(records.make_environment(candidate)),
        candidate,
        control_bound=control_bound,
        worst_block_bound=worst_block_bound,
        evaluations=evaluations,
    )
    assert describe_forger(task) == shown


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((1.0,) * 3, "3 of 3"),
        ((1.0,) * 6, "6 of 6"),
        ((1.0,) * 34, "34 of 34"),
        ((1.0,) * 35, "35 of 35, fails with a probability of at most 0.099"),
        ((1.0,) * 5 + (0.0,), "5 of 6, fails with a probability of at most 0.56"),
    ],
)
def test_the_bound_on_the_failures_of_gold_is_shown_only_where_it_is_informative(
    values: tuple[float, ...], shown: str
) -> None:
    assert describe_gold(values) == shown


def test_the_shown_bound_is_that_of_the_column() -> None:
    bounds = {n: compute_flaky_bound(n) or 1.0 for n in (34, 35)}
    assert bounds[35] < SHOWN_BOUND <= bounds[34]


def test_the_gradings_are_those_of_the_newest_certificate(db: str) -> None:
    with Store.open(db) as store:
        derived, certified = add_lineage(store, 1, to=Stage.DERIVE), add_lineage(store, 2)
        assert load_gold_values(store, derived.id) == ()
        assert load_gold_values(store, certified.id) == (1.0, 1.0, 1.0)
        store.add(records.make_certificate(certified, gold=(1.0,) * 6))
        assert load_gold_values(store, certified.id) == (1.0,) * 6


def test_a_verdict_is_ranked_among_the_tasks_of_the_database(db: str) -> None:
    verdict = dump_verdict(underspecified=0.0, unfair_tests=0.155)
    with Store.open(db) as store:
        add_lineage(store, 1000, to=Stage.VERIFY)
        for number in range(MIN_RANKED):
            assert rank_verdict(store, verdict) is None
            add_lineage(store, number, verdict_fields={"unfair_tests": number / 100})
        ranks = rank_verdict(store, verdict)
        assert rank_verdict(store, None) is None
    assert ranks == VerdictRanks(MIN_RANKED, {"underspecified": 0, "unfair_tests": 16})
    assert describe_scores(verdict, ranks) == {
        "underspecified": "more than 0 % of 20 tasks here",
        "unfair tests": "more than 80 % of 20 tasks here",
    }


def test_a_rank_is_never_rounded_to_all_tasks() -> None:
    ranks = VerdictRanks(MAX_RANKED, {"unfair_tests": MAX_RANKED - 1})
    assert ranks.describe("unfair_tests") == "more than 99 % of 5000 tasks here"


def test_a_probability_is_shown_only_with_evidence() -> None:
    scores = {"underspecified": 0.6, "unfair_tests": 0.81}
    assert describe_scores(dump_verdict(**scores), None) == {}
    # A statement that gives the solution away makes no test unfair.
    assert describe_scores(dump_verdict(**scores, findings=(make_finding("solution-line"),)), None) == {}
    both = dump_verdict(**scores, findings=(make_finding("message-not-stated"),))
    assert describe_scores(both, None) == {"underspecified": "probability 0.6", "unfair tests": "probability 0.81"}
    tests_alone = dump_verdict(**scores, findings=(make_finding("value-not-stated"),))
    assert describe_scores(tests_alone, None) == {"unfair tests": "probability 0.81"}


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, {}),
        ({"tests": (TestOpinion(test="t", asserts="it greets", stated="yes", quote="greets"),)}, {}),
        (
            {"tests": (TestOpinion(test="t", asserts="it greets", stated="no", quote=""),)},
            {"underspecified": "probability 0.3", "unfair tests": "probability 0.4"},
        ),
        (
            {"missing": (QuotedClaim(claim="the word", quote="hi", quote_source=QuoteSource.TESTS),)},
            {"underspecified": "probability 0.3", "unfair tests": "probability 0.4"},
        ),
        (
            {
                "missing": (QuotedClaim(claim="the word", quote="hi", quote_source=QuoteSource.TESTS),),
                "invalid_reason": "a quote is in no source",
            },
            {},
        ),
    ],
)
def test_a_valid_opinion_with_a_gap_is_evidence(fields: dict[str, Any], shown: dict[str, str]) -> None:
    opinion = Opinion(model="m", prompt="judge-2", sample=1, **fields)
    assert describe_scores(dump_verdict(opinions=(opinion,)), None) == shown


def test_findings_of_current_verdicts_are_counted_from_a_probability(db: str) -> None:
    def count(name: str, **filters: Any) -> int:
        return count_with_evidence(store, TaskFilters(**filters), name, 0.5)

    likely = {"underspecified": 0.8, "unfair_tests": 0.8}
    with Store.open(db) as store:
        for number in range(6):
            add_lineage(store, number, verdict_fields=likely)
        assert [count(name) for name in EVIDENCE] == [0, 0]
        add_lineage(store, 6, verdict_fields=likely | {"findings": (make_finding("value-not-stated"),)})
        add_lineage(store, 7, verdict_fields=likely | {"findings": (make_finding("message-not-stated"),) * 2})
        add_lineage(store, 8, verdict_fields={"findings": (make_finding("message-not-stated"),)})
        add_lineage(store, 9, verdict_fields=likely | {"findings": (make_finding("statement-patch"),)})
        assert [count(name) for name in ("underspecified", "unfair_tests")] == [1, 2]
        assert count("unfair_tests", family="ada__greet-7") == 1


def test_every_decisive_rule_is_evidence() -> None:
    assert frozenset.union(*EVIDENCE.values()) >= DECISIVE
