from __future__ import annotations

import resource
import time
from pathlib import Path

import httpx
import pytest

from tests.github import GitHub
from tests.github.generate import make_world

QUERY = """query($after: String) { repository(owner: "ada", name: "lib") {
  pullRequests(first: 50, after: $after, orderBy: {field: UPDATED_AT, direction: DESC}) {
    pageInfo { hasNextPage endCursor }
    nodes { number title body updatedAt mergeCommit { oid } author { login } labels(first: 10) { nodes { name } }
            files { totalCount } closingIssuesReferences(first: 5) { nodes { number title body } } } } } }"""


def measure_memory() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.slow
def test_ten_thousand_pull_requests_are_made_quickly_and_served_with_flat_memory(
    tmp_path: Path, client: httpx.Client
) -> None:
    began = time.process_time()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    world = make_world(tmp_path, pull_requests=10_000)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    git = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    assert time.process_time() - began + git < 30  # seconds of CPU time, independent of the machine's load
    seen, place, early = set(), None, 0.0
    with GitHub(world) as hub:
        while True:
            answer = client.post(f"{hub.url}/graphql", json={"query": QUERY, "variables": {"after": place}})
            page = answer.json()["data"]["repository"]["pullRequests"]
            seen |= {pull["number"] for pull in page["nodes"]}
            early = measure_memory() if len(seen) == 1000 else early
            place = page["pageInfo"]["endCursor"]
            if not page["pageInfo"]["hasNextPage"]:
                break
        assert len(seen) == 10_000
        assert measure_memory() - early < 30
        assert hub.violations == []
