"""Scenarios of a world: initial states, tasks, checklists, check functions, and solutions that a model finds.

Section 3.2 of EnvScaler (arXiv 2601.05808). The gates of `worlds.gates.scenario_gates` decide the checks that are kept.
"""
