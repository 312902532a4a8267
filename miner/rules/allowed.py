"""Rules on what one may use: licences, and what benchmarks hold."""

from __future__ import annotations

from mergemill.config import Settings
from miner.benchmarks import benchmarks_of
from miner.changes import Change
from miner.licenses import allows
from miner.near import sketch
from miner.rules.statement import statement_of


def is_in_no_benchmark(change: Change, settings: Settings) -> str | None:
    """No list of `benchmarks` names it, its base commit or its repository."""
    request = change.pull_request
    found = benchmarks_of(settings).naming(request.repo, request.number, request.base_commit)
    return f"a benchmark's list names {found}" if found else None


def is_no_copy_of_a_benchmark(change: Change, settings: Settings) -> str | None:
    """Neither its gold patch nor its statement is nearly one of a benchmark's."""
    lists = benchmarks_of(settings)
    if not lists.sketched:
        return None
    ours = sketch(change.split.gold.text, change.split.test.text, statement_of(change))
    found = lists.near(ours, settings)
    return f"{found[1]} of {found[0]}" if found else None


def license_is_allowed(change: Change, settings: Settings) -> str | None:
    """The licence at the base commit is one of `licenses`, where any are named."""
    if not settings.licenses or allows(change.license, settings.licenses):
        return None
    return f"{change.license} is not among {', '.join(settings.licenses)}"
