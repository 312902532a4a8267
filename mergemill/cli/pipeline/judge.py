"""`mergemill judge`: statements of verified changes, or published tasks straight from their file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from core.config import Settings
from core.errors import InputError, UsageError
from mergemill.cli import output
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
from taskdb.records.verdicts import EVIDENCE, has_evidence

SCHEME = "instances:"
TABLE_COLUMNS = ("instance_id", "findings", "underspecified", "unfair_tests")


@with_settings()
def judge(
    *,
    sources: SourcesArgument = None,
    only: OnlyOption = None,
    kind: KindOption = None,
    retry: RetryOption = None,
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Judge whether each problem statement is sufficient for its tests."""
    scope = make_scope(Stage.JUDGE, sources, only=only, kind=kind, retry=retry, settings=settings)
    if are_instance_files(scope.sources):
        raise typer.Exit(print_judged_files(scope.sources, split_words(only), settings, as_json=as_json))
    raise typer.Exit(run_scope(Stage.JUDGE, scope, settings, as_json=as_json))


app = make_app("judge", judge, example="mergemill judge instances:swe-bench.jsonl --json")


def are_instance_files(sources: Sequence[str]) -> bool:
    """Return whether the sources are files of published tasks, which are judged without a database.

    Raises:
        UsageError: some are and some are not.
    """
    is_file = [source.startswith(SCHEME) for source in sources]
    if any(is_file) and not all(is_file):
        raise UsageError(
            "instances:FILE is judged from the file, other sources from the database", advice="run judge for each"
        )
    return any(is_file)


def print_judged_files(sources: Sequence[str], only: Sequence[str], settings: Settings, *, as_json: bool) -> int:
    """Print the judge's result for each task, at most `settings.source.limit` of a file; return the exit code."""
    from mergemill.pipeline.instances import judge_file  # noqa: PLC0415 - only files need the miner and the judge

    exit_code, rows = 0, list[dict[str, Any]]()
    for source in sources:
        n_printed = 0
        for result in judge_file(Path(source.removeprefix(SCHEME)), only, settings):
            if isinstance(result, InputError):
                output.print_message(result.format_line())
                exit_code = result.exit_code
                continue
            if n_printed == settings.source.limit:
                break
            n_printed += 1
            if as_json:
                output.print_json(result)
            else:
                rows.append(_build_table_row(result))
    if not as_json:
        output.print_rows(rows, TABLE_COLUMNS, as_lines=False, nothing="no task to judge")
    return exit_code


def _build_table_row(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for people: findings, and those probabilities that rest on evidence."""
    rules = sorted({finding["rule"] for finding in result["findings"]})
    scores = {name: result[name] if has_evidence(result, name) else None for name in EVIDENCE}
    return {"instance_id": result["instance_id"], "findings": rules, **scores}
