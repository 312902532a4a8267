"""`github:` sources: the API within its limits, a journal of its answers, and a clone for everything else."""
