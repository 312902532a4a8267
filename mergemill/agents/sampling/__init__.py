"""Sampling of agents on tasks: what is pending, the workers that run it, and the writer that stores it."""
