"""Rules on what one may use: licences."""

from __future__ import annotations

from mergemill.config import Settings
from miner.changes import Change
from miner.licenses import allows


def license_is_allowed(change: Change, settings: Settings) -> str | None:
    """The licence at the base commit is one of `licenses`, where any are named."""
    if not settings.licenses or allows(change.license, settings.licenses):
        return None
    return f"{change.license} is not among {', '.join(settings.licenses)}"
