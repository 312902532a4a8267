"""`mergemill worlds run`."""

from __future__ import annotations

from mergemill.cli.worlds.making_command import make_run_app

app = make_run_app()
