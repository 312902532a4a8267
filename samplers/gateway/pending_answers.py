"""Answers on their way: written once, read by every client that sent the same request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

JSON_TYPE = b"application/json"
STREAM_TYPE = b"text/event-stream; charset=utf-8"


class PendingAnswer:
    """One answer. `number`: its exchange, None where nothing is recorded. For one event loop."""

    def __init__(self, fingerprint: str = "", number: int | None = None) -> None:
        self.fingerprint = fingerprint
        self.number = number
        self.status = 0
        self.content_type = JSON_TYPE
        self.is_answer = False
        """Whether it ended with an answer and not with an error."""
        self._pieces: list[bytes] = []
        self._is_done = False
        self._waiters: list[asyncio.Future[None]] = []

    @classmethod
    def make_complete(
        cls, status: int, content_type: bytes, content: bytes, number: int | None = None
    ) -> PendingAnswer:
        """Return an answer that is there already."""
        pending = cls(number=number)
        pending.begin(status, content_type)
        pending.end(content, is_answer=status == 200)
        return pending

    @property
    def has_begun(self) -> bool:
        """Whether a client may have got something."""
        return self.status != 0

    def begin(self, status: int, content_type: bytes) -> None:
        """Set the part that comes before the content."""
        self.status = status
        self.content_type = content_type

    def publish(self, piece: bytes) -> None:
        """Add a piece of the content."""
        if piece:
            self._pieces.append(piece)
            self._wake()

    def end(self, piece: bytes, *, is_answer: bool) -> None:
        """Add the last piece."""
        if piece:
            self._pieces.append(piece)
        self.is_answer = is_answer
        self._is_done = True
        self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def read(self) -> AsyncIterator[tuple[bytes, bool]]:
        """Yield (piece, whether it is the last) from the beginning, pieces that are there together."""
        at = 0
        while True:
            while at == len(self._pieces) and not self._is_done:
                waiter = asyncio.get_running_loop().create_future()
                self._waiters.append(waiter)
                await waiter
            content = (
                b"".join(self._pieces[at:])
                if len(self._pieces) - at > 1
                else self._pieces[at]
                if at < len(self._pieces)
                else b""
            )
            at = len(self._pieces)
            is_last = self._is_done
            yield content, is_last
            if is_last:
                return
