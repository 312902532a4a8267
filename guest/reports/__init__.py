"""Reports of test runs, as the host and the graders in bundles read them: Python 3.6, standard library only."""
