"""`mergemill explore evolve`."""

from __future__ import annotations

from mergemill.cli.explore.stepping import make_pending_app
from taskdb.records.questions import ExploreStep

app = make_pending_app(
    "evolve", (ExploreStep.EVOLVE,), "mergemill explore evolve --corpus handbook --llm URL --model M"
)
