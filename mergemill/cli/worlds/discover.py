"""`mergemill worlds discover`."""

from __future__ import annotations

from mergemill.cli.worlds.making_command import make_discover_app

app = make_discover_app()
