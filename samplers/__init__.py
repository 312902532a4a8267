"""Agents on tasks: a recording gateway, scaffolds, rollouts, trajectories and the rules that selects them."""
