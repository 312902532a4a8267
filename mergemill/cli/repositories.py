"""`mergemill repos`: which repositories are worth mining."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mergemill.cli import output
from mergemill.cli.options import READING, Json, with_settings
from mergemill.config import Settings
from mergemill.errors import InputError, UsageError
from mergemill.services import make_services

if TYPE_CHECKING:
    from miner.repos.find import AskGitHub
    from miner.repos.rank import Ranked

SHOWN = ("score", "source", "language", "merged", "has_tests", "has_ci", "license", "kilobytes", "out")
GITHUB = ("github_api", "github_app_id", "github_app_key", "github_app_installation", "github_patience", "ca_bundle")
"""How GitHub is reached."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(repos)


@with_settings(*READING, "clones", "language", "licenses", *GITHUB)
def repos(  # noqa: PLR0917 - options, given by name
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="REPO...", show_default=False, help="OWNER/NAME, git:PATH or @FILE (a list of them)."),
    ] = None,
    gharchive: Annotated[
        list[Path] | None, typer.Option("--gharchive", metavar="FILE", help="A dump of GH Archive; may be repeated.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Add what is new to this list, for `run @FILE`.")
    ] = None,
    top: Annotated[
        int, typer.Option("--top", min=1, metavar="N", help="Of a dump's repositories the busiest N.")
    ] = 500,
    no_api: Annotated[bool, typer.Option("--no-api", help="Ask nobody: rank by dumps and clones alone.")] = False,
    as_json: Json = False,
    *,
    settings: Settings,
) -> None:
    """Rank repositories by what can be known cheaply: activity, tests, CI, licence, language, size."""
    if not words and not gharchive:
        raise UsageError("no repository is named", advice="name some as OWNER/NAME or @FILE, or give --gharchive FILE")
    with _asking(settings, no_api=no_api) as ask:
        ranked, unread = _ranked(words or (), gharchive or (), ask, top, settings)
    rows = [{"score": r.score, "out": r.out or None, **asdict(r.facts), "signals": r.signals} for r in ranked]
    output.rows(rows, () if as_json else SHOWN, as_lines=as_json, nothing="no repository was found")
    if out:
        from miner.repos.lists import update  # noqa: PLC0415 - only this command needs it

        output.tell(f"{update(out, ranked)} repositories added to {out}; edit it, then: mergemill run @{out}")
    if unread:
        raise typer.Exit(InputError.exit_code)


def _ranked(
    words: Sequence[str], dumps: Sequence[Path], ask: AskGitHub | None, top: int, settings: Settings
) -> tuple[list[Ranked], int]:
    """What was found, best first, and how much of the input could not be read, which has been told."""
    from miner.repos.find import find, words_of  # noqa: PLC0415 - only this command needs them
    from miner.repos.rank import rank  # noqa: PLC0415

    services = make_services(settings, engine=False)
    found, unread = [], 0
    for told in find(words_of(words), dumps, services.clones, ask, top):
        if isinstance(told, InputError):
            output.tell(told.line())
            unread += 1
        else:
            found.append(told)
    return rank(found, settings, services.clock()), unread


@contextmanager
def _asking(settings: Settings, *, no_api: bool) -> Iterator[AskGitHub | None]:
    """GitHub's answers, as long as the connection is open; None when nobody is to be asked."""
    if no_api:
        yield None
        return
    from miner.github.api import Api  # noqa: PLC0415 - only this command needs them
    from miner.repos.github import facts_of_github  # noqa: PLC0415

    with Api(settings) as api:
        yield partial(facts_of_github, api=api)
