"""Writer of the same chains as its siblings, in an order of its own: `python -m tests.taskdb.writer URL SEED`.

It prints a line after each transaction. Stages come in the order of the data path; changes in any, several of them in
one transaction.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any

from taskdb.records import Candidate, Kind, PullRequest, Rejection, Stage
from taskdb.records.tags import ChangeKind
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests import records

CHANGES = 24
BATCH = 5
SOURCE = "git:greet"


def write_chains(url: str, seed: int) -> Iterator[int]:
    """Write all chains; yield the number of transactions after each."""
    orders = random.Random(seed)
    done = 0
    with Store.open(url) as store:
        for batch in _shuffle(orders):
            pairs, tags, sketches = _make_mined_changes(batch)
            store.add_mined_changes(*pairs, tags=tags, sketches=sketches)
            yield (done := done + 1)
        for batch in _shuffle(orders):
            by_stage = [_make_stage_results(number) for number in batch]
            for stage in range(max(map(len, by_stage))):
                store.add_stage_results(*(results[stage] for results in by_stage if stage < len(results)))
                yield (done := done + 1)


def _shuffle(orders: random.Random) -> list[list[int]]:
    numbers = orders.sample(range(1, CHANGES + 1), CHANGES)
    return [numbers[start : start + BATCH] for start in range(0, CHANGES, BATCH)]


def _make_mined_changes(numbers: list[int]) -> tuple[list[Any], list[Any], dict[str, list[int]]]:
    pairs: list[tuple[PullRequest, Candidate | Rejection, float]] = []
    tags, sketches = [], {}
    for number in numbers:
        pull = records.make_pull_request(number, source=SOURCE)
        candidate = records.make_candidate(pull)
        is_rejected = number % 4 == 0
        pairs.append((pull, records.make_rejection(pull, Stage.MINE) if is_rejected else candidate, 0.1))
        tags.append(records.make_tags(pull, ChangeKind.BUGFIX, ChangeKind.TEST))
        if not is_rejected:
            sketches[candidate.id] = [number, number % 5, 99]
    return pairs, tags, sketches


def _make_stage_results(number: int) -> list[StageResult]:
    """Return the results of the stages after the miner; some changes end in a rejection."""
    pull = records.make_pull_request(number, source=SOURCE)
    candidate = records.make_candidate(pull)
    environment = records.make_environment(candidate)
    verification = records.make_verification(environment)
    verdict = records.make_verdict(verification)
    task = records.make_task(verification, candidate)
    results: list[tuple[Stage, Any]] = [
        (Stage.BUILD, environment),
        (Stage.VERIFY, verification),
        (Stage.JUDGE, verdict),
        (Stage.DERIVE, task),
        (Stage.CERTIFY, records.make_certificate(task)),
    ]
    if number % 4 == 0:
        return []
    if number % 4 == 1:
        results[1:] = [(Stage.VERIFY, records.make_rejection(environment, Stage.VERIFY, "flaky", name=pull.name))]
    return [
        StageResult(
            stage=stage,
            result=result,
            source=SOURCE,
            name=pull.name,
            seconds=1.0,
            kind=Kind.BUGFIX if stage in (Stage.DERIVE, Stage.CERTIFY) else None,
        )
        for stage, result in results
    ]


if __name__ == "__main__":
    for transactions in write_chains(sys.argv[1], int(sys.argv[2])):
        sys.stdout.write(f"{transactions}\n")
        sys.stdout.flush()
