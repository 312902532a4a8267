"""Protocol of searches: a query in, hits out, the best first."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A page that a search returns. `snippet` is text of the page as it stands there."""

    id: str
    url: str
    title: str
    snippet: str
    score: float

    def to_json(self) -> dict[str, Any]:
        """Return the hit as JSON data."""
        return asdict(self)


class PageSearch(Protocol):
    """A search. Threads may share it."""

    def search(self, query: str, n: int) -> list[Hit]:
        """Return the best pages for a query, at most `n`, with falling scores; pages without a common word are none."""
        ...
