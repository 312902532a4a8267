"""`mergemill verify`."""

from __future__ import annotations

from mergemill.cli.pipeline.stage_command import make_stage_app
from taskdb.records import Stage

app = make_stage_app(Stage.VERIFY, example="mergemill verify --only pallets__flask-5063")
