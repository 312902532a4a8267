"""GitHub's limits and faults, one by one, on the emulator: the answer comes in the end, and no rule is broken."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mergemill.config import Settings
from mergemill.errors import InputError, MachineError, Transient
from miner.github import pool
from miner.github.api import RATE, Api
from miner.github.replies import Gone, TooMuch
from tests.github import FAULTS, Clock, Faults, GitHub, Limits, Token
from tests.github.faults import secondary
from tests.github.handmade import sample_world

QUERY = f'query {{ repository(owner: "ada", name: "greet") {{ nameWithOwner }} {RATE} }}'
NAMED = {"repository": {"nameWithOwner": "ada/greet"}}
SMALLER = {"http-502", "http-504", "graphql-something-went-wrong", "graphql-resource-limits-exceeded", "partial"}
WAITED = {"primary", "graphql-rate-limited"}


class Jumping(pool.Clock):
    """The emulator's clock, moved on by every wait."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def now(self) -> float:
        return self.clock.now()

    def wait(self, changed: threading.Condition, seconds: float) -> None:
        self.clock.advance(seconds)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return sample_world(tmp_path_factory.mktemp("world"))


@contextlib.contextmanager
def asking(hub: GitHub, tokens: str = "ghp_reader", **options):
    settings = Settings.model_validate({"github_api": hub.url, "github_tokens": tokens} | options)
    with hub, Api(Settings(**dict(settings) | {"github_api": hub.url}), clock=Jumping(hub.clock)) as api:
        yield api


@pytest.mark.parametrize("name", sorted(name for name, fault in FAULTS.items() if "graphql" in fault.strikes))
def test_a_query_is_answered_after_each_fault_or_a_smaller_one_is_asked_for(world, name):
    with asking(hub := GitHub(world, faults=Faults().once(name, after=1))) as api:
        assert api.graphql(QUERY).data == NAMED
        began = hub.clock.now()
        if name in SMALLER:
            with pytest.raises(TooMuch):
                api.graphql(QUERY)
        elif name == "expired-token":
            with pytest.raises(InputError, match=r"does not accept the token: Bad credentials"):
                api.graphql(QUERY)
            return
        else:
            assert api.graphql(QUERY).data == NAMED
        if name.startswith("secondary"):
            assert hub.clock.now() - began >= (1 if name.endswith("after") else 60)
        assert api.graphql(QUERY).data == NAMED
        assert hub.faults.struck == {name: 1}
        assert hub.violations == []


@pytest.mark.parametrize("name", sorted(name for name, fault in FAULTS.items() if "rest" in fault.strikes))
def test_a_repository_is_found_after_each_fault(world, name):
    with asking(hub := GitHub(world, faults=Faults().once(name, after=1, kinds={"rest"}))) as api:
        known = api.repository("ada/greet")
        if name == "expired-token":
            with pytest.raises(InputError, match="does not accept"):
                api.repository("ada/greet")
            return
        assert api.repository("ada/greet") == known
        assert hub.faults.struck == {name: 1}
        assert hub.violations == []


def test_a_secondary_limit_that_goes_on_is_waited_for_longer_each_time(world):
    with asking(hub := GitHub(world, faults=Faults().once(secondary(403), times=4))) as api:
        began = hub.clock.now()
        assert api.graphql(QUERY).data == NAMED
        assert hub.clock.now() - began >= 60 + 120 + 240 + 480
        assert hub.violations == []


def test_a_secondary_limit_holds_for_both_apis(world):
    with asking(hub := GitHub(world, faults=Faults().once(secondary(429, 30)))) as api:
        began = hub.clock.now()
        api.graphql(QUERY)
        api.repository("ada/greet")
        assert hub.clock.now() - began >= 30
        assert hub.violations == []


def test_spent_points_are_waited_for_and_requests_are_not(world):
    token = Token("ghp_reader", limits=Limits(points=3))
    with asking(hub := GitHub(world, tokens=[token])) as api:
        for _ in range(3):
            api.graphql(QUERY)
        began = hub.clock.now()
        api.repository("ada/greet")
        assert hub.clock.now() - began < 60
        api.graphql(QUERY)
        assert 3500 < hub.clock.now() - began < 3700
        assert hub.violations == []
        assert [line.status for line in hub.asked("graphql")] == [200] * 4
        assert api.usage()["waited_seconds"] > 3500


def test_who_is_less_patient_than_the_limit_is_told_when_to_come_again(world):
    token = Token("ghp_reader", limits=Limits(points=1))
    with asking(hub := GitHub(world, tokens=[token]), github_patience=600) as api:
        api.graphql(QUERY)
        with pytest.raises(Transient, match=r"allow the next request at \d\d:\d\d:\d\d UTC") as caught:
            api.graphql(QUERY)
        assert "--github-patience" in caught.value.advice
        assert len(hub.asked("graphql")) == 1


def test_a_spent_token_leaves_the_work_to_the_other(world):
    spent, fresh = (
        Token("ghp_spent_token1", limits=Limits(points=2)),
        Token("ghp_fresh_token2", limits=Limits(points=9)),
    )
    with asking(hub := GitHub(world, tokens=[spent, fresh]), "ghp_spent_token1,ghp_fresh_token2") as api:
        began = hub.clock.now()
        for _ in range(10):
            api.graphql(QUERY)
        assert hub.clock.now() - began < 60
        used = {line["token"]: line["points"] for line in api.usage()["tokens"]}
        assert used["token 2 of 2 (...ken2)"] > used["token 1 of 2 (...ken1)"] > 0
        assert {line.status for line in hub.asked("graphql")} == {200}
        assert hub.violations == []


def test_a_token_that_expires_in_mid_run_is_retired_with_a_line_and_the_other_goes_on(world, caplog):
    clock = Clock()
    first = Token("ghp_first_token1", expires_at=clock.now() + 100)
    with asking(
        hub := GitHub(world, tokens=[first, "ghp_other_token2"], clock=clock), "ghp_first_token1,ghp_other_token2"
    ) as api:
        api.graphql(QUERY)
        clock.advance(200)
        for _ in range(4):
            assert api.graphql(QUERY).data == NAMED
        assert [line.status for line in hub.asked("graphql")].count(401) == 1
        (told,) = [record.getMessage() for record in caplog.records if "does not accept" in record.getMessage()]
        assert told == "GitHub does not accept token 1 of 2 (...ken1): Bad credentials; going on with the others"
        assert "ghp_first" not in caplog.text


def test_when_no_token_is_accepted_each_is_named_by_its_place(world):
    with asking(GitHub(world), "ghp_wrong_token1,ghp_wrong_token2") as api:
        with pytest.raises(InputError) as caught:
            api.graphql(QUERY)
        assert "token 1 of 2 (...ken1): Bad credentials; token 2 of 2 (...ken2): Bad" in str(caught.value)
        assert "GITHUB_TOKEN" in caught.value.advice


def test_threads_stay_below_the_concurrency_and_share_one_wait(world):
    token = Token("ghp_reader", limits=Limits(points=30, concurrent=3))
    hub = GitHub(world, tokens=[token], latency=0.01)
    with asking(hub, github_concurrency=3) as api, ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda _: api.graphql(QUERY).data, range(48)))
        assert answers == [NAMED] * 48
        assert hub.account().most_at_once <= 3
        assert hub.violations == []


def test_threads_under_one_secondary_limit_are_one_offence(world):
    hub = GitHub(world, faults=Faults().once(secondary(403), times=3), latency=0.05)
    with asking(hub, github_concurrency=3) as api, ThreadPoolExecutor(3) as threads:
        began = hub.clock.now()
        assert list(threads.map(lambda _: api.graphql(QUERY).data, range(6))) == [NAMED] * 6
        assert 60 <= hub.clock.now() - began < 60 + 120 + 240
        assert hub.violations == []


def test_every_fault_at_once_breaks_no_rule(world):
    names = tuple(set(FAULTS) - SMALLER - {"expired-token", "cut-pack"})
    hub = GitHub(world, faults=Faults.seeded(5, rate=0.6, names=names))
    with asking(hub) as api:
        for number in range(40):
            query = QUERY.replace("query {", f"query Q{number} {{")
            assert api.graphql(query).data == NAMED
        assert len(hub.faults.struck) > 8
        assert hub.violations == []


# ------------------------------------------------------------------------------------------- what GitHub has


def test_a_renamed_repository_is_found_under_both_names_with_its_query_kept(tmp_path):
    world = sample_world(tmp_path)
    with asking(hub := GitHub(world)) as api:
        before = api.repository("ada/greet")
        world.rename("ada/greet", "ada/hello")
        after = api.repository("ada/greet")
        assert (after.name, after.node_id) == ("ada/hello", before.node_id)
        closed = api.rest("/repos/ada/greet/pulls?state=closed&per_page=3").data
        assert len(closed) == 3
        assert all(pull["state"] == "closed" for pull in closed)
        assert hub.violations == []


def test_what_has_not_changed_costs_nothing(world):
    with asking(hub := GitHub(world)) as api:
        known = api.repository("ada/greet")
        used = hub.account().used["core"]
        assert api.repository("ada/greet", known) is known
        assert hub.account().used["core"] == used
        assert api.usage()["tokens"][0]["unchanged"] == 1
        assert api.rest("/repos/ada/greet", known.etag).status == 304


def test_what_does_not_exist_is_gone_in_both_apis(world):
    with asking(hub := GitHub(world)) as api:
        with pytest.raises(Gone, match="ada/nothing: there is none"):
            api.repository("ada/nothing")
        with pytest.raises(Gone, match="Could not resolve to a Repository"):
            api.graphql(QUERY.replace("greet", "nothing"))
        assert hub.violations == []


def test_one_of_two_that_does_not_exist_is_missing_and_the_other_is_told(world):
    parts = (
        f'{letter}: repository(owner: "ada", name: "{name}") {{ id }}' for letter, name in (("a", "no"), ("b", "greet"))
    )
    query = f"{{ {' '.join(parts)} {RATE} }}"
    with asking(GitHub(world)) as api:
        answer = api.graphql(query)
        assert answer.data["a"] is None
        assert answer.data["b"]["id"]
        (missing,) = answer.missing
        assert (missing.path, missing.type) == (("a",), "NOT_FOUND")


def test_a_query_that_github_does_not_understand_is_told_in_its_words(world):
    with asking(GitHub(world)) as api, pytest.raises(InputError, match=r"does not understand .*nonsense"):
        api.graphql(QUERY.replace("nameWithOwner", "nonsense"))


def test_an_enterprise_server_has_its_own_addresses(world):
    with GitHub(world) as hub:
        settings = Settings.model_validate({"github_api": hub.enterprise_url, "github_tokens": "ghp_reader"})
        with Api(settings) as api:
            assert api.graphql(QUERY).data == NAMED
            assert api.repository("ada/greet").name == "ada/greet"
        assert hub.violations == []


def test_without_a_token_a_repository_is_shown_and_nothing_is_mined(world):
    with GitHub(world) as hub, Api(Settings(github_api=hub.url)) as api:
        assert api.repository("ada/greet").default_branch == "main"
        with pytest.raises(MachineError, match=r"no GraphQL and 60 requests an hour") as caught:
            api.graphql(QUERY, what="ada/greet")
        assert "GITHUB_TOKEN" in caught.value.advice
        assert hub.asked("graphql") == []
