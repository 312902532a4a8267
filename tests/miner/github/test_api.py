"""One request to GitHub, and its answer or error: responses too unusual for the emulator."""

from __future__ import annotations

import socket
import threading

import pytest

from core.errors import CancelledRunError, InputError, Transient
from miner.github.api import ATTEMPTS, RATE_LIMIT_FIELDS
from miner.github.auth import Credential
from miner.github.budget import Resource, TokenSlot
from miner.github.pool import SystemClock
from miner.github.responses import GitHubNotFoundError, MissingField, PageTooLargeError
from tests.miner.github.scripted_server import (
    START,
    ScriptedAnswer,
    build_data_answer,
    build_error_answer,
    build_rate_headers,
)

QUERY = f'query($n: Int!) {{ repository(owner: "o", name: "n") {{ name }} {RATE_LIMIT_FIELDS} }}'
SECONDARY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}


def test_a_query_goes_to_graphql_with_its_variables_and_the_token(connect, server):
    server.script_answers(build_data_answer())
    answer = connect().query_graphql(QUERY, {"n": 3})
    assert (answer.data, answer.missing) == ({"repository": {"name": "n"}}, ())
    (request,) = server.requests
    assert (request.method, request.path, request.token) == ("POST", "/graphql", "ghp_firsttoken1111")
    assert request.body == {"query": QUERY, "variables": {"n": 3}}


def test_points_and_requests_are_counted_for_each_token(connect, server):
    server.script_answers(
        build_data_answer(cost=3), build_data_answer(cost=1), ScriptedAnswer(200, {"x": 1}, build_rate_headers(10))
    )
    api = connect()
    api.query_graphql(QUERY)
    api.query_graphql(QUERY)
    api.get_rest("/x")
    usage = api.summarize_usage()
    assert (usage["requests"], usage["points"], usage["waited_seconds"]) == (3, 4, 0)
    assert usage["tokens"][0] == {
        "token": "the token (...1111)",
        "requests": 3,
        "graphql": 2,
        "points": 4,
        "unchanged": 0,
        "limits": 0,
        "retired": "",
    }


def test_a_query_without_its_cost_is_a_bug(connect):
    with pytest.raises(ValueError, match="RATE"):
        connect().query_graphql("{ viewer { login } }")


# ------------------------------------------------------------------------------------------------- waiting


@pytest.mark.parametrize(
    ("limited", "seconds"),
    [
        (ScriptedAnswer(403, SECONDARY, {"Retry-After": "17"}), 17),
        (ScriptedAnswer(429, {"message": "Too many"}, {"Retry-After": "17"}), 17),
        (ScriptedAnswer(429, b"<html>too many</html>"), 60),
        (ScriptedAnswer(403, SECONDARY), 60),
        (ScriptedAnswer(403, SECONDARY, build_rate_headers(0, START + 500)), 501),
        (
            ScriptedAnswer(
                403, {"message": "API rate limit exceeded for user ID 1."}, build_rate_headers(0, START + 900)
            ),
            901,
        ),
        (
            ScriptedAnswer(
                403, {"message": "API rate limit exceeded for user ID 1."}, build_rate_headers(0, START - 900)
            ),
            60,
        ),
        (
            build_error_answer(
                {"type": "RATE_LIMITED", "message": "API rate limit exceeded"}, **build_rate_headers(0, START + 900)
            ),
            901,
        ),
        (
            build_error_answer(
                {"type": "RATE_LIMIT", "message": "API rate limit already exceeded"}, **build_rate_headers(0, START + 9)
            ),
            10,
        ),
        (build_error_answer(SECONDARY), 60),
        (ScriptedAnswer(403, SECONDARY, {"Retry-After": "soon"}), 60),
        (ScriptedAnswer(403, SECONDARY, {"Retry-After": "0"}), 1),
    ],
)
def test_a_limit_is_waited_for_as_it_demands(connect, server, clock, limited, seconds):
    server.script_answers(limited, build_data_answer())
    assert connect().query_graphql(QUERY).data == {"repository": {"name": "n"}}
    assert [round(request.at - START) for request in server.requests] == [0, seconds]


def test_an_exhausted_budget_is_not_requested_again(connect, server, clock):
    server.script_answers(build_data_answer(remaining=0), build_data_answer())
    api = connect()
    api.query_graphql(QUERY)
    api.query_graphql(QUERY)
    assert [request.at - START for request in server.requests] == [0, 1801]


def test_an_expensive_query_waits_when_too_little_is_left_for_it(connect, server):
    server.script_answers(build_data_answer(cost=40, remaining=39), build_data_answer(cost=40))
    api = connect()
    api.query_graphql(QUERY)
    api.query_graphql(QUERY)
    assert server.requests[1].at == START + 1801


def test_a_clock_that_differs_from_githubs_does_not_retry_too_early(connect, server, clock):
    ahead = 300  # our clock: at START + 1800 it is 1500 there
    date = "Fri, 15 Jan 2027 07:55:00 GMT"
    assert START - ahead == 1_799_999_700
    spent = build_data_answer(remaining=0)
    spent.headers = {**spent.headers, "Date": date}
    server.script_answers(spent, build_data_answer())
    api = connect()
    api.query_graphql(QUERY)
    api.query_graphql(QUERY)
    assert server.requests[1].at - START >= 1800 + ahead


def test_a_long_wait_is_reported_once_and_a_short_one_is_not(connect, server, caplog):
    server.script_answers(
        ScriptedAnswer(429, SECONDARY, {"Retry-After": "3"}),
        ScriptedAnswer(429, SECONDARY, {"Retry-After": "90"}),
        build_data_answer(),
    )
    connect().query_graphql(QUERY)
    (message,) = [record.getMessage() for record in caplog.records]
    assert message == "GitHub's limit is reached: continuing at 08:01:33 UTC, in 90 s"


def test_endless_limits_end_with_the_longest_wait(connect, server, clock):
    server.script_answers(ScriptedAnswer(429, SECONDARY, {"Retry-After": "0"}))
    with pytest.raises(Transient, match="after the longest allowed wait"):
        connect(github_patience=20).query_graphql(QUERY)
    assert len(server.requests) <= 21


def test_more_than_a_minute_of_answer_time_in_a_minute_waits(connect, server, clock):
    def slow(request):
        clock.time += 9
        return build_data_answer()

    server.script_answers(slow)
    api = connect()
    for _ in range(12):
        api.query_graphql(QUERY)
    starts = [request.at for request in server.requests]
    assert all(sum(9 for other in starts if begin - 60 < other + 9 <= begin) <= 60 + 9 for begin in starts)


@pytest.mark.parametrize(("resource", "allowed"), [(Resource.REST, 900), (Resource.GRAPHQL, 2000)])
def test_requests_per_minute_are_limited(resource, allowed):
    slot = TokenSlot(Credential("nobody"), concurrency=100)
    for number in range(allowed):
        now = START + number * 0.01
        assert slot.ready_at(resource, now) == (now, "")
        slot.finish_request(resource, slot.begin_request(resource, now), now, now, cost=1, state=None)
    assert slot.ready_at(resource, START + 40) == (START + 60, "pace")
    assert slot.ready_at(resource, START + 60) == (START + 60, "")


def test_waiting_threads_are_cancelled_when_the_api_is_closed(connect, server):
    """Uses a real clock."""
    server.script_answers(ScriptedAnswer(429, SECONDARY, {"Retry-After": "900"}))
    api = connect()
    api.pool.clock = SystemClock()
    raised = []

    def ask():
        try:
            api.query_graphql(QUERY)
        except CancelledRunError as error:
            raised.append(error)

    waiting = threading.Thread(target=ask)
    waiting.start()
    while not api.summarize_usage()["tokens"][0]["limits"]:
        pass
    api.__exit__(None, None, None)
    waiting.join(timeout=5)
    assert len(raised) == 1


# -------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    "fault",
    [
        ScriptedAnswer(500, {"message": "oops"}),
        ScriptedAnswer(503, b"<html>Unicorn</html>"),
        ScriptedAnswer(200, b"<html>Unicorn</html>"),
        ScriptedAnswer(200, b'{"data": {"repository": {"na'),
        ScriptedAnswer(200, b""),
        ScriptedAnswer(200, [1, 2]),
        ScriptedAnswer(200, {"data": {"repository": {"name": "n"}}}, cut=10),
        ScriptedAnswer(200, {"data": {"repository": {"name": "n"}}}, cut=0),
        build_error_answer({"type": "INTERNAL", "message": "x", "path": ["repository"]}, data={"repository": None}),
        build_error_answer({"type": "SERVICE_UNAVAILABLE", "message": "x"}),
    ],
)
def test_a_fault_is_retried_with_growing_pauses_and_then_transient(connect, server, clock, fault):
    server.script_answers(fault, fault, build_data_answer())
    assert connect().query_graphql(QUERY).data == {"repository": {"name": "n"}}
    server.requests.clear()
    server.script_answers(fault)
    with pytest.raises(Transient) as caught:
        connect().query_graphql(QUERY, what="o/n")
    assert type(caught.value) is not PageTooLargeError
    assert "o/n" in str(caught.value)
    assert len(server.requests) == ATTEMPTS


@pytest.mark.parametrize(
    "response",
    [
        ScriptedAnswer(502, b"<html>"),
        ScriptedAnswer(504, {"message": "We couldn't respond to your request in time."}),
        build_error_answer({"type": "RESOURCE_LIMITS_EXCEEDED", "message": "x"}, data={"repository": {"name": "n"}}),
        build_error_answer({"type": "MAX_NODE_LIMIT_EXCEEDED", "message": "x"}),
        build_error_answer(
            {"message": "Something went wrong while executing your query. This may be the result of a timeout"}
        ),
        ScriptedAnswer(200, {}, slow=1.5),
    ],
)
def test_a_page_that_is_too_large_is_reported_at_once(connect, server, response):
    server.script_answers(response)
    with pytest.raises(PageTooLargeError):
        connect(timeout=1).query_graphql(QUERY)
    assert len(server.requests) == 1


def test_a_get_that_times_out_is_retried(connect, server):
    server.script_answers(
        ScriptedAnswer(502, b""),
        ScriptedAnswer(200, {}, slow=1.5),
        ScriptedAnswer(200, {"x": 1}, build_rate_headers(9)),
    )
    assert connect(timeout=1).get_rest("/x").data == {"x": 1}


def test_an_unreachable_server_is_transient(connect):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        api = connect(github_api=f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(Transient, match=r"o/n: the connection to http://127.*failed: ConnectionError"):
            api.fetch_repository("o/n")


def test_missing_parts_are_listed_beside_the_rest(connect, server):
    data = {"repository": {"name": "n", "pull": None}}
    lacking = {"type": "FORBIDDEN", "message": "no", "path": ["repository", "pull"], "locations": []}
    server.script_answers(build_error_answer(lacking, data=data))
    answer = connect().query_graphql(QUERY)
    assert answer.data == data
    assert answer.missing == (MissingField(("repository", "pull"), "FORBIDDEN", "no"),)


@pytest.mark.parametrize(
    "response",
    [
        build_error_answer(
            {"type": "NOT_FOUND", "message": "no o/n", "path": ["repository"]}, data={"repository": None}
        ),
        build_error_answer(
            {"type": "FORBIDDEN", "message": "no o/n: SAML", "path": ["repository"]}, data={"repository": None}
        ),
        ScriptedAnswer(200, {"data": {"repository": None}}),
    ],
)
def test_an_invisible_repository_is_not_found(connect, server, response):
    server.script_answers(response)
    with pytest.raises(GitHubNotFoundError, match="o/n"):
        connect().query_graphql(QUERY, what="o/n")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [403, 404, 410, 451])
def test_a_blocked_or_deleted_repository_is_not_found(connect, server, status):
    server.script_answers(ScriptedAnswer(status, {"message": "Repository access blocked"}, build_rate_headers(100)))
    with pytest.raises(GitHubNotFoundError, match="o/n"):
        connect().fetch_repository("o/n")


def test_an_address_that_is_not_githubs_is_reported(connect, server):
    server.script_answers(ScriptedAnswer(404, b"<html>Welcome to nginx</html>"))
    for ask in (lambda api: api.query_graphql(QUERY), lambda api: api.fetch_repository("o/n")):
        with pytest.raises(InputError, match=f"{server.url} does not answer as GitHub's API does") as caught:
            ask(connect())
        assert not isinstance(caught.value, GitHubNotFoundError)
        assert "--github-api" in caught.value.advice


def test_a_token_without_the_scope_is_reported(connect, server):
    server.script_answers(build_error_answer({"type": "INSUFFICIENT_SCOPES", "message": "needs read:org"}))
    with pytest.raises(InputError, match="read:org"):
        connect().query_graphql(QUERY)


def test_a_suspended_account_is_a_bad_token(connect, server):
    server.script_answers(ScriptedAnswer(403, {"message": "Sorry. Your account was suspended."}))
    with pytest.raises(InputError, match="does not accept the token"):
        connect().get_rest("/x")


# -------------------------------------------------------------------------------------------- redirections


def test_a_redirect_keeps_query_token_and_etag(connect, server):
    server.script_answers(
        ScriptedAnswer(301, {}, {"Location": f"{server.url}/repositories/7/pulls"}),
        ScriptedAnswer(200, [1], {"ETag": 'W/"b"'}),
    )
    answer = connect().get_rest("/repos/o/n/pulls?page=2&state=all", 'W/"a"')
    assert (answer.data, answer.etag) == ([1], 'W/"b"')
    assert server.requests[1].path == "/repositories/7/pulls?page=2&state=all"
    assert server.requests[1].token == server.requests[0].token
    assert server.requests[1].headers["If-None-Match"] == 'W/"a"'


def test_a_redirect_to_another_server_is_not_followed(connect, server):
    server.script_answers(ScriptedAnswer(301, {}, {"Location": "https://elsewhere.example/repositories/7"}))
    with pytest.raises(InputError, match=r"redirects to https://elsewhere\.example"):
        connect().get_rest("/repos/o/n")
    assert len(server.requests) == 1


def test_circular_redirects_end(connect, server):
    server.script_answers(ScriptedAnswer(302, {}, {"Location": "/repos/o/n"}))
    with pytest.raises(InputError, match="circle"):
        connect().get_rest("/repos/o/n")


def test_two_threads_never_share_a_connection(connect, server):
    """PyGithub's connection stores the request: a second one before the response would replace the first."""
    server.script_answers(
        lambda request: ScriptedAnswer(200, {"path": request.path}, build_rate_headers(4000), slow=0.005)
    )
    api, answers, lent, twice = connect(github_concurrency=8), {}, set(), []
    use = api._connections.send

    def noted(credential, ask, what, *, graphql):
        def asking(line):
            twice.append(line) if line in lent else lent.add(line)
            try:
                return ask(line)
            finally:
                lent.discard(line)

        return use(credential, asking, what, graphql=graphql)

    api._connections.send = noted

    def ask(number):
        for _ in range(5):
            answers.setdefault(number, set()).add(api.get_rest(f"/x/{number}").data["path"])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: {f"/x/{number}"} for number in range(8)}
    assert twice == []
