"""Measurements against a peer or a physical limit in one run, printed as ratios. They never assert a time."""
