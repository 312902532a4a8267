"""Adapters that give trainers tasks and rewards of a grading server, one module each.

A module imports its framework and is not imported by anything else. The server is named by arguments of the framework's
configuration, else by `MERGEMILL_GRADER_URL`, `MERGEMILL_GRADER_TOKEN` and `MERGEMILL_REWARD` (see `compute_reward`).
"""
