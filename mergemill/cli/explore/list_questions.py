"""`mergemill explore list`: the questions of the database, or its corpora or walks."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from core.errors import UsageError
from core.settings.storage import StorageSettings
from mergemill.cli import output
from mergemill.cli.options import JsonOption, complete_words, split_words, with_settings
from taskdb.queries.questions import STATUSES, QuestionFilters, list_corpora, list_questions, list_walks
from taskdb.store import Store

COLUMNS = ("name", "corpus_name", "round", "status", "reason", "best", "entry_rank", "solved", "attempts", "mean_turns")
CORPUS_COLUMNS = ("name", "source", "language", "n_pages", "n_left_out")
WALK_COLUMNS = ("name", "corpus_name", "seed", "status", "reason", "n_calls", "n_pages", "n_facts")

app = typer.Typer(add_completion=False)


class ListedThing(StrEnum):
    """Values of `--of`."""

    QUESTIONS = "questions"
    WALKS = "walks"
    CORPORA = "corpora"


@app.command("list")
@with_settings(StorageSettings)
def list_command(
    *,
    of: Annotated[ListedThing, typer.Option("--of", help="List questions, walks or corpora.")] = ListedThing.QUESTIONS,
    corpus: Annotated[str | None, typer.Option("--corpus", metavar="NAME", help="Those over this corpus.")] = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="|".join(STATUSES),
            autocompletion=complete_words(STATUSES),
            help="Questions with one of these states.",
        ),
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="REASON[,REASON]", help="Questions rejected for one of these.")
    ] = None,
    number: Annotated[int | None, typer.Option("--round", min=0, metavar="N", help="Questions of this round.")] = None,
    best: Annotated[bool, typer.Option("--best", help="Only the question of each walk that is exported.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Print at most N.")] = None,
    as_json: JsonOption = False,
    storage: StorageSettings,
) -> None:
    """List questions by name, or walks or corpora.

    Example: mergemill explore list --corpus handbook --status certified --best
    """
    states = tuple(split_words(status))
    if unknown := [word for word in states if word not in STATUSES]:
        raise UsageError(f"--status: {unknown[0]} is unknown", advice=f"of {', '.join(STATUSES)}")
    columns: Sequence[str]
    with Store.open(storage.db, create=False) as store:
        if of is ListedThing.CORPORA:
            rows, columns = list_corpora(store)[:limit], CORPUS_COLUMNS
        elif of is ListedThing.WALKS:
            rows, columns = list_walks(store, corpus)[:limit], WALK_COLUMNS
        else:
            filters = QuestionFilters(
                corpus=corpus, status=states, reason=tuple(split_words(reason)), round=number, best=best
            )
            rows, columns = list_questions(store, filters, limit), COLUMNS
    output.print_rows(rows, columns, as_lines=as_json, nothing=f"there are no {of.value}")
