"""Intervals and comparisons of averages over subjects in families: pure functions."""
