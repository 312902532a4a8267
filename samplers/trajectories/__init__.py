"""Trajectories: the requests of a rollout as trees of exact prefixes, and rows of tokens for training."""
