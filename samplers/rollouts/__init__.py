"""Rollouts: an attempt of an agent at a task, in a container that reaches the model gateway and nothing else."""
