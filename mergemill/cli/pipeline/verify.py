"""`mergemill verify`: the stage, and verifications that are made again."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from core.config import Settings
from core.errors import UsageError
from mergemill.cli.options import JsonOption, with_settings
from mergemill.cli.pipeline.stage_command import (
    KindOption,
    OnlyOption,
    RetryOption,
    SourcesArgument,
    make_app,
    make_scope,
    run_scope,
)
from taskdb.records import Kind, Stage
from taskdb.records.work import Scope

RENEWAL_STAGES = (Stage.BUILD, Stage.VERIFY, Stage.JUDGE, Stage.DERIVE, Stage.CERTIFY)


@with_settings()
def verify(
    *,
    sources: SourcesArgument = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Verify changes again whose tasks rest on copies of tests, and renew their tasks and certificates.",
        ),
    ] = False,
    only: OnlyOption = None,
    kind: KindOption = None,
    retry: RetryOption = None,
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Run the tests with and without each gold patch, or with --again those of old tasks once more."""
    if again and kind:
        raise UsageError("--again takes no kind", advice="it renews all tasks of a change; choose changes with --only")
    scope = make_scope(Stage.VERIFY, sources, only=only, kind=kind, retry=retry, settings=settings)
    if again:
        scope = make_renewal_scope(scope)
    raise typer.Exit(run_scope(Stage.VERIFY, scope, settings, as_json=as_json))


app = make_app(Stage.VERIFY.value, verify, example="mergemill verify --only pallets__flask-5063")


def make_renewal_scope(scope: Scope) -> Scope:
    """Return the scope that renews what the sources, names, dates, language and limit of a scope select."""
    from mergemill.pipeline.kinds import get_prerequisites  # noqa: PLC0415 - derivers load slowly

    return replace(scope, renews=True, stages=RENEWAL_STAGES, kinds=get_prerequisites(Kind), certified=tuple(Kind))
