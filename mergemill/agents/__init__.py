"""Agents on tasks and scenarios: sampling, and what becomes of their trajectories."""
