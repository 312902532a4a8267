"""Facts from GitHub about repositories by name: fifty in a single query, for a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from miner.github.api import RATE_LIMIT_FIELDS, GitHubApi
from miner.github.responses import GitHubNotFoundError
from miner.licenses import NO_ASSERTION
from miner.repos.facts import RepositoryFacts

PAGE_SIZE = 50
"""Repositories in a single query."""

# A connection costs points; `object` and the other fields do not.
_FACTS = """
fragment Facts on Repository {
  nameWithOwner isArchived isFork parent { nameWithOwner } stargazerCount diskUsage pushedAt
  primaryLanguage { name } licenseInfo { spdxId }
  pullRequests(states: MERGED, first: 1) { totalCount }
  tests: object(expression: "HEAD:tests") { __typename }
  test: object(expression: "HEAD:test") { __typename }
  workflows: object(expression: "HEAD:.github/workflows") { __typename }
}
"""


def fetch_github_facts(names: Sequence[str], api: GitHubApi) -> Iterator[RepositoryFacts]:
    """Yield facts about each repository, in the order of `names` (`owner/name`); unreadable ones are marked missing.

    Raises:
        InputError: no token is accepted.
        MachineError: no token is set.
        Transient: the network failed, or a limit; facts yielded before are valid.
    """
    for start in range(0, len(names), PAGE_SIZE):
        page = names[start : start + PAGE_SIZE]
        query, variables = _build_query(page)
        try:
            data = api.query_graphql(query, variables, what=f"{len(page)} repositories").data
        except GitHubNotFoundError:  # none of them exists
            data = {}
        for number, name in enumerate(page):
            yield _build_github_facts(name, data.get(f"r{number}"))


def _build_query(names: Sequence[str]) -> tuple[str, dict[str, str]]:
    variables = {}
    for number, name in enumerate(names):
        variables[f"o{number}"], _, variables[f"n{number}"] = name.partition("/")
    declared = ", ".join(f"${variable}: String!" for variable in variables)
    fields = "\n".join(f"  r{i}: repository(owner: $o{i}, name: $n{i}) {{ ...Facts }}" for i in range(len(names)))
    return (
        f"query Repositories({declared}) {{\n{fields}\n  {RATE_LIMIT_FIELDS}\n}}\n{_FACTS}",
        variables,
    )


def _build_github_facts(name: str, answer: dict[str, Any] | None) -> RepositoryFacts:
    if answer is None:
        return RepositoryFacts(repo=name, source=f"github:{name}", is_missing=True)
    spdx = (answer["licenseInfo"] or {}).get("spdxId") or NO_ASSERTION
    language = answer["primaryLanguage"]
    return RepositoryFacts(
        repo=answer["nameWithOwner"],
        source=f"github:{answer['nameWithOwner']}",
        merged=answer["pullRequests"]["totalCount"],
        pushed_at=answer["pushedAt"],
        license=spdx,
        # Tests may be in other folders: their absence at the root proves nothing.
        has_tests=True if answer["tests"] or answer["test"] else None,
        has_ci=True if answer["workflows"] else None,
        language=language["name"].lower() if language else None,
        kilobytes=answer["diskUsage"],
        stars=answer["stargazerCount"],
        archived=answer["isArchived"],
        fork_of=(answer["parent"] or {}).get("nameWithOwner", "another") if answer["isFork"] else None,
    )
