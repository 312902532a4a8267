"""Scaffolds: the loops around a model that work on tasks. Each is a file with a class; `registry` lists them."""
