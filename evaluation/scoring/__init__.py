"""Columns of benches, from findings and from reports of test runs: pure functions."""
