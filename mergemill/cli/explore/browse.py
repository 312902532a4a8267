"""`mergemill explore browse`: a page of a corpus, or the passages of it that fit a query."""

from __future__ import annotations

from typing import Annotated

import typer

from core.config import Settings
from core.errors import InputError
from core.settings.models import OFF
from core.settings.storage import StorageSettings
from mergemill.cli import output
from mergemill.cli.options import MODEL_SETTINGS, JsonOption, with_settings

app = typer.Typer(add_completion=False)


@app.command("browse")
@with_settings(StorageSettings, *MODEL_SETTINGS, "ca_bundle")
def browse(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the corpus.")],
    page: Annotated[str, typer.Argument(metavar="PAGE", help="Id or address of the page.")],
    query: Annotated[
        str, typer.Argument(metavar="[QUERY]", show_default=False, help="Show only the passages that fit this best.")
    ] = "",
    *,
    passages: Annotated[int, typer.Option("--passages", min=1, max=100, metavar="N", help="Most passages.")] = 5,
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Show a page of a corpus, or the passages of it that fit a query best, verbatim.

    With --llm and --model, an extract of the model followed by its quotes.

    Example: mergemill explore browse handbook releases.md "date of the first release"
    """
    from mergemill.explore.corpora import extract_passages, open_named_corpus  # noqa: PLC0415 - not for a wrong option

    corpus = open_named_corpus(name, settings.storage)
    opened = corpus.find_page(page)
    if opened is None:
        raise InputError(f"the corpus {name} has no page {page}", advice=f"mergemill explore search {name} QUERY")
    if query and settings.llm.url != OFF:
        texts = extract_passages(name, page, query, settings)
    else:
        texts = corpus.find_passages(opened, query, passages) if query else [opened.text]
    if as_json:
        output.print_json({**opened.to_json(), "text": None, "passages": texts} if query else opened.to_json())
        return
    output.print_fields(
        (field, value)
        for field, value in (("title", opened.title), ("url", opened.url), ("license", opened.license))
        if value
    )
    output.print_text("\n" + "\n\n".join(texts))
