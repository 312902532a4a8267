"""`mergemill certify`: the stage, and fresh gradings of the tasks of a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from core.config import Settings
from core.errors import UsageError
from mergemill.cli.bundles.certificates import print_certificates
from mergemill.cli.options import JsonOption, split_words, with_settings
from mergemill.cli.pipeline.stage_command import (
    KindOption,
    OnlyOption,
    RetryOption,
    SourcesArgument,
    make_app,
    make_scope,
    run_scope,
)
from taskdb.records import Stage


@with_settings()
def certify(
    *,
    sources: SourcesArgument = None,
    again: Annotated[
        Path | None,
        typer.Option(
            "--again", metavar="BUNDLE", help="Grade the tasks of this exported bundle afresh, from its files alone."
        ),
    ] = None,
    only: OnlyOption = None,
    kind: KindOption = None,
    retry: RetryOption = None,
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Certify each task, or with --again the tasks of a bundle."""
    if again is not None:
        if sources or kind or retry:
            raise UsageError("--again takes a bundle and no source, kind or reason", advice="choose tasks with --only")
        print_certificates(again, split_words(only), settings, as_json=as_json)
        return
    scope = make_scope(Stage.CERTIFY, sources, only=only, kind=kind, retry=retry, settings=settings)
    raise typer.Exit(run_scope(Stage.CERTIFY, scope, settings, as_json=as_json))


app = make_app(Stage.CERTIFY.value, certify, example="mergemill certify --workers 4")
