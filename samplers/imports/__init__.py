"""Rollouts of others: files of their formats become rollouts and trajectories."""
