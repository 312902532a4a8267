"""Rounds of evolution: clues are removed, blurred and replaced, and the answer is kept."""
