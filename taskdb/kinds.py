"""What each kind of task is made of, and in which order kinds are tried: facts that derivers and the queue share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum

from taskdb.records import Kind, Stage
from taskdb.tags import ChangeKind


class Needs(StrEnum):
    """What a change must have come to before a kind can be made of it."""

    CANDIDATE = "candidate"
    """Nothing but its patches and its history."""
    VERIFIED = "verified"
    """Its tests were run, and its statement was judged."""
    PAIR = "pair"
    """The same, and a neighbour that has come as far."""
    NO_ENVIRONMENT = "no-environment"
    """Its environment could not be built, or its tests told nothing."""


NEEDS: Mapping[Kind, Needs] = {
    Kind.BUGFIX: Needs.VERIFIED,
    Kind.FEATURE: Needs.VERIFIED,
    Kind.PERFORMANCE: Needs.VERIFIED,
    Kind.TEST_WRITING: Needs.VERIFIED,
    Kind.INJECTED: Needs.VERIFIED,
    Kind.COMBINED: Needs.PAIR,
    Kind.REVIEW: Needs.CANDIDATE,
    Kind.SIMULATED: Needs.NO_ENVIRONMENT,
}
"""In the order in which they are made."""

INSTEAD: Mapping[Kind, Kind] = {Kind.FEATURE: Kind.BUGFIX}
"""Kind -> the kind in whose place it stands: it is not asked for where that one was made."""

ONLY_OF: Mapping[Kind, ChangeKind] = {Kind.PERFORMANCE: ChangeKind.PERFORMANCE}
"""Kinds that are asked only of changes that are above all of one kind."""

WITHOUT_TESTS = (Kind.PERFORMANCE, Kind.INJECTED, Kind.REVIEW)
"""Kinds that a change which brings no tests can give: those that were there before are enough for them."""

MAIN = (Kind.BUGFIX, Kind.FEATURE, Kind.PERFORMANCE)
"""Kinds that are the change itself: how far a change came is told by the first of these."""

DEFAULT = (Kind.BUGFIX, Kind.FEATURE)
"""What is made when no kind is named: what verification has told already."""

_WITHOUT = (Stage.BUILD, Stage.VERIFY)


def way(kinds: Iterable[Kind]) -> tuple[Stage, ...]:
    """The stages that a change has to go through for tasks of these kinds, in order."""
    mined_is_enough = all(NEEDS[kind] is Needs.CANDIDATE for kind in kinds)
    return (Stage.MINE, Stage.DERIVE, Stage.CERTIFY) if mined_is_enough else tuple(Stage)


def still_open(
    wanted: Iterable[Kind],
    made: Collection[Kind],
    refused: Collection[Kind],
    change_kind: str | None,
    *,
    brings_tests: bool = True,
) -> Iterator[Kind]:
    """Kinds of those wanted for which it is not known yet whether the change (of that `ChangeKind`) gives them."""
    chosen = set(wanted)
    for kind in NEEDS:
        if kind not in chosen or kind in made or kind in refused or INSTEAD.get(kind) in made:
            continue
        if not brings_tests and kind not in WITHOUT_TESTS:
            continue
        if change_kind == ONLY_OF.get(kind, change_kind):
            yield kind


def ready(kind: Kind, *, judged: bool, paired: bool, stopped: Stage | None) -> bool:
    """Whether a change has what a kind needs. `stopped`: the stage that has rejected it."""
    needs = NEEDS[kind]
    return (
        needs is Needs.CANDIDATE
        or (needs is Needs.VERIFIED and judged)
        or (needs is Needs.PAIR and judged and paired)
        or (needs is Needs.NO_ENVIRONMENT and stopped in _WITHOUT)
    )
