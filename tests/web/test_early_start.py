"""Pages whose start is sent while the database is read."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from mergemill.web import page_streaming, pages
from mergemill.web.page_streaming import CONTENT
from tests.web.conftest import HOST

PATHS = (
    "/tasks",
    "/tasks?q=pallets",
    "/tasks?language=go",
    "/changes",
    "/changes?status=rejected",
    "/funnel",
    "/bench",
    "/",
)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every page is begun before it is ready."""
    monkeypatch.setattr(page_streaming, "PATIENCE", 0)


@pytest.mark.parametrize("path", PATHS)
def test_a_page_in_parts_is_the_page(client: TestClient, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_streaming, "PATIENCE", 60)  # on a busy machine as well
    whole = client.get(path)
    monkeypatch.setattr(page_streaming, "PATIENCE", 0)
    parts = client.get(path)
    assert "content-length" in whole.headers
    assert "content-length" not in parts.headers
    assert parts.headers["content-type"] == whole.headers["content-type"]
    assert parts.headers["content-security-policy"] == whole.headers["content-security-policy"]
    assert parts.text == whole.text


@pytest.mark.usefixtures("impatient")
def test_only_lists_and_counts_are_begun_early(client: TestClient) -> None:
    assert client.get("/tasks/no-such-task").status_code == 404
    assert "content-length" in client.get("/runs").headers
    assert client.head("/tasks?kind=nonsense").status_code == 400


@pytest.mark.usefixtures("impatient")
def test_an_error_after_the_start_is_the_content(client: TestClient) -> None:
    page = client.get("/tasks?q=<script>alert(1)</script>&kind=nonsense")
    assert page.status_code == 200
    assert page.content.count(CONTENT) == page.text.count("</html>") == page.text.count('class="find"') == 1
    assert '<p class="code">400</p>' in page.text
    assert "nonsense" in page.text
    assert "<script>alert" not in page.text


@pytest.mark.usefixtures("impatient")
def test_a_bug_after_the_start_is_logged_and_not_shown(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("inside information")

    monkeypatch.setattr(pages, "load_listing", fail)
    with caplog.at_level(logging.ERROR, "mergemill.web.application"):
        page = client.get("/tasks")
    assert '<p class="code">500</p>' in page.text
    assert "inside information" not in page.text
    assert "inside information" in caplog.text


def test_the_start_is_sent_while_the_page_waits(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    waits, goes_on = threading.Event(), threading.Event()
    load: Callable[..., Any] = pages.load_listing

    def load_late(*arguments: Any) -> Any:
        waits.set()
        assert goes_on.wait(30)
        return load(*arguments)

    monkeypatch.setattr(pages, "load_listing", load_late)
    parts: list[bytes] = []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message.get("body"):
            parts.append(message["body"])
            goes_on.set()  # not before a part has come

    host = HOST.removeprefix("http://").encode()
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http"} | {
        "path": "/tasks",
        "raw_path": b"/tasks",
        "query_string": b"q=pallets",
        "headers": [(b"host", host)],
        "root_path": "",
    }
    asyncio.run(asyncio.wait_for(client.app(scope, receive, send), 40))  # type: ignore[arg-type]
    assert waits.is_set()
    assert parts[0].endswith(CONTENT)
    assert b'value="pallets"' in parts[0]
    assert b"pallets__flask" not in parts[0]
    assert b"pallets__flask" in parts[1]
