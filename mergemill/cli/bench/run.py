"""`mergemill bench run`: scaffolds and a model on a frozen set, k times."""

from __future__ import annotations

from typing import Annotated

import typer

from core.config import Settings
from core.errors import UsageError
from mergemill.bench.listing import summarize_run
from mergemill.cli import output
from mergemill.cli.agents.sample import MAX_ATTEMPTS, SAMPLE_SETTINGS, make_progress, parse_sampling
from mergemill.cli.bench.report import parse_date
from mergemill.cli.options import JsonOption, split_words, with_settings
from taskdb.store import Store

CHANGED = ("stop", "skip")

ChangedOption = Annotated[
    str,
    typer.Option(
        "--changed",
        metavar="|".join(CHANGED),
        help="Stop where subjects have changed since the set was frozen, or leave these out.",
    ),
]

app = typer.Typer(add_completion=False)


@app.command("run")
@with_settings(*SAMPLE_SETTINGS)
def run(
    bench_set: Annotated[str, typer.Argument(metavar="SET", help="Name or file of a set.")],
    *,
    scaffold: Annotated[
        list[str],
        typer.Option(
            "--scaffold",
            metavar="S[,S]",
            help="Scaffolds, or MODULE:CLASS; may be given several times. For a set with tasks and scenarios two with "
            "a plus, such as react+tools.",
        ),
    ],
    runs: Annotated[
        int, typer.Option("--runs", min=1, max=MAX_ATTEMPTS, metavar="K", help="Rollouts of each subject.")
    ] = 4,
    checkpoint: Annotated[
        str, typer.Option("--checkpoint", metavar="NAME", help="Names the weights behind the model's name.")
    ] = "",
    sampling: Annotated[
        list[str] | None,
        typer.Option("--sampling", metavar="NAME=VALUE", help="Sampling setting, such as temperature=0.7."),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", metavar="NAME|scripted", show_default=False, help="User of dialogues, as of `mergemill sample`."
        ),
    ] = None,
    cutoff: Annotated[
        str | None,
        typer.Option(
            "--cutoff",
            metavar="DATE",
            help="Reports have subjects of changes from before this date apart, for this run.",
        ),
    ] = None,
    changed: ChangedOption = CHANGED[0],
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Run scaffolds and a model on each subject of a set, k times.

    The limits of a rollout are those of the set. The same command continues, also after failures of infrastructure.

    Example: mergemill bench run review-1 --scaffold react --model M --upstream http://localhost:8000/v1 --runs 4
    """
    # A wrong option is reported without loading the samplers.
    from mergemill.bench.running import BenchRequest, run_bench  # noqa: PLC0415
    from mergemill.bench.sets import open_set  # noqa: PLC0415

    words = tuple(dict.fromkeys(split_words(scaffold)))
    if not words:
        raise UsageError("--scaffold names none", advice="such as --scaffold react,codex")
    parse_changed(changed)
    date = parse_date(cutoff)
    options = parse_sampling(sampling or ())
    if runs > 1 and options.get("temperature") == 0:
        output.print_note(f"warning: {runs} runs at temperature 0 are likely to be equal, and count once then")
    with Store.open(settings.storage.db, create=False, writes=True) as store:
        opened = open_set(store, bench_set)
        request = BenchRequest(
            bench_set=opened,
            scaffolds=words,
            model=settings.llm.model or "",
            runs=runs,
            checkpoint=checkpoint,
            sampling=options,
            user=user or "",
            changed=changed,
            cutoff=date,
        )
        records, code = run_bench(store, request, settings, lambda: make_progress(as_json=as_json))
    for record in records:
        row = summarize_run(record, opened)
        if as_json:
            output.print_json({"event": "run", **row})
        else:
            output.print_text(f"{row['run']}: {row['rollouts']} of {row['planned']} rollouts ({record.id[:12]})")
    raise typer.Exit(code)


def parse_changed(word: str) -> bool:
    """Return whether changed subjects are left out.

    Raises:
        UsageError: the word is unknown.
    """
    if word not in CHANGED:
        raise UsageError(f"--changed: {word} is unknown", advice=f"one of {', '.join(CHANGED)}")
    return word == CHANGED[1]
