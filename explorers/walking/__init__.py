"""Walks: the two tools, the loop of a model with them, and the facts that it notes."""
