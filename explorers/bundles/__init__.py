"""Bundles: rows of questions for other programs, and back."""
