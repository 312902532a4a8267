"""`mergemill explore gate`."""

from __future__ import annotations

from mergemill.cli.explore.stepping import make_pending_app
from taskdb.records.questions import ExploreStep

app = make_pending_app("gate", (ExploreStep.GATE,), "mergemill explore gate --corpus handbook --llm URL --model M")
