"""Sampling of agents on tasks: the work that is pending, the workers that run it, and the writer that stores it."""
