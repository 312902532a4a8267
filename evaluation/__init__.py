"""Running the tests of a tree: script, runner, reports, lists, controls, edits of fixes and the in-container harness.

Builders, verifiers and derivers share it; no lower package imports it.
"""
