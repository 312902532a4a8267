"""`mergemill derive`."""

from __future__ import annotations

from mergemill.cli.pipeline.stage_command import make_stage_app
from taskdb.records import Stage

app = make_stage_app(Stage.DERIVE, example="mergemill derive --kind bugfix,test-writing")
