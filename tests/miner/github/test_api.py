"""A question to GitHub, and its answer or one of few errors: answers too odd for the emulator."""

from __future__ import annotations

import socket
import threading

import pytest

from mergemill.errors import InputError, Stopped, Transient
from miner.github.api import ATTEMPTS, RATE
from miner.github.auth import Credential
from miner.github.budget import Resource, Seat
from miner.github.pool import Clock
from miner.github.replies import Gone, Missing, TooMuch
from tests.miner.github.server import START, Said, data, errors, left

QUERY = f'query($n: Int!) {{ repository(owner: "o", name: "n") {{ name }} {RATE} }}'
SECONDARY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}


def test_a_query_goes_to_graphql_with_its_variables_and_the_token(connect, server):
    server.says(data())
    answer = connect().graphql(QUERY, {"n": 3})
    assert (answer.data, answer.missing) == ({"repository": {"name": "n"}}, ())
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.token) == ("POST", "/graphql", "ghp_firsttoken1111")
    assert asked.body == {"query": QUERY, "variables": {"n": 3}}


def test_points_and_requests_are_counted_for_each_token(connect, server):
    server.says(data(cost=3), data(cost=1), Said(200, {"x": 1}, left(10)))
    api = connect()
    api.graphql(QUERY)
    api.graphql(QUERY)
    api.rest("/x")
    usage = api.usage()
    assert (usage["requests"], usage["points"], usage["waited_seconds"]) == (3, 4, 0)
    assert usage["tokens"][0] == {
        "token": "the token (...1111)", "requests": 3, "graphql": 2, "points": 4, "unchanged": 0, "limits": 0,
        "retired": "",
    }  # fmt: skip


def test_a_query_that_does_not_ask_for_its_cost_is_a_bug(connect):
    with pytest.raises(ValueError, match="RATE"):
        connect().graphql("{ viewer { login } }")


# ------------------------------------------------------------------------------------------------- waiting


@pytest.mark.parametrize(
    ("limited", "seconds"),
    [
        (Said(403, SECONDARY, {"Retry-After": "17"}), 17),
        (Said(429, {"message": "Too many"}, {"Retry-After": "17"}), 17),
        (Said(429, b"<html>too many</html>"), 60),
        (Said(403, SECONDARY), 60),
        (Said(403, SECONDARY, left(0, START + 500)), 501),
        (Said(403, {"message": "API rate limit exceeded for user ID 1."}, left(0, START + 900)), 901),
        (Said(403, {"message": "API rate limit exceeded for user ID 1."}, left(0, START - 900)), 60),
        (errors({"type": "RATE_LIMITED", "message": "API rate limit exceeded"}, **left(0, START + 900)), 901),
        (errors({"type": "RATE_LIMIT", "message": "API rate limit already exceeded"}, **left(0, START + 9)), 10),
        (errors(SECONDARY), 60),
        (Said(403, SECONDARY, {"Retry-After": "soon"}), 60),
        (Said(403, SECONDARY, {"Retry-After": "0"}), 1),
    ],
)
def test_a_limit_is_waited_for_as_it_asks(connect, server, clock, limited, seconds):
    server.says(limited, data())
    assert connect().graphql(QUERY).data == {"repository": {"name": "n"}}
    assert [round(asked.at - START) for asked in server.asked] == [0, seconds]


def test_the_last_point_is_not_asked_for_twice(connect, server, clock):
    server.says(data(remaining=0), data())
    api = connect()
    api.graphql(QUERY)
    api.graphql(QUERY)
    assert [asked.at - START for asked in server.asked] == [0, 1801]


def test_a_dear_query_waits_when_too_little_is_left_for_it(connect, server):
    server.says(data(cost=40, remaining=39), data(cost=40))
    api = connect()
    api.graphql(QUERY)
    api.graphql(QUERY)
    assert server.asked[1].at == START + 1801


def test_a_clock_that_differs_from_githubs_does_not_ask_too_early(connect, server, clock):
    ahead = 300  # our clock: at START + 1800 it is 1500 there
    date = "Fri, 15 Jan 2027 07:55:00 GMT"
    assert START - ahead == 1_799_999_700
    spent = data(remaining=0)
    spent.headers = {**spent.headers, "Date": date}
    server.says(spent, data())
    api = connect()
    api.graphql(QUERY)
    api.graphql(QUERY)
    assert server.asked[1].at - START >= 1800 + ahead


def test_a_long_wait_is_told_once_and_a_short_one_not(connect, server, caplog):
    server.says(Said(429, SECONDARY, {"Retry-After": "3"}), Said(429, SECONDARY, {"Retry-After": "90"}), data())
    connect().graphql(QUERY)
    (told,) = [record.getMessage() for record in caplog.records]
    assert told == "GitHub's limit is reached: going on at 08:01:33 UTC, in 90 s"


def test_limits_without_end_end_with_the_patience(connect, server, clock):
    server.says(Said(429, SECONDARY, {"Retry-After": "0"}))
    with pytest.raises(Transient, match="too long to wait"):
        connect(github_patience=20).graphql(QUERY)
    assert len(server.asked) <= 21


def test_more_than_a_minute_of_answers_in_a_minute_waits(connect, server, clock):
    def slow(asked):
        clock.time += 9
        return data()

    server.says(slow)
    api = connect()
    for _ in range(12):
        api.graphql(QUERY)
    starts = [asked.at for asked in server.asked]
    assert all(sum(9 for other in starts if begin - 60 < other + 9 <= begin) <= 60 + 9 for begin in starts)


@pytest.mark.parametrize(("resource", "allowed"), [(Resource.REST, 900), (Resource.GRAPHQL, 2000)])
def test_so_many_requests_go_in_a_minute_and_no_more(resource, allowed):
    seat = Seat(Credential("nobody"), concurrency=100)
    for number in range(allowed):
        now = START + number * 0.01
        assert seat.ready_at(resource, now) == (now, "")
        seat.end(resource, seat.take(resource, now), now, now, cost=1, told=None)
    assert seat.ready_at(resource, START + 40) == (START + 60, "pace")
    assert seat.ready_at(resource, START + 60) == (START + 60, "")


def test_who_waits_is_sent_away_when_the_api_is_left(connect, server):
    """With a real clock."""
    server.says(Said(429, SECONDARY, {"Retry-After": "900"}))
    api = connect()
    api.pool.clock = Clock()
    raised = []

    def ask():
        try:
            api.graphql(QUERY)
        except Stopped as error:
            raised.append(error)

    waiting = threading.Thread(target=ask)
    waiting.start()
    while not api.usage()["tokens"][0]["limits"]:
        pass
    api.__exit__(None, None, None)
    waiting.join(timeout=5)
    assert len(raised) == 1


# -------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    "fault",
    [
        Said(500, {"message": "oops"}),
        Said(503, b"<html>Unicorn</html>"),
        Said(200, b"<html>Unicorn</html>"),
        Said(200, b'{"data": {"repository": {"na'),
        Said(200, b""),
        Said(200, [1, 2]),
        Said(200, {"data": {"repository": {"name": "n"}}}, cut=10),
        Said(200, {"data": {"repository": {"name": "n"}}}, cut=0),
        errors({"type": "INTERNAL", "message": "x", "path": ["repository"]}, data={"repository": None}),
        errors({"type": "SERVICE_UNAVAILABLE", "message": "x"}),
    ],
)
def test_a_fault_is_tried_again_later_and_later_and_then_told_as_passing(connect, server, clock, fault):
    server.says(fault, fault, data())
    assert connect().graphql(QUERY).data == {"repository": {"name": "n"}}
    server.asked.clear()
    server.says(fault)
    with pytest.raises(Transient) as caught:
        connect().graphql(QUERY, what="o/n")
    assert type(caught.value) is not TooMuch
    assert "o/n" in str(caught.value)
    assert len(server.asked) == ATTEMPTS


@pytest.mark.parametrize(
    "said",
    [
        Said(502, b"<html>"),
        Said(504, {"message": "We couldn't respond to your request in time."}),
        errors({"type": "RESOURCE_LIMITS_EXCEEDED", "message": "x"}, data={"repository": {"name": "n"}}),
        errors({"type": "MAX_NODE_LIMIT_EXCEEDED", "message": "x"}),
        errors({"message": "Something went wrong while executing your query. This may be the result of a timeout"}),
        Said(200, {}, slow=1.5),
    ],
)
def test_what_github_cannot_do_in_its_time_is_told_at_once(connect, server, said):
    server.says(said)
    with pytest.raises(TooMuch):
        connect(timeout=1).graphql(QUERY)
    assert len(server.asked) == 1


def test_a_get_that_lasts_too_long_is_tried_again(connect, server):
    server.says(Said(502, b""), Said(200, {}, slow=1.5), Said(200, {"x": 1}, left(9)))
    assert connect(timeout=1).rest("/x").data == {"x": 1}


def test_a_server_that_is_not_there_is_passing(connect):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        api = connect(github_api=f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(Transient, match=r"o/n: the connection to http://127.*failed: ConnectionError"):
            api.repository("o/n")


def test_parts_that_are_missing_are_told_beside_the_rest(connect, server):
    found = {"repository": {"name": "n", "pull": None}}
    lacking = {"type": "FORBIDDEN", "message": "no", "path": ["repository", "pull"], "locations": []}
    server.says(errors(lacking, data=found))
    answer = connect().graphql(QUERY)
    assert answer.data == found
    assert answer.missing == (Missing(("repository", "pull"), "FORBIDDEN", "no"),)


@pytest.mark.parametrize(
    "said",
    [
        errors({"type": "NOT_FOUND", "message": "no o/n", "path": ["repository"]}, data={"repository": None}),
        errors({"type": "FORBIDDEN", "message": "no o/n: SAML", "path": ["repository"]}, data={"repository": None}),
        Said(200, {"data": {"repository": None}}),
    ],
)
def test_a_repository_that_is_not_shown_is_gone(connect, server, said):
    server.says(said)
    with pytest.raises(Gone, match="o/n"):
        connect().graphql(QUERY, what="o/n")
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [403, 404, 410, 451])
def test_a_repository_that_is_blocked_or_away_is_gone(connect, server, status):
    server.says(Said(status, {"message": "Repository access blocked"}, left(100)))
    with pytest.raises(Gone, match="o/n"):
        connect().repository("o/n")


def test_an_address_that_is_not_githubs_is_told(connect, server):
    server.says(Said(404, b"<html>Welcome to nginx</html>"))
    for ask in (lambda api: api.graphql(QUERY), lambda api: api.repository("o/n")):
        with pytest.raises(InputError, match=f"{server.url} does not answer as GitHub's API does") as caught:
            ask(connect())
        assert not isinstance(caught.value, Gone)
        assert "--github-api" in caught.value.advice


def test_a_token_without_the_scope_is_told(connect, server):
    server.says(errors({"type": "INSUFFICIENT_SCOPES", "message": "needs read:org"}))
    with pytest.raises(InputError, match="read:org"):
        connect().graphql(QUERY)


def test_a_suspended_account_is_a_bad_token(connect, server):
    server.says(Said(403, {"message": "Sorry. Your account was suspended."}))
    with pytest.raises(InputError, match="does not accept the token"):
        connect().rest("/x")


# -------------------------------------------------------------------------------------------- redirections


def test_a_redirection_keeps_the_query_and_the_token_and_the_etag(connect, server):
    server.says(Said(301, {}, {"Location": f"{server.url}/repositories/7/pulls"}), Said(200, [1], {"ETag": 'W/"b"'}))
    answer = connect().rest("/repos/o/n/pulls?page=2&state=all", 'W/"a"')
    assert (answer.data, answer.etag) == ([1], 'W/"b"')
    assert server.asked[1].path == "/repositories/7/pulls?page=2&state=all"
    assert server.asked[1].token == server.asked[0].token
    assert server.asked[1].headers["If-None-Match"] == 'W/"a"'


def test_a_redirection_to_another_server_is_not_followed(connect, server):
    server.says(Said(301, {}, {"Location": "https://elsewhere.example/repositories/7"}))
    with pytest.raises(InputError, match=r"sends us to https://elsewhere\.example"):
        connect().rest("/repos/o/n")
    assert len(server.asked) == 1


def test_redirections_in_a_circle_end(connect, server):
    server.says(Said(302, {}, {"Location": "/repos/o/n"}))
    with pytest.raises(InputError, match="circle"):
        connect().rest("/repos/o/n")


def test_two_threads_never_share_a_connection(connect, server):
    """PyGithub's connection keeps the request in itself: a second one before the answer would replace the first."""
    server.says(lambda asked: Said(200, {"path": asked.path}, left(4000), slow=0.005))
    api, found, lent, twice = connect(github_concurrency=8), {}, set(), []
    use = api._lines.use

    def noted(credential, ask, what, *, graphql):
        def asking(line):
            twice.append(line) if line in lent else lent.add(line)
            try:
                return ask(line)
            finally:
                lent.discard(line)

        return use(credential, asking, what, graphql=graphql)

    api._lines.use = noted

    def ask(number):
        for _ in range(5):
            found.setdefault(number, set()).add(api.rest(f"/x/{number}").data["path"])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: {f"/x/{number}"} for number in range(8)}
    assert twice == []
