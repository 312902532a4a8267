"""Agents on tasks: a recording gateway, scaffolds, rollouts, trajectories and what selects them."""
