"""Simulated test runs: a model predicts the report where tests cannot be run. The result never counts as verified."""
