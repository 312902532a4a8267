"""Instructions of agents, for every kind of task."""
