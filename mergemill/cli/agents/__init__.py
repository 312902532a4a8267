"""Commands of agents and training: sample, gateway, trajectories, difficulty."""
