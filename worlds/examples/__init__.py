"""Three worlds written by hand, with scenarios and their solutions: examples, and golden tests of the stage.

A folder has `program.py`, `documentation.md`, `tools.json`, `usage.json`, `states/NAME.json` and per scenario a folder
`scenarios/NAME` with `task.md`, `checks.py` and `scenario.json` (state, solution).
"""
