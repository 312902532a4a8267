"""A box the change runs in: Candidate -> Environment, a runnable image made from a BuildPlan."""
