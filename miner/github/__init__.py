"""Mining GitHub: the API within its limits, a journal of what it said, and a clone for everything else."""
