"""Agents on tasks and scenarios: sampling, and the fate of their trajectories."""
