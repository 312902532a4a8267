"""Rules on tags: whether any kind of task can be derived from the change."""

from __future__ import annotations

from core.settings.mining import MiningSettings
from miner.changes import Change
from miner.tags.tag import is_primarily_performance


def has_tests_or_is_performance(change: Change, _: MiningSettings) -> str | None:
    """Pass when a test file is changed or will be written, or the primary kind, by diff and text, is performance."""
    if (
        change.awaits_tests
        or change.tags is None
        or change.split.test.files
        or is_primarily_performance(change.tags.change_kinds)
    ):
        return None
    return f"no test file is changed, and its primary kind is {change.tags.primary}"


def has_route(change: Change, _: MiningSettings) -> str | None:
    """Pass when at least one kind of task can be derived (`miner.tags.routes`)."""
    tags = change.tags
    return f"{tags.primary}: {tags.stop_reason}" if tags and tags.stop_reason else None
