"""`mergemill explore walk`."""

from __future__ import annotations

from mergemill.cli.explore.stepping import make_walk_app

app = make_walk_app("mergemill explore walk --corpus handbook --seeds sample:20 --llm URL --model M")
