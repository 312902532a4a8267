"""Benchmark of training objectives on a toy task."""
