"""Runs of an evaluation script in fresh containers, one at a time or a few in parallel."""
