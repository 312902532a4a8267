"""Benches: frozen sets of subjects, runs of scaffolds and models on them, metrics and reports."""
