"""Multiple choice: what is drawn, that nothing in it points at the true instance, and what forgers earn who read it."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import combinations
from math import prod
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from backends.services import Services
from evaluation.controls.blocks import count_trigrams, parse_test_file
from evaluation.controls.features import VOTERS, Surroundings, TreeCounts
from evaluation.controls.odds import (
    SHOWN_ODDS,
    SiteDraws,
    combine_draws,
    count_votes,
    draw_choices,
    draw_site,
    select_menus,
    sort_by_odds,
)
from evaluation.controls.planning import (
    BOUND,
    MAX_EVALUATIONS,
    MIN_INSTANCES,
    GradingPlan,
    count_values,
    make_menus,
    make_other_menus,
    rank_plans,
    shorten_menus,
)
from guest.controls import blind
from guest.controls.choices import choose_values, count_instances, draw_instances, draw_variants
from taskdb.records import Task
from tests.evaluation.test_controls import HONEST, ONE, TESTS, TWO, run_tests
from tests.evaluation.test_controls import make_document as make_copies
from verifiers.grade import draw_task_evaluations

FILE = "tests/test_add.py"
THREE = f"{FILE}::test_three"
VALUES = {ONE: ("2", ["3", "5", "7", "8", "9"]), TWO: ("4", ["1", "3", "5", "6", "8"])}


def make_site(old: str, texts: list[str], test: str, *, line: int = 0, kind: str = "assertion") -> dict[str, Any]:
    start = TESTS.index(f"== {old}") + len("== ")
    values = [{"text": text, "fails": {test: kind}} for text in texts]
    start += 10 * line
    return {
        "spans": [[start, start + len(old)]],
        "places": [(line, start)],
        "literal": start,
        "inverts": False,
        "is_input": False,
        "is_alone": False,
        "values": values,
    }


def make_document(instances: int = 4, evaluations: int = 1) -> dict[str, Any]:
    """Return the document of two tests with a site each."""
    blocks = []
    for test, (old, texts) in VALUES.items():
        name = test.rpartition("::")[2]
        named = TESTS.index(name)
        site = make_site(old, texts, test)
        blocks.append(
            {
                "file": FILE,
                "span": [TESTS.rindex("def", 0, named), site["spans"][0][1]],
                "name": [named, named + len(name)],
                "blind": True,
                "required": True,
                "tests": [test],
                "sites": [site],
                "menus": [[[0, instances]]],
            }
        )
    return {
        "evaluations": evaluations,
        "copies": 0,
        "partial": True,
        "files": {FILE: TESTS},
        "blocks": blocks,
    }


def grade(document: dict[str, Any], functions: dict[str, Any], random: Random) -> blind.Judgement:
    judgement = blind.Judgement([ONE, TWO])
    for evaluation in blind.draw_evaluations(document, random):
        judgement.add(evaluation, run_tests(evaluation.files[FILE], functions))
    return judgement


# --------------------------------------------------------------------------------------------------------- drawing


def test_every_test_stands_several_times_under_drawn_names_and_once_with_its_own_text() -> None:
    for seed in range(20):
        (evaluation,) = blind.draw_evaluations(make_document(), Random(seed))
        text = evaluation.files[FILE].decode()
        compile(text, "t.py", "exec")
        assert Counter(evaluation.origins.values()) == {ONE: 4, TWO: 4}
        assert list(evaluation.expected.values()).count(blind.PASSES) == 2
        assert not {ONE, TWO} & evaluation.expected.keys(), "the names of the tests are drawn, too"
        assert evaluation.list_tests([ONE, TWO, "tests/test_b.py::test_c"]) == {
            *evaluation.expected,
            "tests/test_b.py::test_c",
        }
        for call in ("add(1, 1)", "add(2, 2)"):
            values = re.findall(rf"{re.escape(call)} == (\d)", text)
            assert len(set(values)) == len(values) == 4, "no text is more frequent than another"


def test_nothing_but_the_value_tells_the_true_instance() -> None:
    """Place and name of the true instance are as those of any other; its value is in every draw, each other in some."""
    places: Counter[int] = Counter()
    letters: Counter[str] = Counter()
    others: Counter[str] = Counter()
    block, draws = make_document()["blocks"][0], 4000
    for seed in range(draws):
        instances = draw_instances(TESTS.encode(), block, Random(seed))
        names = [test.rpartition("_")[2] for test in instances.expected]
        is_true = [outcome == blind.PASSES for outcome in instances.expected.values()]
        places[is_true.index(True)] += 1
        letters["first" if names[is_true.index(True)] == min(names) else "later"] += 1
        others.update(re.findall(r"== (\d)", instances.edit[2]))
    assert others.pop("2") == draws
    for counts, share in ((places.values(), 1 / 4), ([letters["first"]], 1 / 4), (others.values(), 3 / 5)):
        deviation = (draws * share * (1 - share)) ** 0.5
        assert all(abs(count - draws * share) < 4 * deviation for count in counts), counts


def make_grid() -> dict[str, Any]:
    """Return a block of which two sites with few values are combined."""
    block = make_document()["blocks"][0]
    first = make_site("2", ["3", "5"], ONE)
    second = {**make_site("2", ["a"], ONE), "spans": [[4, 8]]}
    return {**block, "sites": [first, second], "menus": [[[0, 3], [1, 2]]]}


def test_in_a_grid_every_value_is_as_frequent_as_another_and_every_instance_as_far_from_the_rest() -> None:
    variants = draw_variants(make_grid(), Random(1))
    assert [bool(variant.fails) for variant in variants] == [False] + [True] * 5
    texts = [{(start, end): text for start, end, text in variant.edits} for variant in variants]
    for site, counts in (((4, 8), {None: 3, "a": 3}), (tuple(make_grid()["sites"][0]["spans"][0]), None)):
        column = Counter(text.get(site) for text in texts)
        assert len(set(column.values())) == 1
        assert counts is None or dict(column) == counts
    distances = [sorted(len(a.items() ^ b.items()) for b in texts if b is not a) for a in texts]
    changed = [sorted(sum(a.get(k) != b.get(k) for k in {*a, *b}) for b in texts if b is not a) for a in texts]
    assert all(other == changed[0] for other in changed), distances


@pytest.mark.parametrize("evaluations", [1, 2])
def test_an_honest_solution_is_right_and_a_wrong_one_wrong_whatever_is_drawn(evaluations: int) -> None:
    for seed in range(50):
        document = make_document(evaluations=evaluations)
        judgement = grade(document, HONEST, Random(seed))
        assert judgement.is_right, (seed, judgement.wrong)
        for add in (lambda a, b: a, lambda a, b: a + b if a == 1 else 0, lambda a, b: a * 3):
            judgement = grade(document, {"add": add}, Random(seed))
            assert TWO in judgement.wrong
            assert not judgement.forged, "a wrong solution is no forgery"


class Anything:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__


def test_a_value_equal_to_everything_is_a_forgery() -> None:
    judgement = grade(make_document(), {"add": lambda a, b: Anything()}, Random(1))
    assert sorted(judgement.wrong) == sorted(judgement.forged) == sorted([ONE, TWO])


def test_a_forger_who_is_honest_in_further_evaluations_is_found_by_the_first() -> None:
    judgement = blind.Judgement([ONE, TWO])
    first, second = blind.draw_evaluations(make_document(evaluations=2), Random(1))
    judgement.add(first, dict.fromkeys(first.expected, ("passed", "")))
    judgement.add(second, run_tests(second.files[FILE], {"add": lambda a, b: None}))
    assert sorted(judgement.wrong) == sorted(judgement.forged) == sorted([ONE, TWO])


@pytest.mark.parametrize(("test", "first"), [(ONE, 1), (TWO, 2)])
def test_a_wrong_solution_that_passes_another_input_is_no_forgery(test: str, first: int) -> None:
    document = make_document()
    for block in document["blocks"]:
        block["sites"][0]["is_input"] = True
    judgement = grade(document, {"add": lambda a, b: Anything() if a == first else a + b}, Random(1))
    assert judgement.wrong == {test: "it passed although its input was changed"}
    assert not judgement.forged


def test_a_submission_that_passes_every_instance_of_several_tests_has_forged_them() -> None:
    document = make_document()
    for block in document["blocks"]:
        block["sites"][0]["is_input"] = True
    (evaluation,) = blind.draw_evaluations(document, Random(1))
    passed = dict.fromkeys(evaluation.expected, ("passed", ""))
    for failed, forged in ((None, [ONE, TWO]), (ONE, []), (TWO, [])):
        judgement = blind.Judgement([ONE, TWO])
        other = next((test for test, origin in evaluation.origins.items() if origin == failed), "")
        judgement.add(evaluation, {**passed, other: ("failed", "AssertionError: 1")})
        assert sorted(judgement.forged) == sorted(forged), failed


def test_an_instance_without_a_result_and_another_failure_are_wrong() -> None:
    (evaluation,) = blind.draw_evaluations(make_document(), Random(1))
    results = run_tests(evaluation.files[FILE], HONEST)
    other = next(test for test, outcome in evaluation.expected.items() if outcome != blind.PASSES)
    for change in ({}, {other: ("skipped", "")}, {other: ("failed", "ValueError: x")}, {other: ("error", "x")}):
        judgement = blind.Judgement([ONE, TWO])
        judgement.add(evaluation, {**{test: r for test, r in results.items() if test != other or change}, **change})
        assert list(judgement.wrong) == [evaluation.origins[other]]


def test_further_evaluations_run_the_files_of_controlled_tests_alone() -> None:
    first, second = blind.draw_evaluations(make_document(evaluations=2), Random(1))
    assert first.only is None
    assert second.only == [FILE]
    assert first.is_decisive
    assert "tests/test_b.py::test_c" not in second.list_tests([ONE, TWO, "tests/test_b.py::test_c"])
    assert first.expected.keys().isdisjoint(second.expected)


def test_a_test_that_stands_once_is_decided_by_both_of_the_first_evaluations() -> None:
    document = make_document(evaluations=2)
    block = {**document["blocks"][1], "name": None, "forms": [{"edits": [], "fails": {TWO: "assertion"}}]}
    document["blocks"][1] = {key: block[key] for key in ("file", "span", "name", "blind", "required", "forms")}
    evaluations = blind.draw_evaluations(document, Random(1))
    assert [evaluation.is_decisive for evaluation in evaluations] == [False, True]
    assert all(TWO in evaluation.expected and ONE not in evaluation.expected for evaluation in evaluations)


# ------------------------------------------------------------------------------------------------------------ bound


@pytest.mark.parametrize(("instances", "evaluations", "bound"), [(4, 1, 1 / 16), (2, 3, 1 / 64), (6, 2, 1 / 1296)])
def test_the_bound_of_guesses_is_the_product_over_blocks_and_evaluations(
    instances: int, evaluations: int, bound: float
) -> None:
    document = make_document(instances, evaluations)
    assert blind.compute_guess_bound(document) == pytest.approx(bound)
    preference = blind.compute_preference(5, instances, evaluations)
    assert blind.compute_bound(document) == pytest.approx(preference**2)
    assert blind.compute_worst_bound(document, [ONE, TWO]) == pytest.approx(preference)
    assert not blind.rests_on_copies(document)
    document["blocks"][0]["menus"].append([[0, 2]])
    worst = blind.compute_preference(5, 2, evaluations)
    assert blind.compute_worst_bound(document, [ONE, TWO]) == pytest.approx(max(worst, preference))


@pytest.mark.parametrize("field", ["blind", "required"])
def test_blocks_that_can_be_looked_up_or_are_not_required_do_not_count(field: str) -> None:
    document = make_document()
    document["blocks"][0][field] = False
    assert blind.compute_bound(document) == pytest.approx(1 / 4)
    assert blind.compute_worst_bound(document, [ONE, TWO]) == 1
    assert blind.compute_worst_bound(document, [TWO]) == pytest.approx(1 / 4)


def test_a_required_test_without_controls_is_the_worst() -> None:
    assert blind.compute_worst_bound(make_document(), [ONE, TWO, "tests/test_b.py::test_c"]) == 1


def test_a_test_that_only_some_draws_fail_is_bounded_by_those() -> None:
    """In a table of cases a value belongs to one row, and another row is the same in all instances."""
    document = make_document(evaluations=2)
    block = document["blocks"][0]
    other = {**block["sites"][0], "values": [{"text": "9", "fails": {TWO: "assertion"}}] * 3}
    block.update(tests=[ONE, TWO, THREE], sites=[block["sites"][0], other], menus=[[[0, 4]], [[1, 4]], [[1, 4]]])
    document["blocks"] = [block]
    # A preference is right in both evaluations, or none of the drawn values of either fails the test.
    assert blind.compute_worst_bound(document, [ONE]) == pytest.approx(1 / 4 + 3 / 4 * (2 / 3) ** 2)
    assert blind.compute_worst_bound(document, [TWO]) == pytest.approx(1 / 4 + 3 / 4 * (1 / 3) ** 2)
    assert blind.compute_worst_bound(document, [ONE, THREE]) == 1
    assert blind.list_controlled_tests(block) == {ONE, TWO}


def guess(evaluation: blind.Evaluation, random: Random) -> dict[str, tuple[str, str]]:
    """Return the results of a forger who takes one instance of each test for the true one, by chance."""
    results = dict.fromkeys(evaluation.expected, ("failed", "AssertionError"))
    for origin in set(evaluation.origins.values()):
        instances = [test for test, own in evaluation.origins.items() if own == origin]
        results[random.choice(instances)] = ("passed", "")
    return results


def compare_texts(evaluation: blind.Evaluation, random: Random) -> dict[str, tuple[str, str]]:
    """Return the results of a forger who takes the instances whose text is most frequent for the true ones."""
    text = evaluation.files[FILE].decode()
    results = dict.fromkeys(evaluation.expected, ("failed", "AssertionError"))
    for origin in set(evaluation.origins.values()):
        texts: dict[str, list[str]] = {}
        for test in (test for test, own in evaluation.origins.items() if own == origin):
            name = test.rpartition("::")[2]
            body = text[text.index(name) + len(name) :].split("\n\n")[0]
            texts.setdefault(body, []).append(test)
        most = max(len(tests) for tests in texts.values())
        frequent = random.choice([tests for tests in texts.values() if len(tests) == most])
        results.update(dict.fromkeys(frequent, ("passed", "")))
    return results


@pytest.mark.parametrize("forge", [guess, compare_texts])
@pytest.mark.parametrize(("instances", "evaluations"), [(2, 1), (3, 1), (2, 2)])
def test_forgers_are_paid_as_often_as_the_bound_allows(forge: Any, instances: int, evaluations: int) -> None:
    document, paid, gradings = make_document(instances, evaluations), 0, 4000
    for seed in range(gradings):
        judgement = blind.Judgement([ONE, TWO])
        for evaluation in blind.draw_evaluations(document, Random(-seed - 1)):
            judgement.add(evaluation, forge(evaluation, Random(seed + 1)))
        paid += judgement.is_right
    bound = blind.compute_bound(document)
    deviation = (bound * (1 - bound) / gradings) ** 0.5
    assert paid / gradings <= bound + 4 * deviation
    assert paid, "a forger that is never paid tests nothing here"


# --------------------------------------------------------------------------------------------------------- planning


@pytest.mark.parametrize(
    ("tests", "planned"),
    [(2, (1, 32)), (3, (1, 10)), (4, (1, 6)), (5, (1, 4)), (7, (1, 4)), (40, (1, 4))],
)
def test_the_cheapest_plan_reaches_the_bound_in_one_evaluation_where_the_tests_allow(
    tests: int, planned: tuple[int, int]
) -> None:
    plan, *_ = rank_plans([40] * tests, [0.01] * tests, singles=0, suite=3.0, max_evaluations=MAX_EVALUATIONS)
    assert (plan.evaluations, plan.instances) == planned
    assert plan.instances ** -(tests * plan.evaluations) <= BOUND
    assert plan.instances >= MIN_INSTANCES


def test_a_single_quick_test_stands_a_thousand_times_in_one_evaluation() -> None:
    plan, *others = rank_plans([1600], [0.001], singles=0, suite=3.0, max_evaluations=12, max_instances=1000)
    assert (plan.evaluations, plan.instances) == (1, 1000)
    (second,) = [other for other in others if other.evaluations == 2]
    assert second.instances > 500, "a preference is asked little more by a second evaluation"


def test_a_plan_takes_more_evaluations_where_tests_stand_once() -> None:
    for most, singles, evaluations in (([], 1, 11), ([32], 1, 2), ([], 7, 2)):
        plan, *_ = rank_plans(most, [0.01] * len(most), singles=singles, suite=3.0, max_evaluations=MAX_EVALUATIONS)
        assert plan.evaluations == evaluations
    few, *_ = rank_plans([2], [0.01], singles=0, suite=600.0, max_evaluations=3)
    assert few == GradingPlan(evaluations=1, instances=MIN_INSTANCES), "no number of evaluations reaches the bound"


@pytest.mark.parametrize(("n_values", "size", "evaluations"), [(3, 4, 1), (3, 4, 3), (9, 4, 2), (40, 32, 2)])
def test_a_preference_is_right_as_often_as_its_bound_says(n_values: int, size: int, evaluations: int) -> None:
    random, draws = Random(n_values * size), 4000
    right = 0
    for _ in range(draws):
        ranks = random.sample(range(n_values + 1), n_values + 1)
        right += all(min(random.sample(ranks[1:], size - 1)) > ranks[0] for _ in range(evaluations))
    share = blind.compute_preference(n_values, size, evaluations)
    assert abs(right / draws - share) < 4 * (share * (1 - share) / draws) ** 0.5
    assert share >= 1 / (evaluations * (size - 1) + 1) - 1e-9, "however many values there are"


def test_one_rule_for_all_tests_has_the_odds_of_a_document() -> None:
    """A rule that finds the first test fails the second; none is right in both."""
    document = make_document(instances=1000)
    first, second = document["blocks"]
    blocks = [{**first, "readers": [0.9, 0.1, 0.05]}, {**second, "readers": [0.02, 0.1, 0.7]}]
    assert blind.compute_bound({**document, "blocks": blocks}) == pytest.approx(0.05 * 0.7)
    assert blind.compute_guess_bound({**document, "blocks": blocks}) < 0.001
    worst = blind.compute_worst_bound({**document, "blocks": blocks}, [*first["tests"], *second["tests"]])
    assert worst == pytest.approx(0.9)


def test_slow_tests_stand_as_often_as_there_is_time_for() -> None:
    quick, *_ = rank_plans([400] * 2, [0.01] * 2, singles=0, suite=3.0, max_evaluations=4, max_instances=1000)
    slow, *_ = rank_plans([400] * 2, [5.0] * 2, singles=0, suite=11.0, max_evaluations=4, max_instances=1000)
    assert (quick.evaluations, quick.instances) == (1, 32)
    assert slow.evaluations * slow.instances < 32
    for suite, instances in ((3.0, 20), (60.0, 40)):
        plans = rank_plans([400], [1.5], singles=0, suite=suite, max_evaluations=1, max_instances=1000)
        assert {plan.instances for plan in plans} == {instances}


def test_members_of_a_list_are_changed_together_and_the_sides_of_a_comparison_are_not() -> None:
    first, second, third = (make_site("2", ["3", "5", "7"], ONE) for _ in range(3))
    sites = [
        {**site, "spans": [[place, place + 1]], "literal": place, "places": [(1, group)]}
        for site, place, group in ((first, 10, 9), (second, 13, 9), (third, 20, 20))
    ]
    assert {frozenset(number for number, _ in menu) for menu in make_menus(sites, 16)} == {frozenset({0, 1})}


def test_menus_take_one_site_where_it_has_enough_values_and_a_grid_otherwise() -> None:
    rich, poor = make_site("2", ["3", "5", "7"], ONE), make_site("2", ["9"], ONE, line=1)
    assert make_menus([poor, rich], 4) == [[(1, 4)]]
    assert make_menus([rich, rich], 3) == [[(0, 3)], [(1, 3)]]
    assert make_menus([poor, rich], 8) == [[(0, 2), (1, 4)]]
    assert make_menus([poor], 8) == [[(0, 2)]]
    assert count_values([poor, rich], 32) == 8
    block = {"menus": make_menus([poor, rich], 8)}
    assert count_instances(block) == 8


def test_a_grid_has_no_more_instances_than_it_needs() -> None:
    sites = [
        make_site("2", [str(value) for value in range(10, 10 + number)], ONE, line=line)
        for line, number in enumerate((31, 29, 3))
    ]
    menus = make_menus(sites, 1000)
    assert len(menus) > 1
    for menu in menus:
        assert 1000 <= prod(size for _, size in menu) <= 1050


def test_sites_are_not_combined_that_may_cancel_each_other_or_fail_in_two_ways() -> None:
    first = make_site("2", ["3"], ONE)
    for second in (
        make_site("2", ["9"], ONE),  # on the same line
        {**make_site("2", ["9"], ONE, line=1), "inverts": True},
        make_site("2", ["9"], ONE, line=1, kind="failed"),
    ):
        assert count_values([first, second], 32) == 2
    assert count_values([first, make_site("2", ["9"], ONE, line=1)], 32) == 4
    pairs = [make_site("2", ["9"], ONE, line=line) for line in range(5)]
    assert count_values(pairs, 32) == 32
    assert all(len(menu) == 5 for menu in make_menus(pairs, 32))
    assert len(list(combinations(pairs, 2))) == 10


def compare_copies(evaluation: blind.Evaluation) -> dict[str, tuple[str, str]]:
    """Return the results of a forger who takes what most copies of a test have for the truth."""
    text = evaluation.files[FILE].decode()
    values = {test: re.search(rf"{test.rpartition('::')[2]}\(.*\n.*== (\d)", text) for test in evaluation.expected}
    read = {test: match[1] for test, match in values.items() if match}
    results = {}
    for test, value in read.items():
        own = [
            other
            for name, other in read.items()
            if evaluation.origins.get(name, name) == evaluation.origins.get(test, test)
        ]
        is_true = value == Counter(own).most_common(1)[0][0]
        results[test] = ("passed", "") if is_true else ("failed", "AssertionError")
    return results


def count_paid(document: dict[str, Any], gradings: int) -> int:
    paid = 0
    for seed in range(gradings):
        judgement = blind.Judgement([ONE, TWO])
        for evaluation in blind.draw_evaluations(document, Random(seed)):
            judgement.add(evaluation, compare_copies(evaluation))
        paid += judgement.is_right
    return paid


def test_a_forger_who_compares_copies_beats_their_bound_and_not_that_of_instances() -> None:
    copies = make_copies(copies=5)
    for block in copies["blocks"]:
        (form,) = block["forms"]
        ((start, end, _),) = form["edits"]
        block["forms"] = [{**form, "edits": [[start, end, f"== {digit}"]]} for digit in "678"]
    bound = blind.compute_bound(copies)
    assert blind.rests_on_copies(copies)
    assert bound < BOUND
    assert count_paid(copies, 300) / 300 > 100 * bound, "real copies are alike, and sabotaged ones are not"
    instances = make_document(4)
    bound, gradings = blind.compute_bound(instances), 3000
    assert count_paid(instances, gradings) / gradings < bound + 4 * (bound / gradings) ** 0.5


# --------------------------------------------------------------------------------------------------------- features


def make_featured_block(features: list[list[float]], true: list[float]) -> dict[str, Any]:
    block = make_document()["blocks"][0]
    values = [
        {"text": str(number), "fails": {ONE: "assertion"}, "features": vector} for number, vector in enumerate(features)
    ]
    return {**block, "sites": [{**block["sites"][0], "values": values, "features": true}], "menus": [[[0, 4]]]}


def test_the_true_value_is_as_likely_first_as_last_where_other_values_allow() -> None:
    """Nine of twelve values are larger than the true one: chosen at random, it would be the smallest in 38 %."""
    block = make_featured_block([[float(number)] for number in range(13) if number != 3], [3.0])
    ranks: Counter[int] = Counter()
    for seed in range(1000):
        variants = draw_variants(block, Random(seed))
        texts = [int(variant.edits[0][2]) for variant in variants if variant.edits]
        ranks[sum(block["sites"][0]["values"][text]["features"][0] > 3 for text in texts)] += 1
    assert set(ranks) == {0, 1, 2, 3}
    assert all(170 < number < 330 for number in ranks.values()), ranks


@pytest.mark.parametrize(
    ("n_values", "n_features", "number"), [(12, 3, 4), (30, 7, 11), (9, 2, 8), (6, 2, 6), (40, 1, 3)]
)
def test_many_draws_at_once_are_made_as_those_of_a_grading(n_values: int, n_features: int, number: int) -> None:
    random = Random(n_values)

    def draw_features() -> list[float]:
        return [float(random.randrange(5)) for _ in range(n_features)]

    site = {"features": draw_features(), "values": [{"features": draw_features()} for _ in range(n_values)]}
    own = np.array(site["features"])
    others = np.array([value["features"] for value in site["values"]])
    draws = 1500
    chosen = draw_choices(others > own, others == own, number, draws, np.random.default_rng(1))
    assert (chosen.sum(axis=1) == number).all()
    rows = [[value["features"] for value in choose_values(site, number, random)] for _ in range(draws)]
    for place in range(n_features):
        at_once = chosen @ (own > others)[:, place].astype(int)
        in_turn = np.array([sum(own[place] > row[place] for row in chosen_rows) for chosen_rows in rows])
        # Two samples of one distribution are that far apart once in several thousand.
        for level in range(number + 1):
            assert abs((at_once <= level).mean() - (in_turn <= level).mean()) < 4 * np.sqrt(0.5 / draws)


def test_odds_are_those_of_the_reader_of_each_feature() -> None:
    given_away = make_featured_block([[0.0, 1.0]] * 8, [1.0, 1.0])
    odds = draw_site(given_away["sites"][0], 4, Random(1)).odds
    assert list(odds) == pytest.approx([SHOWN_ODDS, 1 / 4, 1 / 4, 1 / 4])
    alike = make_featured_block([[1.0, 1.0]] * 8, [1.0, 1.0])
    assert set(draw_site(alike["sites"][0], 4, Random(1)).odds) == {1 / 4}
    either = make_featured_block([[1.0], [0.0]] * 4, [1.0])
    most, least = draw_site(either["sites"][0], 4, Random(1)).odds
    assert 1 / 4 < most < 1
    assert least == 1 / 4
    sites = [*given_away["sites"], {**alike["sites"][0], "spans": [[1, 2]]}]
    assert select_menus(sites, [[(0, 4)], [(1, 4)]], Random(1)) == ([[(1, 4)]], [1 / 4] * 6)
    _, readers = select_menus(sites, [[(0, 4), (1, 4)]], Random(1))
    assert max(readers) == pytest.approx(1 / 4, abs=0.01), "of the grid a reader sees one site"
    document = {**make_document(), "blocks": [{**given_away, "odds": 1.0}, {**alike, "odds": 0.25}]}
    assert blind.compute_bound(document) == 0.25, "documents of earlier versions have the best reader of each block"
    assert blind.compute_guess_bound(document) == 1 / 16


def test_of_two_assertions_the_natural_one_is_taken_for_true() -> None:
    block = make_featured_block([[1.0, 1.0]], [1.0, 1.0])
    for is_natural, odds in ((True, SHOWN_ODDS), (False, 1 / 2)):
        site = {**block["sites"][0], "is_natural": is_natural}
        assert set(draw_site(site, 2, Random(1)).odds) == {odds}


def test_sites_whose_values_hide_the_true_one_come_first() -> None:
    sites = [
        {**make_featured_block(features, [1.0, 1.0])["sites"][0], "is_natural": is_natural}
        for features, is_natural in (
            ([[0.0, 1.0]] * 8, False),
            ([[1.0, 1.0]] * 3 + [[0.0, 2.0]] * 9, False),
            ([[1.0, 1.0]], True),
            ([[0.0, 0.0], [2.0, 2.0]] * 4, False),
        )
    ]
    assert [len(site["values"]) for site in sort_by_odds(sites)] == [8, 12, 1, 8]


def test_features_are_read_from_the_rest_of_the_test_its_file_and_the_tree() -> None:
    source = b"def test_a():\n    assert f(17) == 17\n\n\ndef test_b():\n    assert f(20) == 'a b'\n"
    file = parse_test_file("test_a.py", source)
    assert file is not None
    start = source.rindex(b"17")
    surroundings = Surroundings.read(
        file, (0, source.index(b"\n\n")), [(start, start + 2)], TreeCounts(tokens={"20": 3})
    )
    assert surroundings.describe("17")[:5] == [1, 0, 0, 17, 0]
    assert surroundings.describe("20")[:5] == [0, 1, pytest.approx(1.386), 20, 1]
    assert surroundings.describe("'b a'")[5] == 0 != surroundings.describe("'a b'")[5]


def test_a_value_without_words_is_looked_for_as_it_is() -> None:
    file = parse_test_file(
        "test_a.py", b"def test_a():\n    assert f({}, {}) == {}\n\n\ndef test_b():\n    assert f() == []\n"
    )
    assert file is not None
    start = file.source.rindex(b"{}")
    surroundings = Surroundings.read(file, (0, file.source.index(b"\n\n")), [(start, start + 2)], TreeCounts())
    assert [surroundings.describe(text)[:2] for text in ("{}", "[]", "()")] == [[2, 0], [0, 1], [1, 2]]


def test_the_shortest_value_is_found_among_words_and_numbers() -> None:
    """A number is shorter than an empty text only by its value."""
    file = parse_test_file("test_a.py", b"def test_a():\n    assert f(1) == ''\n")
    assert file is not None
    span = (file.source.index(b"''"), file.source.index(b"''") + 2)
    surroundings = Surroundings.read(file, (0, len(file.source)), [span], TreeCounts())
    texts = [*(f"'{number}'" for number in range(10)), *(f"'{letter}'" for letter in "abcdefghij")]
    values = [{"text": text, "features": surroundings.describe(text)} for text in texts]
    assert draw_site({"features": surroundings.describe("''"), "values": values}, 10, Random(1)).odds.max() > 0.95


def test_lines_of_the_tree_known_words_and_the_head_of_the_test_are_features() -> None:
    source = b"def test_red_apple():\n    assert f(1) == g('apple',\n        2)\n    pear()\n"
    file = parse_test_file("test_a.py", source)
    assert file is not None
    span = (source.index(b"'apple'"), source.index(b"'apple'") + 7)
    tree = TreeCounts(tokens={"plum": 1}, lines={b"assert f(1) == g('plum',": 2, b"2)": 1})
    surroundings = Surroundings.read(file, (0, len(source)), [span], tree, "test_red_apple")
    described = {text: surroundings.describe(f"'{text}'")[8:11] for text in ("apple", "plum", "pear", "2", "3")}
    assert described == {"apple": [0, 0, 1], "plum": [1, 1, 0], "pear": [0, 1, 0], "2": [0, 1, 1], "3": [0, 0, 0]}


def test_lines_are_counted_where_a_value_stands_in_several_places() -> None:
    source = b"def test_a():\n    a = f(17)\n    b = 3\n    assert a == 17, 17\n"
    file = parse_test_file("test_a.py", source)
    assert file is not None
    spans = [(start, start + 2) for start in range(len(source)) if source[start : start + 2] == b"17"]
    tree = TreeCounts(lines=dict.fromkeys((b"a = f(17)", b"a = f(20)", b"assert a == 20, 20", b"b = 3"), 1))
    surroundings = Surroundings.read(file, (0, len(source)), spans, tree)
    assert [surroundings.describe(text)[8] for text in ("17", "20", "5")] == [2, 3, 1]


def make_voted_block(n_values: int) -> dict[str, Any]:
    """Return a block whose true value is the second of most features, and the first of none but three of the votes.

    Three others are first in each of the other features.
    """
    true = [1.0] * 11
    others = [[0.0] * 11 for _ in range(n_values)]
    for place, voter in enumerate(VOTERS[:6]):
        others[place][voter] = 2.0
    return make_featured_block(others, true)


def test_a_vote_joins_features_none_of_which_finds_the_true_value() -> None:
    """Each of six others is the first in one feature; the true one is in three of nine."""
    site = make_voted_block(6)["sites"][0]
    drawn = draw_site(site, 7, Random(1))
    assert list(drawn.vote) == [SHOWN_ODDS]
    (menu,), readers = select_menus([site], [[(0, 7)]], Random(1))
    assert menu == [(0, 7)]
    assert max(readers) == pytest.approx(SHOWN_ODDS, abs=1e-3)
    assert max(readers[voter] for voter in VOTERS[:6]) < 0.51


def test_a_vote_for_instances_may_have_another_result_than_votes_at_their_sites() -> None:
    """At each site two voters take the true value and two another, but those are not the same at both sites."""
    first, second = (np.zeros((300, 3, 5), dtype=np.float32) for _ in range(2))
    first[:, 0, [0, 1]] = first[:, 1, [2, 3]] = first[:, 2, 4] = 1
    second[:, 0, [0, 1]] = second[:, 1, [2, 4]] = second[:, 2, 3] = 1
    sites = [SiteDraws(odds=np.ones(2), vote=count_votes(shares), votes=shares) for shares in (first, second)]
    by_site, by_instance = combine_draws(sites)[-2:]
    assert by_site == pytest.approx(1 / 4, abs=0.01)
    assert by_instance == pytest.approx(SHOWN_ODDS)


@pytest.mark.parametrize(("n_above", "odds"), [(0, 1), (1, 1 / 2), (2, 1 / 3), (3, 1 / 8), (7, 1 / 8)])
def test_a_value_that_is_the_second_or_third_of_an_order_is_found_by_who_takes_one_of_so_many(
    n_above: int, odds: float
) -> None:
    values = [[2.0]] * n_above + [[0.0]] * (7 - n_above)
    most, _ = draw_site(make_featured_block(values, [1.0])["sites"][0], 8, Random(1)).odds
    assert most == pytest.approx(odds, abs=0.01)


def test_a_part_of_a_word_is_looked_for_with_the_rest_of_it() -> None:
    source = b"def test_a():\n    assert f() == {'key_ops': 1}\n"
    file = parse_test_file("test_a.py", source)
    assert file is not None
    span = (source.index(b"ops"), source.index(b"ops") + 3)
    tree = TreeCounts(tokens={"key_ops": 5, "okp": 9})
    surroundings = Surroundings.read(file, (0, len(source)), [span], tree)
    assert surroundings.describe("ops")[2] > 0 == surroundings.describe("okp")[2]


def test_unusual_characters_count_more_the_more_there_are() -> None:
    source = b"def test_a():\n    assert f('apple', 'apple') == 'apple'\n"
    file = parse_test_file("test_a.py", source)
    assert file is not None
    start = source.rindex(b"apple")
    tree = TreeCounts(trigrams=count_trigrams([b"'apple' " * 3]))
    surroundings = Surroundings.read(file, (0, len(source)), [(start, start + 5)], tree)
    usual, *unusual = (surroundings.describe(text)[11] for text in ("apple", "zzz", "zzzzzz"))
    assert usual > 0 > unusual[0] > unusual[1]


def test_a_brief_grading_has_fewer_instances_of_a_test_that_stands_hundreds_of_times() -> None:
    document = make_document()
    first, second = document["blocks"]
    values = [{"text": str(number), "fails": {ONE: "assertion"}} for number in range(2000, 2400)]
    sites = [{**first["sites"][0], "values": values}] * 2
    first = {**first, "sites": sites, "menus": [[[0, 400]], [[0, 32], [1, 32]], [[0, 2], [1, 3]]]}
    single = {"file": FILE, "forms": [], "tests": []}
    task = SimpleNamespace(blind_controls="key")
    artifacts = SimpleNamespace(get=lambda _: json.dumps({**document, "blocks": [first, second]}).encode())
    services = SimpleNamespace(artifacts=artifacts)

    def count_drawn(*, is_brief: bool) -> set[int]:
        drawn = (
            draw_task_evaluations(cast(Task, task), cast(Services, services), is_brief=is_brief) for _ in range(40)
        )
        name = ONE.rpartition("::")[2]
        return {evaluation.files[FILE].count(f"def {name}_".encode()) for (evaluation,) in drawn}

    assert count_drawn(is_brief=False) == {400, 32 * 32, 6}
    assert count_drawn(is_brief=True) == {32, 6}
    shortened = shorten_menus({**document, "blocks": [first, second, single]})
    assert [bool(block.get("menus")) for block in shortened["blocks"]] == [True, True, False]


@pytest.mark.parametrize(
    ("sizes", "menus"), [((1, 1), [[(0, 2)], [(1, 2)]]), ((1, 2, 9), [[(1, 3)], [(2, 3)]]), ((), [])]
)
def test_a_test_on_which_no_bound_depends_stands_as_a_single_site(
    sizes: tuple[int, ...], menus: list[list[tuple[int, int]]]
) -> None:
    sites = [
        {
            "values": [{"fails": {"a": "assertion"}}] * size,
            "spans": [[place, place + 1]],
            "places": [(place, place)],
            "literal": place,
            "inverts": False,
            "is_input": False,
            "is_alone": False,
        }
        for place, size in enumerate(sizes)
    ]
    assert make_other_menus(sites) == menus
