"""Answers of a model that is also started as a process, which is to import little."""

from __future__ import annotations

from tests.samplers.scripted_model import ModelRequest, Turn


def answer_slowly(request: ModelRequest) -> Turn:
    """Return the answer to the last message of a request, after a moment."""
    last = request.body["messages"][-1]["content"]
    return Turn(text=f"the answer to {last} is one two three four five six", delay=0.004)
