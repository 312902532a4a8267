"""Sampling of agents on tasks: what is pending, the workers that run it, and the one writer that stores it."""
