"""Derivers: tasks made from a change, one module or package for each kind. `mergemill.pipeline.kinds` lists them."""
