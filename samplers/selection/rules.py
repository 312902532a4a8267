"""Rules of rejection sampling. `RULES` is the complete policy for a trajectory, `Settings.select_...` its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.config import Settings
from taskdb.records import Kind

PATCH_KINDS = frozenset(Kind) - {Kind.REVIEW}
"""Kinds whose submission is a patch."""
SOURCE_KINDS = PATCH_KINDS - {Kind.TEST_WRITING}
"""Kinds whose submission changes sources."""


@dataclass(frozen=True, kw_only=True)
class SelectionRule:
    """A rule: it refuses a trajectory whose metric is above the limit."""

    name: str
    """Reason of a refusal. Two rules with the same name are limits of the same thing."""
    metric: str
    """Key in `Trajectory.metrics`; `samplers.trajectories.measures.MEASURES` computes it."""
    setting: str
    """Setting with the limit."""
    kinds: frozenset[Kind] | None = None
    """Kinds of tasks it applies to; None for all and for scenarios."""

    def get_limit(self, settings: Settings) -> float:
        """Return the limit."""
        return float(getattr(settings, self.setting))


RULES: tuple[SelectionRule, ...] = (
    SelectionRule(name="leak", metric="leaks", setting="select_leaks"),
    SelectionRule(name="truncated", metric="truncated", setting="select_truncated"),
    SelectionRule(name="empty_patch", metric="empty_patch", setting="select_empty_patch"),
    SelectionRule(
        name="test_only_patch", metric="test_only_patch", setting="select_test_only_patch", kinds=SOURCE_KINDS
    ),
    SelectionRule(name="format_errors", metric="format_errors", setting="select_format_errors"),
    SelectionRule(name="tool_errors", metric="tool_errors", setting="select_tool_errors"),
    SelectionRule(name="tool_errors", metric="tool_error_run", setting="select_tool_error_run"),
    SelectionRule(name="repeats", metric="repeats", setting="select_repeats"),
    SelectionRule(name="repeats", metric="repeat_run", setting="select_repeat_run"),
    SelectionRule(name="loops", metric="loops", setting="select_loops"),
    SelectionRule(name="repetition", metric="repetition", setting="select_repetition"),
)


def list_broken_rules(metrics: Mapping[str, float], kind: Kind | None, settings: Settings) -> list[SelectionRule]:
    """Return the rules that refuse a trajectory of a task of `kind`, None for a scenario, in their order."""
    rules = [rule for rule in RULES if rule.kinds is None or kind in rule.kinds]
    return [rule for rule in rules if metrics.get(rule.metric, 0.0) > rule.get_limit(settings)]
