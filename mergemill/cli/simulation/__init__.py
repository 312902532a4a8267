"""Commands of simulated environments: simulate."""
