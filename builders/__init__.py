"""Build stage: Candidate -> Environment, an image made from a BuildPlan in which the change's tests run."""
