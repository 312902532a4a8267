"""Derivers: tasks made from a change, a module or package for each kind. `mergemill.pipeline.kinds` lists them."""
