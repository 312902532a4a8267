"""Commands that read the database: tasks, sql, funnel, why. None needs an engine."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from mergemill.cli import output
from mergemill.cli.funnel import tell_funnel
from mergemill.cli.options import READING, Json, meant, with_filters, with_settings
from mergemill.cli.story import kinds_of, tell_story, verdict_of
from mergemill.config import Settings
from mergemill.errors import InputError, UsageError
from mergemill.services import artifacts_of
from taskdb import queries, readonly, yields
from taskdb.attempts import conversation_of
from taskdb.material import given_to_solver
from taskdb.queries import Filters
from taskdb.store import Store

Word = Annotated[str, typer.Argument(metavar="ID", help="An id, an unambiguous beginning of one, or a name.")]


class By(StrEnum):
    """What `funnel --by` counts by."""

    KIND = "kind"
    SIZE = "size"
    REPO = "repo"


BY: dict[By, Literal["change_kind", "size", "repo"]] = {By.KIND: "change_kind", By.SIZE: "size", By.REPO: "repo"}
SHOWN = ("name", "kind", "status", "repo", "n_fail_to_pass", "n_pass_to_pass", "created_at")
SAID = 4000
"""Characters of each message and result that are printed of a conversation."""
NONE = "no task matches; `mergemill funnel` shows how far changes came"

tasks = typer.Typer(help="Query the tasks.", no_args_is_help=False)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(tasks, name="tasks")
    app.command()(sql)
    app.command()(funnel)
    app.command()(why)


@tasks.command("list")
@with_settings(*READING)
@with_filters
def list_tasks(
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="At most this many.")] = None,
    as_json: Json = False,
    *,
    settings: Settings,
    filters: Filters,
) -> None:
    """List tasks, newest change first."""
    with Store.open(settings.db, create=False) as store:
        output.rows(queries.list_tasks(store, meant(filters, settings), limit), SHOWN, as_lines=as_json, nothing=NONE)


@tasks.command("search")
@with_settings(*READING)
@with_filters
def search_tasks(
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="Words that must all be there.")],
    as_json: Json = False,
    *,
    settings: Settings,
    filters: Filters,
) -> None:
    """Find tasks by words in their name, repository and statement."""
    with Store.open(settings.db, create=False) as store:
        found = queries.search_tasks(store, words, meant(filters, settings))
    output.rows(found, SHOWN, as_lines=as_json, nothing=NONE)


@tasks.command("stats")
@with_settings(*READING)
@with_filters
def stats(as_json: Json = False, *, settings: Settings, filters: Filters) -> None:
    """Count tasks by status, kind, language, repository and licence."""
    with Store.open(settings.db, create=False) as store:
        found = queries.stats(store, meant(filters, settings))
    if as_json:
        output.as_json(found)
    else:
        output.fields(found.items())


@tasks.command("yields")
@with_settings(*READING)
def task_yields(
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE...", show_default=False, help="Only of these sources.")
    ] = None,
    in_all: Annotated[bool, typer.Option("--total", help="A row for each kind instead of each change.")] = False,
    as_json: Json = False,
    *,
    settings: Settings,
) -> None:
    """Show which kinds of tasks each change gave, and why not the others."""
    with Store.open(settings.db, create=False) as store:
        found = (yields.by_kind if in_all else yields.by_change)(store, sources or ())
    nothing = "no kind of task was asked of any change; `mergemill run` makes tasks"
    columns = tuple(name for name in (found[0] if found else ()) if in_all or any(row[name] for row in found))
    output.rows(found, columns, as_lines=as_json, nothing=nothing)


@tasks.command("show")
@with_settings(*READING)
def show(task: Word, as_json: Json = False, *, settings: Settings) -> None:
    """Show one task: statement, patches, tests, image, where it comes from."""
    with Store.open(settings.db, create=False) as store:
        found = queries.show_task(store, artifacts_of(settings), queries.resolve_task(store, task))
    if as_json:
        output.as_json(found)
        return
    found["tags"] = kinds_of(found["tags"])
    found["verdict"] = verdict_of(found["verdict"])
    long = (
        "problem_statement",
        "hints",
        "patch",
        "test_patch",
        "setup_patch",
        "FAIL_TO_PASS",
        "PASS_TO_PASS",
        "how_failed",
    )
    output.fields((name, value) for name, value in found.items() if name not in long)
    for name in ("problem_statement", "hints", "patch", "test_patch", "setup_patch"):
        if found[name]:
            output.text(f"\n--- {name}\n{found[name]}")
    how = found["how_failed"]
    output.text("\n--- FAIL_TO_PASS\n" + "\n".join(f"{test}  ({how[test]})" for test in found["FAIL_TO_PASS"]))
    output.text("\n--- PASS_TO_PASS\n" + "\n".join(found["PASS_TO_PASS"]))


@tasks.command("material")
@with_settings(*READING)
def material(
    task: Word,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="A new or empty folder.")],
    *,
    settings: Settings,
) -> None:
    """Write what the solver is given and no image holds: the statement, and of a review the files and the diff."""
    with Store.open(settings.db, create=False) as store:
        found = queries.resolve_task(store, task)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is not an empty folder", advice="choose another --out")
    given = given_to_solver(found, artifacts_of(settings))
    for path, content in given.items():
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode(errors="surrogateescape"))
    output.text(f"{len(given)} files in {out}")


@with_settings(*READING)
def sql(
    statement: Annotated[str, typer.Argument(metavar="SELECT", help="One SELECT over the views of docs/query.md.")],
    as_json: Json = False,
    *,
    settings: Settings,
) -> None:
    """Ask the database in SQL, read-only."""
    with Store.open(settings.db, create=False) as store:
        found = readonly.query(store, statement)
        output.rows(found, (), as_lines=as_json, nothing="no rows")


@with_settings(*READING)
def funnel(
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE...", show_default=False, help="Only of these sources.")
    ] = None,
    repo: Annotated[str | None, typer.Option("--repo", help="Only of this repository, OWNER/NAME.")] = None,
    by: Annotated[By | None, typer.Option("--by", help="A row for each kind of change, size or repository.")] = None,
    as_json: Json = False,
    *,
    settings: Settings,
) -> None:
    """Show how many changes came how far, and why the rest did not."""
    from miner.sources import canonical  # noqa: PLC0415 - only this command needs the miner

    named = [canonical(source, settings.store_dir / "clones") for source in sources or ()]
    if by:
        if repo:
            raise UsageError("--by and --repo exclude each other")
        with Store.open(settings.db, create=False) as store:
            output.rows(queries.funnel_by(store, BY[by], named), (), as_lines=as_json, nothing="nothing mined")
        return
    with Store.open(settings.db, create=False) as store:
        found = queries.funnel(store, named, repo)
        such_as = queries.examples(store, named, repo)
    if as_json:
        for row in found:
            output.as_json(row)
    else:
        tell_funnel(found, such_as)


@with_settings(*READING)
def why(
    change: Word,
    log: Annotated[bool, typer.Option("--log", help="Print the log of the rejection instead.")] = False,
    conversation: Annotated[
        bool, typer.Option("--conversation", help="Print instead what a model said to mend its build.")
    ] = False,
    as_json: Json = False,
    *,
    settings: Settings,
) -> None:
    """Tell one change's whole story: every stage, attempt, verdict, reason and second."""
    with Store.open(settings.db, create=False) as store:
        found = queries.resolve_change(store, change)
        story = queries.why(store, found)
        kept = queries.log_of(store, found)
        said = conversation_of(store, found)
    if log:
        if kept is None:
            raise InputError(f"{story['name']} has no log of a rejection")
        output.text(artifacts_of(settings).text(kept))
    elif conversation:
        _tell_conversation(story["name"], said, settings)
    elif as_json:
        output.as_json(story)
    else:
        tell_story(story, has_log=kept is not None)
        if said is not None:
            output.text(f"said: mergemill why {story['name']} --conversation")


def _tell_conversation(name: str, said: str | None, settings: Settings) -> None:
    from builders.agent.transcript import Transcript  # noqa: PLC0415 - few ask for one

    if said is None:
        raise InputError(f"no model was asked about {name}")
    output.text(Transcript.from_bytes(artifacts_of(settings).get(said)).readable(shown=SAID))
