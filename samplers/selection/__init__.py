"""Rejection sampling: rules with a number each, and the rules that holds for a set of trajectories."""
