"""What GitHub tells of repositories asked for by name: fifty in one query, for one point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from miner.github.api import RATE, Api
from miner.github.replies import Gone
from miner.licenses import NONE
from miner.repos.facts import Facts

PAGE = 50
"""Repositories in one query."""

# A connection costs; `object` and the other fields do not.
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


def facts_of_github(names: Sequence[str], api: Api) -> Iterator[Facts]:
    """Facts of each repository, in the order of `names` (`owner/name`); those that cannot be read are marked missing.

    Raises:
        InputError: no token is accepted.
        MachineError: no token is set.
        Transient: the network or the limits; what was yielded before holds.
    """
    for start in range(0, len(names), PAGE):
        page = names[start : start + PAGE]
        query, variables = _query(page)
        try:
            data = api.graphql(query, variables, what=f"{len(page)} repositories").data
        except Gone:  # none of them is there
            data = {}
        for number, name in enumerate(page):
            yield _facts(name, data.get(f"r{number}"))


def _query(names: Sequence[str]) -> tuple[str, dict[str, str]]:
    variables = {}
    for number, name in enumerate(names):
        variables[f"o{number}"], _, variables[f"n{number}"] = name.partition("/")
    declared = ", ".join(f"${variable}: String!" for variable in variables)
    asked = "\n".join(f"  r{i}: repository(owner: $o{i}, name: $n{i}) {{ ...Facts }}" for i in range(len(names)))
    return (
        f"query Repositories({declared}) {{\n{asked}\n  {RATE}\n}}\n{_FACTS}",
        variables,
    )


def _facts(name: str, found: dict[str, Any] | None) -> Facts:
    if found is None:
        return Facts(repo=name, source=f"github:{name}", missing=True)
    spdx = (found["licenseInfo"] or {}).get("spdxId") or NONE
    language = found["primaryLanguage"]
    return Facts(
        repo=found["nameWithOwner"], source=f"github:{found['nameWithOwner']}",
        merged=found["pullRequests"]["totalCount"], pushed_at=found["pushedAt"], license=spdx,
        # Tests may stand elsewhere: their absence at the root says nothing.
        has_tests=True if found["tests"] or found["test"] else None, has_ci=True if found["workflows"] else None,
        language=language["name"].lower() if language else None, kilobytes=found["diskUsage"],
        stars=found["stargazerCount"], archived=found["isArchived"],
        fork_of=(found["parent"] or {}).get("nameWithOwner", "another") if found["isFork"] else None,
    )  # fmt: skip
