"""Who is answered: hosts, tokens, and the headers of every answer."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from starlette.testclient import TestClient

from mergemill.web import api, pages
from tests.web.conftest import TOKEN, ClientFactory


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/api/v1/tasks", "/nothing", "/tasks/nothing"])
def test_every_answer_forbids_scripts_of_others(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in headers


@pytest.mark.parametrize("path", ["/", "/tasks/nothing"])
def test_a_page_waits_for_no_further_request_and_nothing_else_may_be_inlined(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert '<link rel="stylesheet"' not in answer.text
    inlined = re.findall(r"<(style|script)>(.*?)</\1>", answer.text, re.DOTALL)
    assert [name for name, _ in inlined] == ["style", "script"]
    policy = answer.headers["content-security-policy"]
    for name, content in inlined:
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name}-src 'self' 'sha256-{digest}';" in policy


@pytest.mark.parametrize("host", ["127.0.0.1:8400", "localhost:8400", "localhost", "[::1]:8400", "192.168.1.7:80"])
def test_the_server_answers_for_its_addresses(client: TestClient, host: str) -> None:
    assert client.get("/funnel", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8400", "127.0.0.1.evil.example", "localhost.evil.example", "", "a:b:c"]
)
def test_the_server_does_not_answer_for_a_foreign_name(client: TestClient, host: str) -> None:
    answer = client.get("/funnel", headers={"host": host})
    assert answer.status_code == 421
    assert "Funnel" not in answer.text


def test_a_name_that_was_given_is_answered(make_client: ClientFactory) -> None:
    client = make_client(host="tasks.example.org", token=None)
    assert client.get("/funnel", headers={"host": "tasks.example.org:8400"}).status_code == 200


def test_reading_from_elsewhere_needs_the_token_where_there_is_one(make_client: ClientFactory) -> None:
    client = make_client(host="192.0.2.1")
    assert client.get("/funnel").status_code == 401
    assert client.get("/static/style.css").status_code == 401
    assert client.get("/funnel", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    password = base64.b64encode(f"any:{TOKEN}".encode()).decode()
    assert client.get("/funnel", headers={"authorization": f"Basic {password}"}).status_code == 200
    wrong = base64.b64encode(b"any:wrong").decode()
    assert client.get("/funnel", headers={"authorization": f"Basic {wrong}"}).status_code == 401
    answer = client.post("/api/v1/grade", json={}, headers={"authorization": f"Basic {password}"})
    assert answer.status_code in (400, 401)  # a browser would send it for any page


def test_a_body_of_unknown_length_is_not_read(client: TestClient) -> None:
    answer = client.post("/api/v1/grade", content=iter([b"{}"]))
    assert answer.status_code == 411


def test_a_bug_is_reported_without_its_traceback(make_client: ClientFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("secret detail")

    client = make_client()
    monkeypatch.setattr(pages, "load_listing", fail)
    monkeypatch.setattr(api, "load_listing", fail)
    for path in ("/tasks", "/api/v1/tasks"):
        answer = client.get(path)
        assert answer.status_code == 500
        assert "failed through a bug" in answer.text
        assert "secret detail" not in answer.text
        assert "Traceback" not in answer.text
