"""`mergemill explore search`: the best pages of a corpus for a query."""

from __future__ import annotations

from typing import Annotated

import typer

from core.settings.storage import StorageSettings
from mergemill.cli import output
from mergemill.cli.options import JsonOption, with_settings

app = typer.Typer(add_completion=False)
CorpusArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the corpus.")]


@app.command("search")
@with_settings(StorageSettings)
def search(
    name: CorpusArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words to search for.")],
    *,
    n: Annotated[int, typer.Option("--limit", min=1, max=100, metavar="N", help="Pages to return.")] = 10,
    as_json: JsonOption = False,
    storage: StorageSettings,
) -> None:
    """Show the pages of a corpus that fit a query best, with a snippet of each.

    Example: mergemill explore search handbook "release notes"
    """
    from mergemill.explore.corpora import open_named_corpus  # noqa: PLC0415 - a wrong option needs none of it

    hits = open_named_corpus(name, storage).search(query, n)
    if as_json:
        for hit in hits:
            output.print_json(hit.to_json())
    else:
        rows = [{"score": f"{hit.score:.3f}", **hit.to_json(), "rank": rank} for rank, hit in enumerate(hits, 1)]
        for row in rows:
            output.print_text(f"{row['rank']}. {row['title']} ({row['id']})\n   {row['snippet']}")
        if not rows:
            output.print_note("no page has a word of the query")
