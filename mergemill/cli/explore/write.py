"""`mergemill explore write`."""

from __future__ import annotations

from mergemill.cli.explore.stepping import make_pending_app
from taskdb.records.questions import ExploreStep

app = make_pending_app("write", (ExploreStep.WRITE,), "mergemill explore write --corpus handbook --llm URL --model M")
