"""How many evaluations a grading takes, and how many instances of each test: the least cost that reaches the bound."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, log, prod
from typing import Any

from guest.controls.blind import FIRST_EVALUATIONS

BOUND = 1 / 1000
"""Wanted probability of passing for a submission that solves nothing."""
MAX_EVALUATIONS = 12
MAX_READER_EVALUATIONS = 4
"""Evaluations that are added at most for submissions that read the tests: each is a run more in every grading."""
GRADING_SECONDS = 1800.0
"""Time that the evaluations of a grading may take; slower tests get fewer, and a higher bound."""
MAX_VALUES = 32
"""Values of a site that are drawn, and instances of a test in languages that compile their tests."""
MANY_INSTANCES = (*range(40, 100, 10), *range(100, 1000, 100), 1000)
"""Numbers of instances that are tried where a language reads its tests as fast as it runs them."""
INSTANCE_SECONDS = 30.0
"""Time that the instances of an evaluation may take, or as long as all tests without them."""
MIN_INSTANCES = 4
"""Instances that a test has at least where it has as many values. A submission that solves all but one test is paid as
often as it guesses that one."""
OTHER_INSTANCES = 3
"""Instances of a test outside of FAIL_TO_PASS."""
_ROUNDING = 1e-9
MAX_TRIED_MENUS = 6
MAX_MENUS = 4
"""Combinations of sites of a test, one of which is drawn for each evaluation."""
FIXED_SECONDS = 3.0
"""Duration of an evaluation without its tests; rather high, so that seconds measured of tests seldom decide."""
LEAST_SECONDS = 0.002
"""Duration of a short test that fails, its report included."""
SINGLE_DRAWS = 3
"""Draws of a single test in the first two evaluations, of which it is real in at least one."""

Menu = list[tuple[int, int]]
"""(Number of a site, number of its values that are used); the instances are all combinations of the values."""


@dataclass(frozen=True, kw_only=True)
class GradingPlan:
    """Evaluations of a grading, and the number of instances of each test that is to have at least that many values."""

    evaluations: int
    instances: int


def rank_plans(
    most: Sequence[int],
    seconds: Sequence[float],
    *,
    singles: int,
    suite: float,
    max_evaluations: int,
    max_instances: int = MAX_VALUES,
) -> list[GradingPlan]:
    """Return a plan for each number of evaluations: first those that reach the bound, the cheapest first.

    A submission with a preference of its own is right about the same tests in each evaluation
    (`guest.controls.blind.compute_bound`), so that more instances do more than more evaluations. Where tests stand
    once, there are as many evaluations as guesses need.

    Args:
        most: the most instances of each test that counts.
        seconds: duration of each of them.
        singles: number of tests that count and stand once.
        suite: seconds of an evaluation of all tests.
        max_evaluations: evaluations that there is time for.
        max_instances: the most instances of a test.
    """
    sizes = [size for size in (*range(MIN_INSTANCES, MAX_VALUES + 1), *MANY_INSTANCES) if size <= max_instances]
    ranked: list[tuple[float, float, GradingPlan]] = []
    for evaluations in range(FIRST_EVALUATIONS if singles else 1, max(max_evaluations, 2) + 1):
        of_singles = singles * (log(SINGLE_DRAWS) + (evaluations - FIRST_EVALUATIONS) * log(2))
        plans: list[tuple[float, float, GradingPlan]] = []
        for instances in sizes:
            numbers = [min(instances, number) for number in most]
            asked = (
                numbers
                if singles
                else [_count_questions(n, m, evaluations) for n, m in zip(numbers, most, strict=True)]
            )
            of_repeated = sum(map(log, asked)) * (evaluations if singles else 1)
            missing = -log(BOUND) - of_repeated - of_singles
            plan = GradingPlan(evaluations=evaluations, instances=instances)
            if plans and compute_cost(replace(plan, evaluations=1), most, seconds) > max(INSTANCE_SECONDS, suite):
                break
            # A few per cent of the bound are worth no evaluation.
            plans.append(
                (
                    max(0.1, round(missing, 1)) if missing > _ROUNDING else 0.0,
                    suite + compute_cost(plan, most, seconds),
                    plan,
                )
            )
            if missing <= _ROUNDING:
                break
        ranked.append(min(plans, key=lambda entry: entry[:2]))
    return [plan for _, _, plan in sorted(ranked, key=lambda entry: entry[:2])]


def _count_questions(instances: int, most: int, evaluations: int) -> int:
    """Return 1 / share of the preferences for texts that pass a grading. `most`: number of values."""
    return min(most, evaluations * (instances - 1) + 1)


def compute_cost(plan: GradingPlan, most: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the seconds of a grading beyond those of the suite, which the first evaluation alone runs.

    Args:
        plan: the plan.
        most: the most instances of each test.
        seconds: duration of each of them.
    """
    repeated = sum(min(plan.instances, n) * max(s, LEAST_SECONDS) for n, s in zip(most, seconds, strict=True))
    return plan.evaluations * repeated + (plan.evaluations - 1) * FIXED_SECONDS


def make_menus(sites: Sequence[Mapping[str, Any]], instances: int) -> list[Menu]:
    """Return combinations of sites that give a test that many instances, or as many as it can have.

    A single site with enough values is preferred, as nothing then shows which values belong together. Otherwise the
    instances are a grid: all combinations of the values of some sites.

    Args:
        sites: sites of a block, as a document has them.
        instances: wanted number.
    """
    sizes = [len(site["values"]) + 1 for site in sites]
    alone = [[(number, instances)] for number, size in enumerate(sizes) if size >= instances]
    if alone:
        return alone[:MAX_TRIED_MENUS]
    menus: list[Menu] = []
    # A site that stands alone is a grid of its own.
    for first in sorted(range(len(sites)), key=lambda number: -sizes[number])[:MAX_TRIED_MENUS]:
        menu = _make_grid(sites, sizes, first, instances)
        if menu not in menus:
            menus.append(menu)
    totals = [prod(size for _, size in menu) for menu in menus]
    enough = min(instances, max(totals, default=1))
    return [menu for menu, total in zip(menus, totals, strict=True) if total >= enough]


def make_other_menus(sites: Sequence[Mapping[str, Any]]) -> list[Menu]:
    """Return the menus of a test outside of FAIL_TO_PASS: a single site, as no bound depends on their number."""
    most = max((len(site["values"]) + 1 for site in sites), default=1)
    return make_menus(sites, min(OTHER_INSTANCES, most))


def _make_grid(sites: Sequence[Mapping[str, Any]], sizes: Sequence[int], first: int, instances: int) -> Menu:
    """Return a grid of sites that do not disturb each other, beginning with a site."""
    menu: Menu = []
    missing = instances
    for number in [first, *(other for other in range(len(sites)) if other != first)]:
        if missing > 1 and all(_can_combine(sites[number], sites[other]) for other, _ in menu):
            size = min(sizes[number], max(missing, 2))
            menu.append((number, size))
            missing = ceil(missing / size)
    return sorted(_trim_grid(menu, instances))


def _trim_grid(menu: Menu, instances: int) -> Menu:
    """Return a grid with fewer values of its sites, the largest first, that still has so many instances."""
    total = prod(size for _, size in menu)
    trimmed: Menu = []
    for number, size in sorted(menu, key=lambda entry: -entry[1]):
        least = min(size, max(2, ceil(instances * size / total)))
        total = total // size * least
        trimmed.append((number, least))
    return trimmed


def shorten_menus(document: Mapping[str, Any], instances: int = MAX_VALUES) -> dict[str, Any]:
    """Return a document whose tests stand fewer times: with the fewest values that still give so many instances."""
    return {**document, "blocks": [_shorten(block, instances) for block in document["blocks"]]}


def _shorten(block: Mapping[str, Any], instances: int) -> Mapping[str, Any]:
    if "menus" not in block:
        return block
    menus = [[(number, size) for number, size in menu] for menu in block["menus"]]
    return {
        **block,
        "menus": [
            _trim_grid(menu, instances) if prod(size for _, size in menu) > instances else menu for menu in menus
        ],
    }


def _can_combine(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether two sites may be changed at once, and every test fails with both in one way.

    The results of two inputs may be equal again, wherever they stand, unless they are words of one literal. A test
    whose id contains both values has an id that was never seen.
    """
    if first["is_alone"] or second["is_alone"] or first["inverts"] != second["inverts"]:
        return False
    if not is_disjoint(first["spans"], second["spans"]):
        return False
    if (first["is_input"] or second["is_input"]) and first["literal"] != second["literal"]:
        return False
    if not are_separate(first["places"], second["places"]):
        return False
    renamed, others = ({test for value in site["values"] for test in value.get("ids", ())} for site in (first, second))
    if not renamed.isdisjoint(others):
        return False
    kinds: dict[str, set[str]] = {}
    for site in (first, second):
        for value in site["values"]:
            for test, kind in value["fails"].items():
                kinds.setdefault(test, set()).add(kind)
    return all(len(test_kinds) == 1 for test_kinds in kinds.values())


def are_separate(first: Iterable[tuple[int, int]], second: Collection[tuple[int, int]]) -> bool:
    """Return whether no line holds both of two sites outside of one container.

    Both sides of a comparison may be equal again if both are changed, unlike members of a list or words of a literal.

    Args:
        first: lines of a site, with the first byte of the container of each place.
        second: those of the other site.
    """
    return all(group == other for line, group in first for other_line, other in second if line == other_line)


def count_values(sites: Sequence[Mapping[str, Any]], most: int) -> int:
    """Return the number of instances that a test with these sites can have. `most`: number to reach."""
    menus = make_menus(sites, most)
    return max((prod(size for _, size in menu) for menu in menus), default=1)


def is_disjoint(first: Iterable[Sequence[int]], second: Collection[Sequence[int]]) -> bool:
    """Return whether no span of a site, first byte and end, overlaps one of another."""
    return all(end <= other[0] or other[1] <= start for start, end in first for other in second)
