"""Blind controls: the draw of evaluations, and the judgement of their outcomes."""
