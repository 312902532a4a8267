"""`pypi:` sources: a package's releases as a history, from its index and source distributions."""
