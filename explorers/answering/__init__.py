"""Answers: the agent that answers with the two tools, and whether an answer is right."""
