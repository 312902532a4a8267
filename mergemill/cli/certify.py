"""`mergemill certify`."""

from __future__ import annotations

from mergemill.cli.stage_command import make_stage_app
from taskdb.records import Stage

app = make_stage_app(Stage.CERTIFY, example="mergemill certify --workers 4")
