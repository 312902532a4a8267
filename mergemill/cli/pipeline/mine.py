"""`mergemill mine`."""

from __future__ import annotations

from mergemill.cli.pipeline.stage_command import make_stage_app
from taskdb.records import Stage

app = make_stage_app(Stage.MINE, example="mergemill mine git:../flask --since 2024-01-01")
