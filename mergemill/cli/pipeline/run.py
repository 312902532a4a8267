"""`mergemill run`."""

from __future__ import annotations

from mergemill.cli.pipeline.stage_command import make_run_app

app = make_run_app(example="mergemill run github:pallets/flask --limit 20 --workers 4")
