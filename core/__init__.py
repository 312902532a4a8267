"""Errors, settings and helpers that every other package may import; this package imports none of them."""
