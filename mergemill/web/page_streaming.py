"""Pages that may wait for the database: a browser is given the part that precedes the content while that is read.

A page that is ready within PATIENCE is sent whole. Otherwise head, navigation and search are sent, for the browser to
paint, and the content follows. An error that is found after that is shown in the content: the status has been sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mergemill.web.context import WebContext
from mergemill.web.rendering import PageResponse

PATIENCE = 0.05
"""Seconds after which a page is begun."""
CONTENT = b'<main id="content" class="wrap" tabindex="-1">\n'
"""Last line of the part that precedes the content, in every page."""

Page = Callable[[WebContext, Request], Response]
AnswerError = Callable[[Request, Exception], Awaitable[Response]]


@dataclass(frozen=True)
class EarlyStart:
    """Part that a page begins with.

    Attributes:
        template: template of the page, whose title needs at most `q`.
        active: entry of the page in the navigation.
    """

    template: str
    active: str

    def render(self, context: WebContext, request: Request) -> bytes:
        """Return the page up to its content."""
        values = {"active": self.active, "q": request.query_params.get("q", ""), "is_start": True}
        return bytes(PageResponse(context.render_text(self.template, values)).body)


async def send_early(
    context: WebContext, page: Page, start: EarlyStart, answer_error: AnswerError, request: Request
) -> Response:
    """Return the page, or its start and then the rest."""
    made = asyncio.ensure_future(run_in_threadpool(page, context, request))
    ready, _ = await asyncio.wait([made], timeout=PATIENCE)
    if ready or request.method == "HEAD":
        return await made
    parts = _iter_parts(start.render(context, request), request, made, answer_error)
    return StreamingResponse(parts, media_type="text/html")


async def _iter_parts(
    start: bytes, request: Request, made: Awaitable[Response], answer_error: AnswerError
) -> AsyncIterator[bytes]:
    yield start
    try:
        response = await made
    except Exception as error:  # noqa: BLE001 - all are answered
        response = await answer_error(request, error)
    yield bytes(response.body).partition(CONTENT)[2]
