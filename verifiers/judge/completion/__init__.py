"""What a statement lacks, written by a model and taken by rule: an addition that tells no solution."""

from verifiers.judge.completion.writing import complete

__all__ = ["complete"]
