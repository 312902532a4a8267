"""Worlds out of and into bundles: `mergemill worlds export` and `mergemill worlds import`."""
