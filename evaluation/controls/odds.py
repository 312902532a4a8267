"""Odds of readers: how often the true value of a site is the first or last of the drawn ones in some feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from math import sqrt
from operator import add, mul
from random import Random
from typing import TYPE_CHECKING, Any

from evaluation.controls.features import VOTERS
from evaluation.controls.planning import MAX_MENUS, Menu
from guest.controls.choices import CHOICES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Odds = NDArray[np.float64]
    """Probability that the true value is found by the most of each feature, then by the least of each."""

_DRAWS = 100
"""Draws by which the odds of readers are compared between menus."""
_FINAL_DRAWS = 300
"""Draws by which the odds of the chosen menus are measured."""
SHOWN_ODDS = (_FINAL_DRAWS + 1) / (_FINAL_DRAWS + 2)
"""Odds of a reader who always finds the true instance, by the rule of succession: 1 stands for no controls at all."""
_SURPRISE = 2.5
"""Standard deviations above chance from which a reader counts as better than chance."""
_SIMILAR = 1.25
"""Ratio to the lowest odds up to which a menu is kept."""
_FIRST_VALUES = 3
"""Values of which a reader may take one, the first in its order."""
_VOTE_DIGITS = 4
"""Decimal places of sums of votes, in which shares of equal values are equal."""
_MAX_CELLS = 2_000_000
"""Values that are shuffled at once."""
_TIE_BREAK = 2.0**-45


@dataclass(frozen=True, kw_only=True)
class SiteDraws:
    """Odds and votes of readers in many draws of a site's values."""

    odds: Odds
    vote: Odds
    """Odds of the value that most voters take, of shape 1."""
    votes: NDArray[np.float32]
    """The vote of each voter for each drawn value, the true one first, of shape draws x values x voters. Equal values
    share a vote."""


def select_menus(
    sites: Sequence[Mapping[str, Any]], menus: Sequence[Menu], random: Random
) -> tuple[list[Menu], list[float]]:
    """Return the menus in which readers find the true instance most seldom, and the odds of each reader.

    Readers go by the most of each feature, by the least of each, and by two votes: for the values of each site, and
    for instances.

    Args:
        sites: sites of a block, with features.
        menus: combinations of sites to choose from.
        random: random of the draws.
    """
    compare = cache(lambda number, size: draw_site(sites[number], size, random, _DRAWS))
    odds = [float(combine_draws([compare(number, size) for number, size in menu]).max()) for menu in menus]
    kept = [menu for menu, share in zip(menus, odds, strict=True) if share <= _SIMILAR * min(odds)][:MAX_MENUS]
    measure = cache(lambda number, size: draw_site(sites[number], size, random))
    shares = [combine_draws([measure(number, size) for number, size in menu]) for menu in kept]
    return kept, [float(f"{share:.4g}") for share in reduce(add, shares) / len(kept)]


def combine_draws(drawn: Sequence[SiteDraws]) -> Odds:
    """Return the odds of all readers in a grid of sites.

    A reader goes by the same feature in all of them, so that its odds are multiplied. A vote for instances may choose
    values that have no majority at their own sites.
    """
    import numpy as np  # noqa: PLC0415 - see `draw_site`

    by_site = reduce(mul, (np.concatenate([site.odds, site.vote]) for site in drawn))
    if len(drawn) == 1:
        return np.concatenate([by_site, drawn[0].vote])
    joined = drawn[0].votes
    for site in drawn[1:]:
        joined = (joined[:, :, np.newaxis] * site.votes[:, np.newaxis]).reshape(len(joined), -1, joined.shape[-1])
    return np.concatenate([by_site, count_votes(joined)])


def draw_site(site: Mapping[str, Any], size: int, random: Random, draws: int = _FINAL_DRAWS) -> SiteDraws:
    """Return the odds and votes of readers in draws of a site's values.

    A share that chance explains counts as 1/size (see `_estimate`).

    Args:
        site: a site with features; where `is_natural`, the true value is the one that anybody would take for true.
        size: number of its values that are drawn, the true one among them.
        random: random of the draws.
        draws: number of draws.
    """
    import numpy as np  # noqa: PLC0415 - loads slowly, and most commands measure nothing

    true = np.array(site["features"], dtype=float)
    others = np.array([value["features"] for value in site["values"]], dtype=float).reshape(-1, true.size)
    voters = [voter for voter in VOTERS if voter < true.size]
    size = min(size, len(others) + 1)
    if site.get("is_natural"):
        votes = np.zeros((draws, size, len(voters)), dtype=np.float32)
        votes[:, 0] = 1
        return SiteDraws(odds=np.full(2 * true.size, SHOWN_ODDS), vote=np.array([SHOWN_ODDS]), votes=votes)
    chosen = draw_choices(others > true, others == true, size - 1, draws, np.random.default_rng(random.getrandbits(64)))
    n_equal, n_above, n_below = (chosen @ side.astype(float) for side in (others == true, others > true, others < true))
    odds = np.concatenate([_estimate(beyond, n_equal, size) for beyond in (n_above, n_below)])
    drawn = others[:, voters][np.nonzero(chosen)[1].reshape(draws, size - 1)]
    values = np.concatenate([np.broadcast_to(true[voters], (draws, 1, len(voters))), drawn], axis=1)
    is_best = values == values.max(axis=1, keepdims=True)
    votes = (is_best / is_best.sum(axis=1, keepdims=True)).astype(np.float32)
    return SiteDraws(odds=odds, vote=count_votes(votes), votes=votes)


def count_votes(votes: NDArray[np.float32]) -> Odds:
    """Return the odds of a reader that takes the most votes, of shape 1.

    Args:
        votes: votes for the drawn values or instances, the true one first, of shape draws x instances x voters.
    """
    import numpy as np  # noqa: PLC0415 - see `draw_site`

    totals = votes.sum(axis=2).round(_VOTE_DIGITS)
    n_above, n_equal = ((totals > totals[:, :1]).sum(axis=1), (totals == totals[:, :1]).sum(axis=1) - 1)
    return _estimate(n_above[:, np.newaxis], n_equal[:, np.newaxis], votes.shape[1])


def _estimate(n_above: Odds, n_equal: Odds, size: int) -> Odds:
    """Return the odds of readers that take one of the first values in an order of theirs, of those numbers the best.

    A reader whose rule is a little different has another value first, and readers that take the second or third are
    as good for a test whose true value is never the first: so the odds of a reader are never below chance.

    Args:
        n_above: number of values that stand before the true one, of shape draws x readers.
        n_equal: number of values that are equal to it, of the same shape.
        size: number of values.
    """
    import numpy as np  # noqa: PLC0415 - see `draw_site`

    draws, chance = len(n_above), 1 / size
    odds = np.full(n_above.shape[1], chance)
    for first in range(1, min(_FIRST_VALUES, size) + 1):
        # Values that are equal for a reader are equally likely to be among its first.
        share = (np.clip((first - n_above) / (1 + n_equal), 0, 1)).mean(axis=0)
        is_usual = share <= first * chance + _SURPRISE * sqrt(first * chance * (1 - first * chance) / draws)
        # By the rule of succession (see `SHOWN_ODDS`).
        estimated = (share * draws + 1) / (draws + 2) / first
        odds = np.where(is_usual, odds, np.maximum(odds, estimated))
    return odds


def sort_by_odds(sites: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return sites in the order of the odds of the best reader, if all their values stand there: the least first.

    Args:
        sites: sites with features.
    """
    return sorted(sites, key=_find_best_odds)


def _find_best_odds(site: Mapping[str, Any]) -> float:
    import numpy as np  # noqa: PLC0415 - see `draw_site`

    if site["is_natural"]:
        return SHOWN_ODDS
    true = np.array(site["features"], dtype=float)
    others = np.array([value["features"] for value in site["values"]], dtype=float)
    n_above, n_below = ((others >= true).sum(axis=0), (others <= true).sum(axis=0))
    return float((1 / (1 + np.minimum(n_above, n_below))).max())


def draw_choices(
    above: NDArray[np.bool_], equal: NDArray[np.bool_], number: int, draws: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return whether each value is drawn in each of many draws, made as `guest.controls.choices.choose_values` does.

    Args:
        above: whether another value is above the true one in a feature, of shape values x features.
        equal: whether they are equal in it.
        number: number of values that are drawn.
        draws: number of draws.
        rng: random of the draws.

    Returns: draws x values.
    """
    import numpy as np  # noqa: PLC0415 - see `draw_site`

    n_values, n_features = above.shape
    if number >= n_values:
        return np.ones((draws, n_values), dtype=bool)
    at_once = max(1, _MAX_CELLS // (CHOICES * n_values))
    if draws > at_once:
        parts = [min(at_once, draws - done) for done in range(0, draws, at_once)]
        return np.concatenate([draw_choices(above, equal, number, part, rng) for part in parts])
    ranks = rng.integers(0, number + 1, (draws, 1, n_features)) / number
    order = rng.random((draws, CHOICES, n_values), dtype=np.float32)
    feature = rng.integers(n_features, size=(draws, CHOICES))
    is_higher = np.ascontiguousarray(above.T)[feature]
    n_higher = above.sum(axis=0)[feature][..., np.newaxis]
    wanted = rng.integers(0, number + 1, (draws, CHOICES, 1))
    # Where there are too few on one side, the rest comes from the other.
    taken = np.clip(wanted, number - (n_values - n_higher), n_higher)
    chosen = _take_first(order, is_higher, n_higher, taken, number)
    weights = (above + equal / 2).astype(np.float32)  # sums of ones and halves are exact
    sums = chosen.reshape(-1, n_values).astype(np.float32) @ weights
    shares = sums.reshape(draws, CHOICES, n_features).astype(float) / number
    nearest = np.abs(shares - ranks).sum(axis=2).argmin(axis=1)
    drawn: NDArray[np.bool_] = chosen[np.arange(draws), nearest]
    return drawn


def _take_first(
    order: NDArray[np.float32],
    is_higher: NDArray[np.bool_],
    n_higher: NDArray[np.int64],
    taken: NDArray[np.int64],
    number: int,
) -> NDArray[np.bool_]:
    """Return whether each value is taken: of the higher ones, and of the others, the first in a random order.

    Args:
        order: random numbers, of shape draws x choices x values; the first value has the least.
        is_higher: whether a value is one of the higher ones, of the same shape.
        n_higher: number of the higher ones, of shape draws x choices x 1.
        taken: number of the higher ones that are taken, of the same shape.
        number: number of all values that are taken.
    """
    import numpy as np  # noqa: PLC0415 - see `draw_site`

    # Sorting keys takes a third of the time of sorting places. The random numbers are multiples of 2**-24, so that the
    # higher ones come first, and equal ones differ by their place, without a change of the order of others.
    keys = (order - is_higher) + np.arange(order.shape[2]) * _TIE_BREAK
    ranked = np.sort(keys, axis=2)
    last_higher = np.where(taken > 0, np.take_along_axis(ranked, np.maximum(taken - 1, 0), axis=2), -np.inf)
    last = n_higher + number - taken - 1
    last_other = np.where(taken < number, np.take_along_axis(ranked, np.maximum(last, 0), axis=2), -np.inf)
    is_taken: NDArray[np.bool_] = (keys <= last_higher) | ((keys <= last_other) & ~is_higher)
    return is_taken
