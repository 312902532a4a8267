"""Simulated environments for reinforcement learning (Simia-RL): episodes that a model plays and judges."""
