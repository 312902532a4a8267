"""The loop from merged changes to a gradient: a tiny model is sampled on tasks, filtered, and trained by its rewards.

    python -m benchmarks.loop --out DIR [--small]

docs/guide/agents/training.md describes the stages and has the figures.
"""
