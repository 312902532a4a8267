"""Pairs of a subject and a scaffold that are not sampled: the scaffold does not deliver a source of instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from core.errors import UsageError
from mergemill.agents.sampling.request import SampledSubject
from samplers.scaffolds.base import SampledScaffold
from samplers.scaffolds.delivery import NOT_DELIVERED, describe_undelivered, find_undelivered
from samplers.scaffolds.registry import SCAFFOLDS, load_scaffold
from taskdb.records.instructions import InstructionSource


def leave_out_undelivered(
    sources: Sequence[tuple[SampledSubject, Collection[InstructionSource]]],
    scaffolds: Sequence[SampledScaffold],
    print_message: Callable[[str], None],
) -> frozenset[tuple[str, str]]:
    """Return the pairs that are not sampled, as ids of subjects and names of scaffolds; a message counts them.

    Args:
        sources: subjects, each with the sources of its instructions besides the statement.
        scaffolds: scaffolds of the request.
        print_message: function that shows a line.

    Raises:
        UsageError: no pair is left.
    """
    counts: Counter[str] = Counter()
    left_out, needed = set(), set()
    for subject, subject_sources in sources:
        for scaffold in scaffolds:
            if missing := find_undelivered(scaffold, subject_sources):
                left_out.add((subject.id, scaffold.name))
                needed |= set(subject_sources)
                counts[describe_undelivered(scaffold, missing)] += 1
    if not left_out:
        return frozenset()
    n_pairs = len(sources) * len(scaffolds)
    if len(left_out) == n_pairs:
        able = [name for name in SCAFFOLDS if needed <= load_scaffold(name).delivers]
        raise UsageError(f"--scaffold: {'; '.join(counts)} ({NOT_DELIVERED})", advice=f"one of {', '.join(able)}")
    counted = "; ".join(f"{reason} ({count})" for reason, count in sorted(counts.items()))
    print_message(f"{len(left_out)} of {n_pairs} pairs of task and scaffold are left out ({NOT_DELIVERED}): {counted}")
    return frozenset(left_out)
