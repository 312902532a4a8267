"""Our lists against those a published task came with, whose ids were written by others.

SWE-bench's Python lists cut an id at its first space; some hold bare function names (sympy), some the last part of a
path. An id of theirs is looked for as it is, then among ours cut at the first space, then by the last part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from taskdb.records import ListDifference, Published, PublishedVerdict, TestId

_CUTS: tuple[Callable[[str], str], ...] = (
    lambda test: test,
    lambda test: test.partition(" ")[0],
    lambda test: test.rpartition("::")[2].partition(" ")[0],
)
"""From the strictest reading of an id to the loosest."""


def compare(published: Published, fail_to_pass: Iterable[TestId], pass_to_pass: Iterable[TestId]) -> PublishedVerdict:
    """How our lists differ; the verdict speaks of the FAIL_TO_PASS set, ours against theirs."""
    f2p = _difference(published.fail_to_pass, fail_to_pass)
    p2p = _difference(published.pass_to_pass, pass_to_pass)
    return PublishedVerdict(verdict=_verdict(f2p), fail_to_pass=f2p, pass_to_pass=p2p)


def _verdict(f2p: ListDifference) -> Literal["exact", "superset", "subset", "different"]:
    if f2p.missing:
        return "different" if f2p.extra else "subset"
    return "superset" if f2p.extra else "exact"


def _difference(theirs: Iterable[TestId], ours: Iterable[TestId]) -> ListDifference:
    missing, extra = set(theirs), set(ours)
    for number, cut in enumerate(_CUTS):
        if number == len(_CUTS) - 1:  # a bare name stands for a test only where they write bare names
            bare = {test for test in missing if "::" not in test}
            matched = bare & {cut(test) for test in extra}
        else:
            matched = missing & {cut(test) for test in extra}
        missing -= matched
        extra = {test for test in extra if cut(test) not in matched}
    return ListDifference(missing=tuple(sorted(missing)), extra=tuple(sorted(extra)))
