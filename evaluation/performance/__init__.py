"""Timing of a fixed amount of work, and the statistics that decide whether one tree is faster than another."""
