"""`mergemill worlds build`."""

from __future__ import annotations

from mergemill.cli.worlds.making_command import make_step_app
from taskdb.records.worlds import WorldStep

app = make_step_app(WorldStep.BUILD, example="mergemill worlds build --llm URL --model M")
