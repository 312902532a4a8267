"""Check of a tree's structure, with the standard library alone, so that it also runs in containers."""
