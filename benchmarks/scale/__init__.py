"""A simulator of large runs, fed by what was measured on small ones."""
