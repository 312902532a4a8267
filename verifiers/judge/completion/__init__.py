"""Completion of a statement: a model or rules write the missing information, rules accept or reject it."""

from verifiers.judge.completion.by_rules import complete_by_rules, measure_completion
from verifiers.judge.completion.writer import complete

__all__ = ["complete", "complete_by_rules", "measure_completion"]
