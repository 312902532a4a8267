"""Rules on the sources that may be used: licences, benchmarks, and candidates that exist already."""

from __future__ import annotations

from core.settings.mining import MiningSettings
from miner.benchmarks import load_benchmarks
from miner.changes import Change
from miner.licenses import is_allowed


def is_in_no_benchmark(change: Change, mining: MiningSettings) -> str | None:
    """Pass when no list of `benchmarks` names the change, its base commit or its repository."""
    request = change.pull_request
    benchmarks = load_benchmarks(mining.benchmarks)
    instance = benchmarks.find_by_name(request.repo, request.number, request.base_commit, request.name)
    return f"a benchmark's list names {instance}" if instance else None


def is_no_benchmark_copy(change: Change, mining: MiningSettings) -> str | None:
    """Pass when neither gold patch nor problem statement is a near duplicate of a benchmark's."""
    benchmarks = load_benchmarks(mining.benchmarks)
    if not benchmarks.sketches:
        return None
    near_duplicate = benchmarks.find_near_duplicate(change.sketch, mining)
    return f"{near_duplicate[1]} of {near_duplicate[0]}" if near_duplicate else None


def is_not_stored(change: Change, mining: MiningSettings) -> str | None:
    """Pass when the database holds no near duplicate among the candidates of changes stored before this one.

    A fork's copy or a backport is not a second task. A change is never compared with itself, and mining again in
    another order gives the same results.
    """
    for other, sketch in change.find_similar(change.sketch) if change.find_similar else ():
        if similarity := change.sketch.describe_similarity(sketch, mining):
            return f"{similarity} of {other.name} ({other.source})"
    return None


def license_is_allowed(change: Change, mining: MiningSettings) -> str | None:
    """Pass when the licence at the base commit is one of `licenses`, or `licenses` is empty."""
    if not mining.licenses or is_allowed(change.license, mining.licenses):
        return None
    return f"{change.license} is not among {', '.join(mining.licenses)}"
