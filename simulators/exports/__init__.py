"""Rows for trainers, of simulated trajectories. Every row and every card has `environment: simulated`."""
