from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from graphql import OperationDefinitionNode, parse

from tests.github import GitHub, World
from tests.github.cost import QueryCost, measure_query_cost
from tests.github.generate import make_world
from tests.github.graphql import schema
from tests.github.handmade import RepositoryBuilder, make_sample_world

PAGE = """
query($after: String, $size: Int = 50) {
  rateLimit { cost limit remaining used nodeCount resetAt }
  repository(owner: "ada", name: "lib") {
    pullRequests(first: $size, after: $after, orderBy: {field: UPDATED_AT, direction: DESC}) {
      totalCount
      pageInfo { hasNextPage endCursor }
      nodes {
        number title body state createdAt updatedAt mergedAt baseRefName headRefOid mergeCommit { oid }
        author { __typename login } headRepository { nameWithOwner } statusCheckRollup { state }
        labels(first: 10) { nodes { name } }
        files { totalCount } commits { totalCount }
        closingIssuesReferences(first: 5) { nodes { number title body repository { nameWithOwner } } }
        reviewThreads(first: 5) { nodes { path line startLine comments(first: 5) { nodes { body diffHunk } } } }
      }
    }
  }
}
"""


def run_query(client: httpx.Client, hub: GitHub, query: str, **variables: Any) -> Any:
    answer = client.post(f"{hub.url}/graphql", json={"query": query, "variables": variables})
    assert answer.status_code == 200
    return answer.json()


def get_cost(query: str, **variables: Any) -> QueryCost:
    document = parse(query)
    operation = document.definitions[0]
    assert isinstance(operation, OperationDefinitionNode)
    return measure_query_cost(schema(), document, operation, variables)


def test_paging_by_update_gives_every_pull_request_once_whatever_the_page_size(
    world: World, client: httpx.Client
) -> None:
    repository = world.find("ada/lib")
    assert repository
    with GitHub(world) as hub:
        for size in (7, 100):
            seen, after, more = [], None, True
            while more:
                response = run_query(client, hub, PAGE, after=after, size=size)
                assert "errors" not in response
                page = response["data"]["repository"]["pullRequests"]
                seen += page["nodes"]
                after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
            assert len(seen) == len({row["number"] for row in seen}) == len(repository.pulls)
            assert [row["updatedAt"] for row in seen] == sorted((row["updatedAt"] for row in seen), reverse=True)
        assert hub.violations == []


def test_a_pull_request_updated_between_two_pages_shifts_no_other(tmp_path: Path, client: httpx.Client) -> None:
    world = make_world(tmp_path, pull_requests=20)
    repository = world.find("ada/lib")
    assert repository
    order = sorted(repository.pulls.values(), key=lambda p: (p.updated_at, p.id), reverse=True)
    with GitHub(world) as hub:
        first = run_query(client, hub, PAGE, size=5)["data"]["repository"]["pullRequests"]
        order[12].updated_at = "2030-01-01T00:00:00Z"
        second = run_query(client, hub, PAGE, size=5, after=first["pageInfo"]["endCursor"])["data"]["repository"]
        again = run_query(client, hub, PAGE, size=1)["data"]["repository"]["pullRequests"]
    assert [row["number"] for row in second["pullRequests"]["nodes"]] == [p.number for p in order[5:10]]
    assert again["nodes"][0]["number"] == order[12].number


def test_every_oddity_of_github_is_in_a_generated_world(world: World, client: httpx.Client) -> None:
    with GitHub(world) as hub:
        rows = run_query(client, hub, PAGE, size=100)["data"]["repository"]["pullRequests"]["nodes"]
    assert {row["author"] and row["author"]["__typename"] for row in rows} >= {None, "User", "Bot"}
    assert {row["state"] for row in rows} == {"OPEN", "CLOSED", "MERGED"}
    assert {row["baseRefName"] for row in rows} >= {"main", "master", "1.x", "develop"}
    assert any(row["headRepository"] is None for row in rows)
    assert "" in {row["body"] for row in rows}
    repository = world.find("ada/lib")
    assert repository
    assert {None, ""} <= {pull.body for pull in repository.pulls.values()}
    assert any(pull.merged_at and not pull.merge_commit for pull in repository.pulls.values())
    assert len({row["updatedAt"] for row in rows}) < len(rows)


def test_a_pull_request_has_the_same_data_in_api_and_clone(world: World, client: httpx.Client) -> None:
    repository = world.find("ada/lib")
    assert repository
    git = ["git", "-C", str(repository.git_dir)]
    with GitHub(world) as hub:
        rows = run_query(client, hub, PAGE, size=40)["data"]["repository"]["pullRequests"]["nodes"]
    refs = subprocess.run([*git, "for-each-ref", "--format=%(objectname) %(refname)"], check=True, capture_output=True)
    heads = dict(reversed(line.split()) for line in refs.stdout.decode().splitlines())
    for row in rows:
        assert row["headRefOid"] == heads[f"refs/pull/{row['number']}/head"]
        if row["mergeCommit"]:
            span = f"{row['mergeCommit']['oid']}^1...{row['headRefOid']}"
            named = subprocess.run([*git, "diff", "--name-only", "--no-renames", span], check=True, capture_output=True)
            assert len(named.stdout.splitlines()) == row["files"]["totalCount"]


def test_the_same_seed_gives_the_same_world_to_the_byte(tmp_path: Path) -> None:
    first, two = (make_world(tmp_path / part, seed=3, pull_requests=40).find("ada/lib") for part in "ab")
    assert first
    assert two
    assert first.pulls == two.pulls
    assert first.issues == two.issues


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ('{ repository(owner: "ada", name: "lib") { nonsense } }', "Cannot query field 'nonsense'"),
        ('{ repository(owner: "ada") { id } }', "is required, but it was not provided"),
        ("{ repository(owner: ", "Syntax Error"),
    ],
)
def test_githubs_schema_rejects_unknown_fields(world: World, client: httpx.Client, query: str, said: str) -> None:
    with GitHub(world) as hub:
        response = run_query(client, hub, query)
    assert said in response["errors"][0]["message"]
    assert "data" not in response


@pytest.mark.parametrize(
    ("inner", "kind"),
    [
        ("pullRequests { nodes { id } }", "MISSING_PAGINATION_BOUNDARIES"),
        ("pullRequests(first: 101) { nodes { id } }", "EXCESSIVE_PAGINATION"),
        ('pullRequests(first: 1, after: "bm8=") { nodes { id } }', "INVALID_CURSOR_ARGUMENTS"),
        ("pullRequest(number: 99999) { id }", "NOT_FOUND"),
    ],
)
def test_a_rejected_field_has_githubs_error_type(world: World, client: httpx.Client, inner: str, kind: str) -> None:
    with GitHub(world) as hub:
        response = run_query(client, hub, f'{{ repository(owner: "ada", name: "lib") {{ {inner} }} }}')
    assert response["errors"][0]["type"] == kind
    assert response["errors"][0]["path"][0] == "repository"


def test_an_unknown_and_a_private_repository_look_alike(tmp_path: Path, client: httpx.Client) -> None:
    world = make_sample_world(tmp_path)
    greet = world.find("ada/greet")
    assert greet
    greet.private = True
    query = 'query($n: String!) { repository(owner: "ada", name: $n) { id } }'
    with GitHub(world) as hub:
        for name in ("nothing", "greet"):
            response = run_query(client, hub, query, n=name)
            assert response["data"] == {"repository": None}
            assert response["errors"][0]["type"] == "NOT_FOUND"
            assert response["errors"][0]["message"] == f"Could not resolve to a Repository with the name 'ada/{name}'."


def test_a_renamed_repository_is_found_by_its_old_name_unless_disabled(tmp_path: Path, client: httpx.Client) -> None:
    world = make_sample_world(tmp_path)
    world.rename("ada/greet", "club/hello")
    query = """query($f: Boolean) { repository(owner: "ada", name: "greet", followRenames: $f) { nameWithOwner } }"""
    with GitHub(world) as hub:
        assert run_query(client, hub, query, f=True)["data"]["repository"] == {"nameWithOwner": "club/hello"}
        assert run_query(client, hub, query, f=False)["data"]["repository"] is None


def test_nodes_are_found_again_by_their_ids(world: World, client: httpx.Client) -> None:
    query = """{ repository(owner: "ada", name: "lib") { id pullRequests(first: 2) { nodes { id number } } } }"""
    again = "query($ids: [ID!]!) { nodes(ids: $ids) { __typename ... on PullRequest { number } } }"
    with GitHub(world) as hub:
        repository = run_query(client, hub, query)["data"]["repository"]
        rows = repository["pullRequests"]["nodes"]
        response = run_query(client, hub, again, ids=[rows[0]["id"], repository["id"], "PR_gone"])
    assert response["data"]["nodes"] == [
        {"__typename": "PullRequest", "number": rows[0]["number"]},
        {"__typename": "Repository"},
        None,
    ]
    assert response["errors"][0]["type"] == "NOT_FOUND"


def test_a_long_thread_is_read_on_from_its_id(tmp_path: Path, client: httpx.Client) -> None:
    world = make_sample_world(tmp_path)
    first = """{ repository(owner: "ada", name: "greet") { pullRequest(number: 2) { reviewThreads(first: 1) { nodes {
      id path comments(first: 1) { pageInfo { endCursor } nodes { body } } } } } } }"""
    more = """query($id: ID!, $after: String) { node(id: $id) { ... on PullRequestReviewThread {
      pullRequest { number } comments(first: 9, after: $after) { nodes { body replyTo { body } } } } } }"""
    with GitHub(world) as hub:
        thread = run_query(client, hub, first)["data"]["repository"]["pullRequest"]["reviewThreads"]["nodes"][0]
        end = thread["comments"]["pageInfo"]["endCursor"]
        response = run_query(client, hub, more, id=thread["id"], after=end)["data"]["node"]
        assert hub.violations == []
    assert [c["body"] for c in thread["comments"]["nodes"]] == ["Why strip?"]
    assert response["comments"]["nodes"] == [{"body": "Names come from forms.", "replyTo": {"body": "Why strip?"}}]
    assert response["pullRequest"] == {"number": 2}


def test_commits_files_and_branches_are_read_from_the_clone(tmp_path: Path, client: httpx.Client) -> None:
    world = World()
    with RepositoryBuilder(world, tmp_path) as shop:
        shop.commit("Begin", {"a.py": "a = 1\n"})
        pull = shop.pull("Two steps", None, [{"a.py": "a = 2\n"}, {"b.py": "b = 1\n"}], how="rebase")
    query = """{ repository(owner: "ada", name: "greet") { defaultBranchRef { name target { oid ... on Commit {
      message parents(first: 2) { totalCount } author { name email date } } } }
      licenseInfo { spdxId } languages(first: 5) { edges { size node { name } } }
      pullRequest(number: 1) { isCrossRepository files(first: 10) { nodes { path additions deletions changeType } }
        commits(first: 10) { nodes { commit { oid messageHeadline statusCheckRollup { state } } } } } } }"""
    with GitHub(world) as hub:
        response = run_query(client, hub, query)
        assert hub.violations == []
    repository = response["data"]["repository"]
    assert repository["defaultBranchRef"]["name"] == "main"
    assert repository["defaultBranchRef"]["target"]["oid"] == pull.merge_commit
    assert repository["defaultBranchRef"]["target"]["message"] == "Two steps"
    assert repository["licenseInfo"] == {"spdxId": "MIT"}
    assert repository["languages"] == {"edges": [{"size": 4000, "node": {"name": "Python"}}]}
    assert repository["pullRequest"]["files"]["nodes"] == [
        {"path": "a.py", "additions": 1, "deletions": 1, "changeType": "MODIFIED"},
        {"path": "b.py", "additions": 1, "deletions": 0, "changeType": "ADDED"},
    ]
    commits = [row["commit"] for row in repository["pullRequest"]["commits"]["nodes"]]
    assert [c["statusCheckRollup"] for c in commits] == [None, {"state": "SUCCESS"}]
    assert commits[-1]["oid"] == pull.head_sha


def test_a_query_costs_what_githubs_documentation_works_out() -> None:
    points = get_cost(
        "{ viewer { repositories(first: 100) { nodes { issues(first: 50) { nodes { labels(first: 60) "
        "{ nodes { name } } } } } } } }"
    )
    assert (points.requests, points.points) == (5101, 51)
    nodes = get_cost(
        "{ viewer { repositories(first: 50) { edges { node { pullRequests(first: 20) { edges { node { title "
        "comments(first: 10) { nodes { body } } } } } issues(first: 20) { totalCount edges { node { title "
        "comments(first: 10) { nodes { body } } } } } } } } followers(first: 10) { nodes { login } } } }"
    )
    assert nodes.nodes == 22_060


def test_a_query_costs_a_point_at_least_and_one_field_is_paid_once() -> None:
    assert get_cost("{ viewer { login } }").points == 1
    labels = "labels(first: 9) { totalCount }"
    for named in (labels, f"{labels} {labels}", f"...F {labels}"):
        query = f"""query {{ repository(owner: "a", name: "b") {{ issues(first: 100) {{ nodes {{ {named} }} }} }} }}
          fragment F on Issue {{ {labels} }}"""
        assert get_cost(query).requests == 101


def test_points_are_reported_and_charged(world: World, client: httpx.Client) -> None:
    with GitHub(world) as hub:
        first = run_query(client, hub, PAGE)["data"]["rateLimit"]
        second = run_query(client, hub, PAGE)["data"]["rateLimit"]
        log = hub.list_requests("graphql")
    assert first["cost"] == 5  # 1 page, 50 x 5 connections, 250 threads with comments: 501 requests
    assert second["remaining"] == 5000 - 2 * first["cost"]
    assert [line.points for line in log] == [first["cost"], first["cost"]]


def test_too_many_nodes_are_rejected_before_anything_is_read(world: World, client: httpx.Client) -> None:
    query = """{ repository(owner: "ada", name: "lib") { pullRequests(first: 100) { nodes { reviewThreads(first: 100) {
      nodes { comments(first: 100) { nodes { id } } } } } } } }"""
    with GitHub(world) as hub:
        response = run_query(client, hub, query)
    assert response["errors"][0]["type"] == "MAX_NODE_LIMIT_EXCEEDED"
    assert "1,010,100" in response["errors"][0]["message"]


def test_a_field_missing_in_the_emulator_is_an_error(world: World, client: httpx.Client) -> None:
    with GitHub(world) as hub:
        run_query(client, hub, '{ repository(owner: "ada", name: "lib") { codeOfConduct { name } } }')
        assert [v.rule for v in hub.violations] == ["unanswered"]
