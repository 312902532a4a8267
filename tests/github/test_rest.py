from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_schema_validator import OAS30Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4

from tests.github import AccessToken, GitHub, World
from tests.github.handmade import RepositoryBuilder, make_sample_world
from tests.github.packages import load_openapi

# GitHub answers null here although its description does not allow it: a deleted fork, a deleted account
NULL_IN_FACT = {("head", "repo"), ("head", "user"), ("base", "user")}


@pytest.fixture(scope="session")
def description() -> Registry[Any]:
    return Registry().with_resource("urn:github", Resource(_with_null(load_openapi()), DRAFT4))


def _with_null(value: Any) -> Any:
    """Add null to the values of nullable enums, which the description omits."""
    if isinstance(value, list):
        return [_with_null(v) for v in value]
    if not isinstance(value, dict):
        return value
    more = {"enum": [*value["enum"], None]} if value.get("nullable") and "enum" in value else {}
    return {k: _with_null(v) for k, v in value.items()} | more


def check_body(description: Registry[Any], path: str, answer: httpx.Response) -> None:
    """Fail unless a body conforms to GitHub's description of this path and status."""
    result = load_openapi()["paths"][path]["get"]["responses"][str(answer.status_code)]
    if "$ref" in result:
        result = load_openapi()["components"]["responses"][result["$ref"].rpartition("/")[2]]
    place = _resolve_references(result["content"]["application/json"]["schema"])
    validator = OAS30Validator(place, registry=description, format_checker=OAS30Validator.FORMAT_CHECKER)
    wrong = [
        f"{list(e.absolute_path)}: {e.message[:200]}"
        for e in validator.iter_errors(answer.json())
        if not (e.instance is None and tuple(e.absolute_path)[-2:] in NULL_IN_FACT)
    ]
    assert wrong == []


def _resolve_references(value: Any) -> Any:
    """Return a part of the description with absolute references, except in discriminator mappings."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k != "discriminator"}
        return {k: f"urn:github{v}" if k == "$ref" else _resolve_references(v) for k, v in kept.items()}
    return [_resolve_references(v) for v in value] if isinstance(value, list) else value


def find_numbers(world: World) -> tuple[int, int]:
    """Return the numbers of a pull request with review comments and of an issue with comments."""
    repository = world.find("ada/lib")
    assert repository
    pull = next(p.number for p in repository.pulls.values() if p.threads and p.comments)
    return pull, next(i.number for i in repository.issues.values() if i.comments)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/repos/{owner}/{repo}", {}),
        ("/repos/{owner}/{repo}/languages", {}),
        ("/repos/{owner}/{repo}/pulls", {"state": "all", "per_page": "60", "sort": "updated"}),
        ("/repos/{owner}/{repo}/pulls/comments", {"per_page": "100"}),
        ("/repos/{owner}/{repo}/pulls/{pull_number}", {}),
        ("/repos/{owner}/{repo}/pulls/{pull_number}/comments", {}),
        ("/repos/{owner}/{repo}/issues", {"state": "all", "per_page": "100"}),
        ("/repos/{owner}/{repo}/issues/comments", {"per_page": "100"}),
        ("/repos/{owner}/{repo}/issues/{issue_number}", {}),
        ("/repos/{owner}/{repo}/issues/{issue_number}/comments", {}),
        ("/rate_limit", {}),
        ("/user", {}),
        ("/search/repositories", {"q": "language:python lib"}),
    ],
)
def test_bodies_conform_to_githubs_description(
    world: World, client: httpx.Client, description: Registry[Any], path: str, query: dict[str, str]
) -> None:
    pull, issue = find_numbers(world)
    with GitHub(world) as hub:
        place = path.format(owner="ada", repo="lib", pull_number=pull, issue_number=issue)
        answer = client.get(hub.url + place, params=query)
        assert answer.status_code == 200
        assert answer.json()
        check_body(description, path, answer)
        assert hub.url in answer.text or path in ("/rate_limit", "/repos/{owner}/{repo}/languages")
        assert hub.violations == []


def test_the_files_of_a_pull_request_conform_to_githubs_description(
    tmp_path: Path, client: httpx.Client, description: Registry[Any]
) -> None:
    with GitHub(make_sample_world(tmp_path)) as hub:
        answer = client.get(f"{hub.url}/repos/ada/greet/pulls/2/files")
    check_body(description, "/repos/{owner}/{repo}/pulls/{pull_number}/files", answer)
    assert [f["filename"] for f in answer.json()] == ["greet/__init__.py", "tests/test_greet.py"]


def test_errors_conform_to_githubs_description(
    tmp_path: Path, client: httpx.Client, description: Registry[Any]
) -> None:
    world = make_sample_world(tmp_path)
    world.rename("ada/greet", "ada/hello")
    with GitHub(world) as hub:
        for name, status in (("greet", 301), ("nothing", 404)):
            answer = client.get(f"{hub.url}/repos/ada/{name}")
            assert answer.status_code == status
            check_body(description, "/repos/{owner}/{repo}", answer)


def test_a_renamed_repository_redirects_to_its_id_and_loses_the_query(tmp_path: Path, client: httpx.Client) -> None:
    world = make_sample_world(tmp_path)
    world.rename("ada/greet", "club/hello")
    with GitHub(world) as hub:
        moved = client.get(f"{hub.url}/repos/ada/greet/pulls", params={"state": "all"})
        followed = client.get(moved.headers["location"])
        whole = client.get(moved.headers["location"], params={"state": "all"})
    assert moved.status_code == 301
    assert "state" not in moved.headers["location"]
    assert followed.json() == []
    assert [p["number"] for p in whole.json()] == [5, 3, 2]


def test_private_blocked_and_archived_repositories(tmp_path: Path, client: httpx.Client) -> None:
    world = make_sample_world(tmp_path)
    repository = world.find("ada/greet")
    assert repository
    with GitHub(world, tokens=["ghp_reader", AccessToken("ghp_owner", private=frozenset({"ada/greet"}))]) as hub:
        url = f"{hub.url}/repos/ada/greet"
        repository.archived = True
        assert client.get(url).json()["archived"] is True
        repository.private = True
        assert client.get(url).status_code == 404
        assert client.get(url, headers={"Authorization": "token ghp_owner"}).json()["private"] is True
        repository.private, repository.blocked = False, True
        assert client.get(url).status_code == 451


def test_links_lead_through_every_page(world: World, client: httpx.Client) -> None:
    repository = world.find("ada/lib")
    assert repository
    with GitHub(world) as hub:
        seen, url = [], f"{hub.url}/repos/ada/lib/pulls?state=all&per_page=40&sort=created&direction=asc"
        while url:
            answer = client.get(url)
            seen += [pull["number"] for pull in answer.json()]
            url = answer.links.get("next", {}).get("url", "")
    assert seen == sorted(repository.pulls)


def test_unchanged_responses_are_free(world: World, client: httpx.Client) -> None:
    with GitHub(world) as hub:
        first = client.get(f"{hub.url}/repos/ada/lib")
        again = client.get(f"{hub.url}/repos/ada/lib", headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["x-ratelimit-used"] == first.headers["x-ratelimit-used"] == "1"
        assert [line.points for line in hub.requests] == [1, 0]


def test_a_diff_is_made_by_git_and_a_large_one_is_rejected(
    world: World, client: httpx.Client, description: Registry[Any]
) -> None:
    repository = world.find("ada/lib")
    assert repository
    largest = max(repository.pulls.values(), key=lambda p: p.changed_files)
    small = next(p for p in repository.pulls.values() if p.changed_files == 2)
    wanted = {"Accept": "application/vnd.github.v3.diff"}
    with GitHub(world) as hub:
        answer = client.get(f"{hub.url}/repos/ada/lib/pulls/{small.number}", headers=wanted)
        refused = client.get(f"{hub.url}/repos/ada/lib/pulls/{largest.number}", headers=wanted)
    assert answer.text.count("diff --git ") == 2
    assert answer.headers["content-type"].startswith("application/vnd.github")
    assert refused.status_code == 406
    check_body(description, "/repos/{owner}/{repo}/pulls/{pull_number}", refused)


def test_deleted_accounts_and_forks_are_null(tmp_path: Path, client: httpx.Client) -> None:
    with RepositoryBuilder(World(), tmp_path) as shop:
        shop.commit("Begin", {"a": "1\n"})
        shop.pull("Change", None, {"a": "2\n"}, author=None, fork="", how="closed")
        shop.pull("Bump", "", {"a": "3\n"}, author="dependabot[bot]", how="open")
    with GitHub(shop.world) as hub:
        newest, oldest = client.get(f"{hub.url}/repos/ada/greet/pulls?state=all").json()
    assert (oldest["user"], oldest["head"]["repo"], oldest["head"]["user"], oldest["body"]) == (None, None, None, None)
    assert (newest["user"]["login"], newest["user"]["type"]) == ("dependabot[bot]", "Bot")


def test_every_address_is_on_the_requested_host_and_enterprise_path(tmp_path: Path, client: httpx.Client) -> None:
    with GitHub(make_sample_world(tmp_path)) as hub:
        local = hub.enterprise_url.replace("127.0.0.1", "localhost")
        body = client.get(f"{local}/repos/ada/greet").json()
        result = client.post(f"{hub.url}/api/graphql", json={"query": "{ viewer { login } }"}).json()
    assert body["url"] == f"{local}/repos/ada/greet"
    assert body["clone_url"] == f"http://localhost:{hub.port}/ada/greet.git"
    assert result == {"data": {"viewer": {"login": "octo-reader"}}}
