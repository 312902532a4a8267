"""What is opened with `open`, closed with `close`, and is therefore a context manager."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closing:
    """Leaving the `with` block closes. To be inherited beside a `close` of one's own."""

    def close(self) -> None:
        """Let go of what is held."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
