"""`mergemill worlds scenarios`."""

from __future__ import annotations

from mergemill.cli.worlds.making_command import make_step_app
from taskdb.records.worlds import WorldStep

app = make_step_app(WorldStep.SCENARIOS, example="mergemill worlds scenarios --worlds-states 5 --llm URL --model M")
