"""GitHub's limits and faults, one by one, on the emulator: the answer arrives, and no rule is violated."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.config import Settings
from core.errors import InputError, MachineError, Transient
from core.settings.group import replace_values
from core.settings.machine import HostSettings
from miner.github import pool
from miner.github.api import RATE_LIMIT_FIELDS, GitHubApi
from miner.github.responses import GitHubNotFoundError, PageTooLargeError
from tests.github import FAULTS, AccessToken, FaultPlan, GitHub, ServerClock, TokenLimits
from tests.github.faults import make_secondary_limit
from tests.github.handmade import make_sample_world

QUERY = f'query {{ repository(owner: "ada", name: "greet") {{ nameWithOwner }} {RATE_LIMIT_FIELDS} }}'
NAMED = {"repository": {"nameWithOwner": "ada/greet"}}
SMALLER = {"http-502", "http-504", "graphql-something-went-wrong", "graphql-resource-limits-exceeded", "partial"}
WAITED = {"primary", "graphql-rate-limited"}


class JumpingClock(pool.SystemClock):
    """The emulator's clock, advanced by every wait."""

    def __init__(self, clock: ServerClock) -> None:
        self.clock = clock

    def now(self) -> float:
        return self.clock.now()

    def wait(self, changed: threading.Condition, seconds: float) -> None:
        self.clock.advance(seconds)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return make_sample_world(tmp_path_factory.mktemp("world"))


@contextlib.contextmanager
def connect_api(hub: GitHub, tokens: str = "ghp_reader", **options):
    settings = Settings.model_validate({"github_api": hub.url, "github_tokens": tokens} | options)
    with (
        hub,
        GitHubApi(
            replace_values(settings, {"github_api": hub.url}).github,
            replace_values(settings, {"github_api": hub.url}).host,
            clock=JumpingClock(hub.clock),
        ) as api,
    ):
        yield api


@pytest.mark.parametrize("name", sorted(name for name, fault in FAULTS.items() if "graphql" in fault.strikes))
def test_a_query_is_answered_after_each_fault_or_needs_a_smaller_page(world, name):
    with connect_api(hub := GitHub(world, faults=FaultPlan().add_once(name, after=1))) as api:
        assert api.query_graphql(QUERY).data == NAMED
        began = hub.clock.now()
        if name in SMALLER:
            with pytest.raises(PageTooLargeError):
                api.query_graphql(QUERY)
        elif name == "expired-token":
            with pytest.raises(InputError, match=r"does not accept the token: Bad credentials"):
                api.query_graphql(QUERY)
            return
        else:
            assert api.query_graphql(QUERY).data == NAMED
        if name.startswith("secondary"):
            assert hub.clock.now() - began >= (1 if name.endswith("after") else 60)
        assert api.query_graphql(QUERY).data == NAMED
        assert hub.faults.counts == {name: 1}
        assert hub.violations == []


@pytest.mark.parametrize("name", sorted(name for name, fault in FAULTS.items() if "rest" in fault.strikes))
def test_a_repository_is_found_after_each_fault(world, name):
    with connect_api(hub := GitHub(world, faults=FaultPlan().add_once(name, after=1, kinds={"rest"}))) as api:
        known = api.fetch_repository("ada/greet")
        if name == "expired-token":
            with pytest.raises(InputError, match="does not accept"):
                api.fetch_repository("ada/greet")
            return
        assert api.fetch_repository("ada/greet") == known
        assert hub.faults.counts == {name: 1}
        assert hub.violations == []


def test_a_recurring_secondary_limit_is_waited_for_longer_each_time(world):
    with connect_api(hub := GitHub(world, faults=FaultPlan().add_once(make_secondary_limit(403), times=4))) as api:
        began = hub.clock.now()
        assert api.query_graphql(QUERY).data == NAMED
        assert hub.clock.now() - began >= 60 + 120 + 240 + 480
        assert hub.violations == []


def test_a_secondary_limit_holds_for_both_apis(world):
    with connect_api(hub := GitHub(world, faults=FaultPlan().add_once(make_secondary_limit(429, 30)))) as api:
        began = hub.clock.now()
        api.query_graphql(QUERY)
        api.fetch_repository("ada/greet")
        assert hub.clock.now() - began >= 30
        assert hub.violations == []


def test_exhausted_points_are_waited_for_and_requests_are_not(world):
    token = AccessToken("ghp_reader", limits=TokenLimits(points=3))
    with connect_api(hub := GitHub(world, tokens=[token])) as api:
        for _ in range(3):
            api.query_graphql(QUERY)
        began = hub.clock.now()
        api.fetch_repository("ada/greet")
        assert hub.clock.now() - began < 60
        api.query_graphql(QUERY)
        assert 3500 < hub.clock.now() - began < 3700
        assert hub.violations == []
        assert [line.status for line in hub.list_requests("graphql")] == [200] * 4
        assert api.summarize_usage()["waited_seconds"] > 3500


def test_a_limit_beyond_the_longest_wait_is_an_error_with_the_time(world):
    token = AccessToken("ghp_reader", limits=TokenLimits(points=1))
    with connect_api(hub := GitHub(world, tokens=[token]), github_patience=600) as api:
        api.query_graphql(QUERY)
        with pytest.raises(Transient, match=r"allow the next request at \d\d:\d\d:\d\d UTC") as caught:
            api.query_graphql(QUERY)
        assert "--github-patience" in caught.value.advice
        assert len(hub.list_requests("graphql")) == 1


def test_an_exhausted_token_leaves_the_work_to_the_other(world):
    spent, fresh = (
        AccessToken("ghp_spent_token1", limits=TokenLimits(points=2)),
        AccessToken("ghp_fresh_token2", limits=TokenLimits(points=9)),
    )
    with connect_api(hub := GitHub(world, tokens=[spent, fresh]), "ghp_spent_token1,ghp_fresh_token2") as api:
        began = hub.clock.now()
        for _ in range(10):
            api.query_graphql(QUERY)
        assert hub.clock.now() - began < 60
        used = {line["token"]: line["points"] for line in api.summarize_usage()["tokens"]}
        assert used["token 2 of 2 (...ken2)"] > used["token 1 of 2 (...ken1)"] > 0
        assert {line.status for line in hub.list_requests("graphql")} == {200}
        assert hub.violations == []


def test_a_token_that_expires_during_a_run_is_reported_and_the_other_is_used(world, caplog):
    clock = ServerClock()
    first = AccessToken("ghp_first_token1", expires_at=clock.now() + 100)
    with connect_api(
        hub := GitHub(world, tokens=[first, "ghp_other_token2"], clock=clock), "ghp_first_token1,ghp_other_token2"
    ) as api:
        api.query_graphql(QUERY)
        clock.advance(200)
        for _ in range(4):
            assert api.query_graphql(QUERY).data == NAMED
        assert [line.status for line in hub.list_requests("graphql")].count(401) == 1
        (message,) = [record.getMessage() for record in caplog.records if "does not accept" in record.getMessage()]
        assert message == "GitHub does not accept token 1 of 2 (...ken1): Bad credentials; continuing with the others"
        assert "ghp_first" not in caplog.text


def test_when_no_token_is_accepted_each_is_named_by_its_position(world):
    with connect_api(GitHub(world), "ghp_wrong_token1,ghp_wrong_token2") as api:
        with pytest.raises(InputError) as caught:
            api.query_graphql(QUERY)
        assert "token 1 of 2 (...ken1): Bad credentials; token 2 of 2 (...ken2): Bad" in str(caught.value)
        assert "GITHUB_TOKEN" in caught.value.advice


def test_threads_stay_below_the_concurrency_and_share_one_wait(world):
    token = AccessToken("ghp_reader", limits=TokenLimits(points=30, concurrent=3))
    hub = GitHub(world, tokens=[token], latency=0.01)
    with connect_api(hub, github_concurrency=3) as api, ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda _: api.query_graphql(QUERY).data, range(48)))
        assert answers == [NAMED] * 48
        assert hub.account().most_at_once <= 3
        assert hub.violations == []


def test_threads_under_one_secondary_limit_are_one_violation(world):
    hub = GitHub(world, faults=FaultPlan().add_once(make_secondary_limit(403), times=3), latency=0.05)
    with connect_api(hub, github_concurrency=3) as api, ThreadPoolExecutor(3) as threads:
        began = hub.clock.now()
        assert list(threads.map(lambda _: api.query_graphql(QUERY).data, range(6))) == [NAMED] * 6
        assert 60 <= hub.clock.now() - began < 60 + 120 + 240
        assert hub.violations == []


def test_every_fault_at_once_breaks_no_rule(world):
    names = tuple(set(FAULTS) - SMALLER - {"expired-token", "cut-pack"})
    hub = GitHub(world, faults=FaultPlan.from_seed(5, rate=0.6, names=names))
    with connect_api(hub) as api:
        for number in range(40):
            query = QUERY.replace("query {", f"query Q{number} {{")
            assert api.query_graphql(query).data == NAMED
        assert len(hub.faults.counts) > 8
        assert hub.violations == []


# ------------------------------------------------------------------------------------------- what GitHub has


def test_a_renamed_repository_is_found_under_both_names_with_its_query_kept(tmp_path):
    world = make_sample_world(tmp_path)
    with connect_api(hub := GitHub(world)) as api:
        before = api.fetch_repository("ada/greet")
        world.rename("ada/greet", "ada/hello")
        after = api.fetch_repository("ada/greet")
        assert (after.full_name, after.node_id) == ("ada/hello", before.node_id)
        closed = api.get_rest("/repos/ada/greet/pulls?state=closed&per_page=3").data
        assert len(closed) == 3
        assert all(pull["state"] == "closed" for pull in closed)
        assert hub.violations == []


def test_an_unchanged_repository_costs_nothing(world):
    with connect_api(hub := GitHub(world)) as api:
        known = api.fetch_repository("ada/greet")
        used = hub.account().used["core"]
        assert api.fetch_repository("ada/greet", known) is known
        assert hub.account().used["core"] == used
        assert api.summarize_usage()["tokens"][0]["unchanged"] == 1
        assert api.get_rest("/repos/ada/greet", known.etag).status == 304


def test_what_does_not_exist_is_not_found_in_both_apis(world):
    with connect_api(hub := GitHub(world)) as api:
        with pytest.raises(GitHubNotFoundError, match="ada/nothing: there is none"):
            api.fetch_repository("ada/nothing")
        with pytest.raises(GitHubNotFoundError, match="Could not resolve to a Repository"):
            api.query_graphql(QUERY.replace("greet", "nothing"))
        assert hub.violations == []


def test_of_two_objects_the_missing_one_is_listed_and_the_other_returned(world):
    parts = (
        f'{letter}: repository(owner: "ada", name: "{name}") {{ id }}' for letter, name in (("a", "no"), ("b", "greet"))
    )
    query = f"{{ {' '.join(parts)} {RATE_LIMIT_FIELDS} }}"
    with connect_api(GitHub(world)) as api:
        answer = api.query_graphql(query)
        assert answer.data["a"] is None
        assert answer.data["b"]["id"]
        (missing,) = answer.missing
        assert (missing.path, missing.type) == (("a",), "NOT_FOUND")


def test_an_invalid_query_is_reported_with_githubs_message(world):
    with connect_api(GitHub(world)) as api, pytest.raises(InputError, match=r"does not understand .*nonsense"):
        api.query_graphql(QUERY.replace("nameWithOwner", "nonsense"))


def test_an_enterprise_server_has_its_own_addresses(world):
    with GitHub(world) as hub:
        settings = Settings.model_validate({"github_api": hub.enterprise_url, "github_tokens": "ghp_reader"})
        with GitHubApi(settings.github, settings.host) as api:
            assert api.query_graphql(QUERY).data == NAMED
            assert api.fetch_repository("ada/greet").full_name == "ada/greet"
        assert hub.violations == []


def test_without_a_token_a_repository_is_shown_and_nothing_is_mined(world):
    with GitHub(world) as hub, GitHubApi(Settings(github_api=hub.url).github, HostSettings()) as api:
        assert api.fetch_repository("ada/greet").default_branch == "main"
        with pytest.raises(MachineError, match=r"rejects GraphQL and allows 60 requests an hour") as caught:
            api.query_graphql(QUERY, what="ada/greet")
        assert "GITHUB_TOKEN" in caught.value.advice
        assert hub.list_requests("graphql") == []
