"""Code that runs inside containers: standard library alone, on Python 3.6 and later, the same for host and bundles."""
