"""Tool environments as programs: analysis of a world's program, the server that runs worlds, gates, environments.

A world is a Python class whose methods are tools and whose attributes are its state; a scenario is an initial state, a
task and checks of the final state (EnvScaler, arXiv 2601.05808). Foreign programs run in containers alone.
"""
