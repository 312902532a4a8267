"""Edits of a fix: omitted hunks, mutants of its lines, and rewrites that keep its behaviour."""
