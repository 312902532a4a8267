"""`mergemill repos`: rank repositories before mining them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from core.config import Settings
from core.errors import InputError, UsageError
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.options import GITHUB_SETTINGS, JsonOption, with_settings

TABLE_COLUMNS = ("score", "source", "language", "merged", "has_tests", "has_ci", "license", "kilobytes", "out")

app = typer.Typer(add_completion=False)


@app.command("repos")
@with_settings(StorageSettings, "clones", "language", "licenses", *GITHUB_SETTINGS, "github_patience", "ca_bundle")
def repos(  # noqa: PLR0917 - options, given by name
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="REPO...", show_default=False, help="OWNER/NAME, git:PATH or @FILE (a list of them)."),
    ] = None,
    gharchive: Annotated[
        list[Path] | None,
        typer.Option("--gharchive", metavar="FILE", help="Read repositories from a GH Archive dump; repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Append new repositories to a list for `run @FILE`.")
    ] = None,
    top: Annotated[
        int, typer.Option("--top", min=1, metavar="N", help="Rank the N most active repositories of the dumps.")
    ] = 500,
    no_api: Annotated[
        bool, typer.Option("--no-api", help="Rank from dumps and clones alone, without GitHub's API.")
    ] = False,
    as_json: JsonOption = False,
    *,
    settings: Settings,
) -> None:
    """Rank repositories by how many tasks they are likely to give.

    The score counts activity, tests, CI, licence, language and size.

    Example: mergemill repos pallets/flask psf/requests --out repos.txt
    """
    from mergemill.pipeline.repositories import rank_words  # noqa: PLC0415 - only this command needs the miner
    from miner.repos.lists import update_list  # noqa: PLC0415

    if not words and not gharchive:
        raise UsageError("no repository is named", advice="name OWNER/NAME or @FILE, or give --gharchive FILE")
    ranked, errors = rank_words(words or (), gharchive or (), settings, top=top, use_api=not no_api)
    for error in errors:
        output.print_message(error.format_line())
    rows = [{"score": r.score, "out": r.rejection or None, **asdict(r.facts), "signals": r.signals} for r in ranked]
    output.print_rows(rows, () if as_json else TABLE_COLUMNS, as_lines=as_json, nothing="no repository was found")
    if out:
        n_added = update_list(out, ranked)
        output.print_note(
            f"{format_count(n_added, 'repository')} added to {out}; edit it, then run: mergemill run @{out}"
        )
    if errors:
        raise typer.Exit(InputError.exit_code)
