"""Counters in test files, to find out whether a test does as much work as before."""

from derivers.counters.instrument import add_counters

__all__ = ["add_counters"]
