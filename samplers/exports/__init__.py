"""Training data of trajectories, in the formats of trainers."""
