"""Completion of a statement: a model writes the missing information, rules accept or reject it."""

from verifiers.judge.completion.writer import complete

__all__ = ["complete"]
