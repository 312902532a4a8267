"""Rejection sampling: rules with a number each, and what holds for a set of trajectories."""
