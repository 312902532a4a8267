"""`mergemill explore corpus`: pages are indexed under a name."""

from __future__ import annotations

from typing import Annotated

import typer

from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.options import JsonOption, with_settings

app = typer.Typer(add_completion=False)


@app.command("corpus")
@with_settings(StorageSettings)
def corpus_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the corpus.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="DIR|FILE.jsonl|changes",
            help="Folder of HTML, Markdown, text and rows; rows of pages; or the mined changes of the database.",
        ),
    ],
    *,
    language: Annotated[
        str, typer.Option("--language", metavar="L", help="Language of the words: name of a Snowball stemmer.")
    ] = "english",
    license_id: Annotated[
        str, typer.Option("--license", metavar="SPDX", help="Licence of pages that name none themselves.")
    ] = "NOASSERTION",
    as_json: JsonOption = False,
    storage: StorageSettings,
) -> None:
    """Index a folder, rows of pages, or the mined changes of the database as a corpus.

    Files and rows without a page are named, the others are indexed.

    Example: mergemill explore corpus handbook docs/ --license CC-BY-4.0
    """
    from mergemill.explore.corpora import describe_corpus, index_corpus  # noqa: PLC0415 - a wrong option needs none

    corpus, problems = index_corpus(name, source, storage, language=language, license_id=license_id)
    for problem in problems:
        output.print_note(problem.format_line())
    if as_json:
        output.print_json(describe_corpus(corpus))
        return
    left_out = f", {corpus.n_left_out} left out" if corpus.n_left_out else ""
    licenses = ", ".join(f"{count.license} {count.pages}" for count in corpus.licenses)
    output.print_text(f"corpus {corpus.name}: {format_count(corpus.n_pages, 'page')}{left_out}")
    output.print_text(f"licences: {licenses}")
    output.print_text(f"pages {corpus.pages_sha256[:16]}, index {corpus.index_sha256[:16]}")
