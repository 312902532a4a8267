from __future__ import annotations

import math
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.github import FAULTS, AccessToken, FaultPlan, GitHub, ServerClock, TokenLimits, World
from tests.github.faults import QUICK, ServerFault, make_primary_limit, make_secondary_limit
from tests.github.handmade import make_sample_world

QUERY = """{ repository(owner: "ada", name: "greet") { pullRequests(first: 50) { nodes { number } } } }"""


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_sample_world(tmp_path_factory.mktemp("sample"))


def rest(client: httpx.Client, hub: GitHub) -> httpx.Response:
    return client.get(f"{hub.url}/repos/ada/greet")


def graphql(client: httpx.Client, hub: GitHub, query: str = QUERY) -> httpx.Response:
    return client.post(f"{hub.url}/graphql", json={"query": query})


def git(hub: GitHub, folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["git", "clone", "-q", "--bare", f"{hub.url}/ada/greet.git", str(folder)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("name", [n for n in FAULTS if "rest" in FAULTS[n].strikes and "cut" not in n])
def test_a_single_fault_affects_one_rest_request(sample: World, client: httpx.Client, name: str) -> None:
    with GitHub(sample, faults=FaultPlan().add_once(name)) as hub:
        struck, well = rest(client, hub), rest(client, hub)
        assert hub.faults.counts == {name: 1}
        assert [line.fault for line in hub.requests] == [name, ""]
    assert well.json()["full_name"] == "ada/greet"
    assert name == "slow" or struck.status_code >= 400 or struck.content != well.content


def test_each_fault_has_its_rest_response(sample: World, client: httpx.Client) -> None:
    with GitHub(sample, faults=FaultPlan()) as hub:

        def struck(fault: ServerFault | str) -> httpx.Response:
            hub.faults.add_once(fault)
            return rest(client, hub)

        used_up = struck(make_primary_limit(7))
        assert (used_up.status_code, used_up.headers["x-ratelimit-remaining"]) == (403, "0")
        assert 6 <= int(used_up.headers["x-ratelimit-reset"]) - hub.clock.now() <= 8
        assert "rate limit exceeded" in used_up.json()["message"]
        waiting = struck(make_secondary_limit(429, 3))
        assert (waiting.status_code, waiting.headers["retry-after"]) == (429, "3")
        assert int(waiting.headers["x-ratelimit-remaining"]) > 0
        silent = struck("secondary-403")
        assert (silent.status_code, "retry-after" in silent.headers) == (403, False)
        assert "secondary rate limit" in silent.json()["message"]
        assert struck("expired-token").json()["message"] == "Bad credentials"
        for name in ("malformed", "truncated"):
            spoilt = struck(name)
            assert spoilt.status_code == 200
            with pytest.raises(ValueError, match=r"Expecting|Unterminated|Invalid"):
                spoilt.json()


def test_graphql_faults_have_status_200_and_an_error(sample: World, client: httpx.Client) -> None:
    expected: dict[str, Any] = {
        "graphql-rate-limited": "RATE_LIMITED",
        "primary": "RATE_LIMITED",
        "graphql-resource-limits-exceeded": "RESOURCE_LIMITS_EXCEEDED",
        "graphql-something-went-wrong": None,
    }
    with GitHub(sample) as hub:
        for name, kind in expected.items():
            hub.faults.add_once(name)
            answer = graphql(client, hub)
            assert answer.status_code == 200
            assert answer.json()["errors"][0].get("type") == kind
            assert not answer.json().get("data")
        hub.faults.add_once("partial")
        result = graphql(client, hub).json()
        assert result["data"]["repository"]["pullRequests"]["nodes"] == [None, {"number": 3}, None]
        assert result["errors"]


@pytest.mark.parametrize("name", ["cut-before", "cut-0", "cut-200"])
def test_a_connection_is_cut_before_and_in_the_answer(sample: World, client: httpx.Client, name: str) -> None:
    with GitHub(sample, faults=FaultPlan().add_once(name)) as hub:
        with pytest.raises(httpx.RemoteProtocolError):
            rest(client, hub)
        assert rest(client, hub).status_code == 200
        assert [line.status for line in hub.requests] == [0, 200]


@pytest.mark.parametrize("name", [n for n in FAULTS if "git" in FAULTS[n].strikes and n not in ("slow", "cut-200")])
def test_a_clone_succeeds_after_a_fault(tmp_path: Path, sample: World, name: str) -> None:
    with GitHub(sample, faults=FaultPlan().add_once(name, kinds=["git"])) as hub:
        assert git(hub, tmp_path / "broken").returncode != 0
        assert git(hub, tmp_path / "whole").returncode == 0


def test_large_pages_fail_and_small_ones_never(world: World, client: httpx.Client) -> None:
    query = """{ repository(owner: "ada", name: "lib") { pullRequests(first: %d) { nodes { number } } } }"""
    with GitHub(world, faults=FaultPlan().fail_large_pages(25)) as hub:
        answers = [graphql(client, hub, query % size) for size in (50, 26, 25)]
        assert [answer.status_code for answer in answers] == [502, 502, 200]
        assert [line.points for line in hub.requests] == [2, 2, 1]  # a failed query costs its points once more


def test_events_happen_in_mid_crawl(tmp_path: Path, client: httpx.Client) -> None:
    world = make_sample_world(tmp_path)

    def revoke(hub: GitHub) -> None:
        hub.tokens["ghp_reader"].revoked = True

    plan = FaultPlan().schedule_event(2, lambda hub: hub.world.rename("ada/greet", "ada/hello"))
    plan.schedule_event(3, lambda hub: hub.world.remove("ada/hello")).schedule_event(4, revoke)
    with GitHub(world, faults=plan) as hub:
        assert [rest(client, hub).status_code for _ in range(4)] == [200, 301, 404, 401]


def test_a_seed_gives_the_same_faults_in_any_order_and_ends(sample: World, client: httpx.Client) -> None:
    paths = ["/user", *(f"/repos/ada/greet{below}" for below in ("", "/pulls", "/issues", "/pulls/2"))]
    names = ["http-500", "http-502", "http-503", "malformed"]

    def crawl(order: list[str], seed: int) -> dict[str, list[str]]:
        """Return the faults of each path until it was answered."""
        with GitHub(sample, faults=FaultPlan.from_seed(seed, rate=0.6, names=names)) as hub:
            for path in order:
                for _ in range(3):
                    answer = client.get(hub.url + path)
                    if answer.status_code == 200 and answer.content[:1] != b"<":
                        break
                else:
                    pytest.fail("three times in a row")
            return {path: [line.fault for line in hub.requests if line.path == path] for path in paths}

    crawled = crawl(paths, 4)
    assert crawled == crawl(paths[::-1], 4)
    assert crawled != crawl(paths, 5)
    assert sum(len(faults) for faults in crawled.values()) > len(paths)


def query_with_retries(client: httpx.Client, hub: GitHub, query: str) -> Any:
    """Return the data of a query, sent up to three more times after failures."""
    for _ in range(3):
        try:
            result = graphql(client, hub, query).json()
        except (httpx.TransportError, ValueError):
            continue
        if isinstance(result, dict) and "data" in result and "errors" not in result:
            return result["data"]
    return pytest.fail("three times in a row")


def test_many_threads_under_every_fault_read_what_one_reads_without(world: World) -> None:
    repository = world.find("ada/lib")
    assert repository
    form = """{ repository(owner: "ada", name: "lib") { pullRequest(number: %d) { title body mergeCommit { oid }
      labels(first: 9) { nodes { name } } } } }"""
    numbers = sorted(repository.pulls)[:60]

    def crawl(hub: GitHub, threads: int) -> list[Any]:
        with (
            httpx.Client(headers={"Authorization": "Bearer ghp_reader"}, timeout=60) as client,
            ThreadPoolExecutor(threads) as pool,
        ):
            return list(pool.map(lambda number: query_with_retries(client, hub, form % number), numbers))

    with GitHub(world) as calm:
        expected = crawl(calm, 1)
    with GitHub(world, faults=FaultPlan.from_seed(11, rate=0.5, names=QUICK)) as stormy:
        assert crawl(stormy, 8) == expected
        assert len(stormy.faults.counts) > 8
        assert stormy.account().running == 0


# ---- budgets


def list_required_waits(hub: GitHub) -> list[str]:
    return [violation.rule for violation in hub.violations]


def test_a_budget_is_used_up_and_refilled(sample: World, client: httpx.Client) -> None:
    token = AccessToken("ghp_reader", limits=TokenLimits(requests=2, points=1, window=100))
    with GitHub(sample, tokens=[token]) as hub:
        assert [rest(client, hub).headers["x-ratelimit-remaining"] for _ in range(2)] == ["1", "0"]
        refused = rest(client, hub)
        assert (refused.status_code, list_required_waits(hub)) == (403, ["remaining-0"])
        assert "errors" not in graphql(client, hub).json()
        assert graphql(client, hub).json()["errors"][0]["type"] == "RATE_LIMITED"
        assert client.get(f"{hub.url}/rate_limit").json()["resources"]["core"]["remaining"] == 0
        hub.clock.advance(int(refused.headers["x-ratelimit-reset"]) - hub.clock.now())
        assert rest(client, hub).status_code == 200
        assert list_required_waits(hub) == ["remaining-0", "remaining-0"]


@pytest.mark.parametrize(
    ("wait", "fault", "broken"),
    [
        (4.0, make_secondary_limit(403, 5), True),
        (5.0, make_secondary_limit(403, 5), False),
        (59.0, make_secondary_limit(429), True),
        (60.0, make_secondary_limit(429), False),
        (1.0, make_primary_limit(10), True),
        (11.0, make_primary_limit(10), False),
    ],
)
def test_a_request_before_the_required_wait_is_a_violation(
    sample: World, client: httpx.Client, wait: float, fault: ServerFault, *, broken: bool
) -> None:
    with GitHub(sample, faults=FaultPlan().add_once(fault)) as hub:
        rest(client, hub)
        hub.clock.advance(wait)
        rest(client, hub)
        assert bool(hub.violations) is broken


def test_a_request_in_flight_is_no_violation(sample: World, client: httpx.Client) -> None:
    with GitHub(sample, faults=FaultPlan().add_once(make_secondary_limit(403, 9))) as hub:
        hub.books.grace = 30
        hub.account().most_at_once = 2
        for _ in range(2):
            rest(client, hub)
        assert hub.violations == []
        hub.books.grace = 0
        rest(client, hub)
        assert list_required_waits(hub) == ["retry-after"]


def test_a_secondary_limit_of_one_token_is_not_anothers(sample: World, client: httpx.Client) -> None:
    with GitHub(
        sample, tokens=["ghp_reader", "ghp_other"], faults=FaultPlan().add_once(make_secondary_limit(403, 60))
    ) as hub:
        assert rest(client, hub).status_code == 403
        answer = client.get(f"{hub.url}/repos/ada/greet", headers={"Authorization": "token ghp_other"})
        assert (answer.status_code, hub.violations) == (200, [])


def run_concurrently(count: int, job: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=job) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_too_many_concurrent_requests_are_rejected_and_recorded(sample: World) -> None:
    token, answers = AccessToken("ghp_reader", limits=TokenLimits(concurrent=3)), []

    def job() -> None:
        headers = {"Authorization": "Bearer ghp_reader"}
        answers.append(httpx.get(f"{hub.url}/repos/ada/greet", headers=headers, timeout=30).status_code)

    with GitHub(sample, tokens=[token], latency=1.0) as hub:
        run_concurrently(3, job)
        assert (sorted(answers), hub.violations) == ([200] * 3, [])
        answers.clear()
        run_concurrently(5, job)
        assert hub.account().most_at_once > 3
        assert 403 in answers
        assert set(list_required_waits(hub)) == {"concurrency"}


def test_too_many_requests_in_a_minute_are_rejected_and_recorded(sample: World, client: httpx.Client) -> None:
    token = AccessToken("ghp_reader", limits=TokenLimits(rest_per_minute=3, retry_after=7))
    with GitHub(sample, tokens=[token], clock=ServerClock(start=1_700_000_000)) as hub:
        answers = [rest(client, hub) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 403]
        assert answers[-1].headers["retry-after"] == "7"
        assert list_required_waits(hub) == ["per-minute"]
        hub.clock.advance(61)
        assert rest(client, hub).status_code == 200


def test_without_a_token_there_are_sixty_requests_and_no_graphql(sample: World) -> None:
    with GitHub(sample) as hub, httpx.Client() as nobody:
        assert rest(nobody, hub).headers["x-ratelimit-limit"] == "60"
        assert graphql(nobody, hub).status_code == 401
        wrong = nobody.get(f"{hub.url}/repos/ada/greet", headers={"Authorization": "Bearer ghp_wrong"})
        assert (wrong.status_code, wrong.json()["message"]) == (401, "Bad credentials")


def test_the_servers_clock_can_run_faster_than_ours() -> None:
    clock = ServerClock(start=1000, speed=600)
    began = time.monotonic()
    time.sleep(0.02)
    passed = clock.now() - 1000
    assert 12 <= passed <= 600 * (time.monotonic() - began) + 60
    clock.advance(3600)
    assert clock.now() >= 4612


def test_a_server_that_ends_frees_its_port_and_its_threads(sample: World, client: httpx.Client) -> None:
    before = threading.active_count()
    with GitHub(sample, faults=FaultPlan().add_once("slow", times=math.inf)) as hub:
        rest(client, hub)
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert threading.active_count() <= before
    with pytest.raises(httpx.ConnectError):
        httpx.get(hub.url)
