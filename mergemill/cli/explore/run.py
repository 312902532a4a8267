"""`mergemill explore run`."""

from __future__ import annotations

from mergemill.cli.explore.stepping import make_run_app

app = make_run_app("mergemill explore run --corpus handbook --seeds sample:20 --rounds 5 --llm URL --model M")
