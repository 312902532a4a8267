"""`mergemill worlds assess`."""

from __future__ import annotations

from mergemill.cli.worlds.making_command import make_step_app
from taskdb.records.worlds import WorldStep

app = make_step_app(WorldStep.ASSESS, example="mergemill worlds assess --worlds-rounds 50 --llm URL --model M")
