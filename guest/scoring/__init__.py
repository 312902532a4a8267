"""Decisions about submissions, shared by `mergemill grade` and the verifiers in bundles.

The modules need Python 3.9 and the standard library only, as they are copied into bundles and run in containers.
"""
