"""Rules of rejection sampling. `RULES` is the complete policy for one trajectory, `SelectionSettings` its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.settings.agents import SelectionSettings
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
    """Field of the settings with the limit."""
    kinds: frozenset[Kind] | None = None
    """Kinds of tasks it applies to; None for all and for scenarios."""

    def get_limit(self, selection: SelectionSettings) -> float:
        """Return the limit."""
        return float(getattr(selection, self.setting))


RULES: tuple[SelectionRule, ...] = (
    SelectionRule(name="leak", metric="leaks", setting="leaks"),
    SelectionRule(name="truncated", metric="truncated", setting="truncated"),
    SelectionRule(name="empty_patch", metric="empty_patch", setting="empty_patch"),
    SelectionRule(name="test_only_patch", metric="test_only_patch", setting="test_only_patch", kinds=SOURCE_KINDS),
    SelectionRule(
        name="instructions",
        metric="broken_instructions",
        setting="instructions",
        kinds=frozenset((Kind.INSTRUCTIONS,)),
    ),
    SelectionRule(name="format_errors", metric="format_errors", setting="format_errors"),
    SelectionRule(name="tool_errors", metric="tool_errors", setting="tool_errors"),
    SelectionRule(name="tool_errors", metric="tool_error_run", setting="tool_error_run"),
    SelectionRule(name="repeats", metric="repeats", setting="repeats"),
    SelectionRule(name="repeats", metric="repeat_run", setting="repeat_run"),
    SelectionRule(name="loops", metric="loops", setting="loops"),
    SelectionRule(name="repetition", metric="repetition", setting="repetition"),
)


def list_broken_rules(
    metrics: Mapping[str, float], kind: Kind | None, selection: SelectionSettings
) -> list[SelectionRule]:
    """Return the rules that refuse a trajectory of a task of `kind`, None for a scenario, in their order."""
    rules = [rule for rule in RULES if rule.kinds is None or kind in rule.kinds]
    return [rule for rule in rules if metrics.get(rule.metric, 0.0) > rule.get_limit(selection)]
