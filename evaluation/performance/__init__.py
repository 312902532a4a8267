"""Timing of a fixed amount of work, and the statistics that decide whether a tree is faster than another."""
