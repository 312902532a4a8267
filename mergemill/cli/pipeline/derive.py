"""`mergemill derive`."""

from __future__ import annotations

from mergemill.cli.pipeline.stage_command import make_derive_app

app = make_derive_app(example="mergemill derive --kind bugfix,test-writing")
