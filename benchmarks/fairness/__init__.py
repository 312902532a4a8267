"""Honest submissions to small tasks in several languages, all of which must earn 1.

`python -m benchmarks.fairness` makes one task per language by the command line, grades every submission, and prints
which were refused.
"""
