"""Standard streams whose reader may close the pipe."""

from __future__ import annotations

from typing import Any, TextIO


class OutputClosedError(BaseException):
    """The reader of standard output or standard error closed the pipe.

    Not an `Exception` and not an `OSError`: neither error handling around a stage nor click's own handler, which exits
    with 1, may catch it. A broken pipe of a socket stays a `BrokenPipeError`.
    """


class GuardedStream:
    """Text stream that raises `OutputClosedError` where the stream under it raises `BrokenPipeError`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write `text` and return its number of characters."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            raise OutputClosedError from None

    def flush(self) -> None:
        """Write the text that is buffered."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            raise OutputClosedError from None
