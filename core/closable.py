"""Base class of resources that are closed when their `with` block ends."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closable:
    """Context manager that calls `close`, which a subclass defines."""

    def close(self) -> None:
        """Release the resource."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
