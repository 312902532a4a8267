"""`mergemill run`."""

from __future__ import annotations

from mergemill.cli.stage_command import make_stage_app

app = make_stage_app(None, example="mergemill run github:pallets/flask --limit 20 --workers 4")
