"""Bundles of tasks: exported, imported, read as stores of their own, and certified again."""
