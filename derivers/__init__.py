"""Derivers: tasks made from a change, one module or package for each kind. `mergemill.kinds` lists all kinds."""
