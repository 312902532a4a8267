"""`mergemill build`."""

from __future__ import annotations

from mergemill.cli.pipeline.stage_command import make_stage_app
from taskdb.records import Stage

app = make_stage_app(Stage.BUILD, example="mergemill build --retry timeout")
