"""A question to GitHub, and its answer or one of few errors."""

from __future__ import annotations

from miner.github.api import RATE
from tests.miner.github.server import data

QUERY = f'query($n: Int!) {{ repository(owner: "o", name: "n") {{ name }} {RATE} }}'


def test_a_query_goes_to_graphql_with_its_variables_and_the_token(connect, server):
    server.says(data())
    answer = connect().graphql(QUERY, {"n": 3})
    assert (answer.data, answer.missing) == ({"repository": {"name": "n"}}, ())
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.token) == ("POST", "/graphql", "ghp_firsttoken1111")
    assert asked.body == {"query": QUERY, "variables": {"n": 3}}
