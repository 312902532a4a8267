"""Commands that use tasks and engines: export, grade, doctor."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from mergemill.cli import output
from mergemill.cli.options import (
    GITHUB,
    GRADING,
    IMAGES,
    MODEL,
    READING,
    Json,
    Status,
    meant,
    submission_of,
    with_filters,
    with_settings,
    words,
)
from mergemill.config import Settings
from mergemill.errors import InputError, MachineError, Transient, UsageError
from mergemill.images.copies import copies_of
from mergemill.images.fetching import fetching
from mergemill.services import make_services
from taskdb import families, queries
from taskdb.image_queries import copies
from taskdb.queries import Filters
from taskdb.records import Task, to_json
from taskdb.store import Store

Named = Annotated[str, typer.Argument(metavar="TASK", help="An id, an unambiguous beginning of one, or a name.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(export)
    app.command()(grade)
    app.command()(doctor)


@with_settings(*READING, "clones")
@with_filters
def export(
    formats: Annotated[str, typer.Option("--format", metavar="F", help="swebench or harbor.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write.")],
    split: Annotated[
        str | None,
        typer.Option(
            "--split", metavar="NAME=SHARE[,...]", help="Several bundles, DIR/NAME each; no repository on two sides."
        ),
    ] = None,
    as_json: Json = False,
    *,
    settings: Settings,
    filters: Filters,
) -> None:
    """Write tasks as a bundle for others. Without --status only certified tasks leave the house."""
    import exporters  # noqa: PLC0415 - only this command needs it

    services = make_services(settings, engine=False)
    filters = replace(meant(filters, settings), status=filters.status or Status.CERTIFIED)
    with Store.open(settings.db, create=False) as store:
        chosen = queries.load_tasks(store, filters)
        _one_of_each_name([task for task, _ in chosen])
        certificates = {task.id: certificate for task, certificate in chosen if certificate}
        tasks = [task for task, _ in chosen]
        registry = copies_of(tasks, certificates, copies(store))
        for folder, side in _sides(tasks, out, split):
            bundle = exporters.export(formats, side, certificates, folder, services, registry=registry)
            store.add(bundle)
            if left := len(side) - len(bundle.tasks):
                output.tell(f"{left} tasks are left out: they are graded by more than lists of tests")
            if as_json:
                output.as_json(to_json(bundle))
            else:
                told = f"({formats}, manifest {bundle.manifest_sha256[:16]})"
                output.text(f"{len(bundle.tasks)} tasks in {bundle.out} {told}")


def _sides(tasks: Sequence[Task], out: Path, wanted: str | None) -> list[tuple[Path, Sequence[Task]]]:
    """The folders to write, each with its tasks; a side that no family falls on is not written.

    Raises:
        UsageError: the shares are none, or do not sum to 1.
    """
    if wanted is None:
        return [(out, tasks)]
    named = [word.partition("=") for word in words(wanted)]
    try:
        shares = [float(share) for _, _, share in named]
    except ValueError:
        shares = []
    if not shares or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6 or any("/" in name for name, _, _ in named):
        raise UsageError(f"--split: {wanted!r} names no shares that sum to 1", advice="such as train=0.9,test=0.1")
    sides = zip((name for name, _, _ in named), families.split(tasks, shares), strict=True)
    return [(out / name, side) for name, side in sides if side]


def _one_of_each_name(chosen: list[Task]) -> None:
    """Raises InputError when two tasks have one name: no format could tell them apart."""
    sources: dict[str, list[str]] = {}
    for task in chosen:
        sources.setdefault(task.name, []).append(task.source)
    twice = next(((name, found) for name, found in sources.items() if len(found) > 1), None)
    if twice:
        advice = "choose one with --source"
        raise InputError(f"{len(twice[1])} tasks are named {twice[0]}: of {', '.join(twice[1])}", advice=advice)


@with_settings(*GRADING)
def grade(
    task: Named,
    *,
    patch: Annotated[Path | None, typer.Option("--patch", metavar="FILE", help="A patch to grade.")] = None,
    tests: Annotated[Path | None, typer.Option("--tests", metavar="FILE", help="A patch that writes tests.")] = None,
    review: Annotated[Path | None, typer.Option("--review", metavar="FILE", help="Findings as JSON.")] = None,
    gold: Annotated[bool, typer.Option("--gold", help="Grade the task's own solution.")] = False,
    noop: Annotated[bool, typer.Option("--noop", help="Grade the empty submission.")] = False,
    as_json: Json = False,
    settings: Settings,
) -> None:
    """Say what a submission is worth: it alone travels, into a fresh container without network."""
    given = {word: file for word, file in (("patch", patch), ("tests", tests), ("review", review)) if file}
    if len(given) + gold + noop != 1:
        raise UsageError("grade takes one of --patch FILE, --tests FILE, --review FILE, --gold and --noop")
    content = b"".join(submission_of(word, file) for word, file in given.items())
    with Store.open(settings.db, create=False) as store:
        found = queries.resolve_task(store, task)
        import verifiers  # noqa: PLC0415 - after what can be refused without it

        reward = verifiers.reward_of(found)
        if given and reward.submission not in given:
            raise UsageError(f"{found.name} is a {found.kind} task", advice=f"it takes --{reward.submission} FILE")
        services = fetching(make_services(settings, engine=bool(found.image)), store)
        content = reward.gold(found, services) if gold else content
        with services.sandbox.holding():
            if found.image and services.sandbox.image(found.image) is None:
                advice = "`mergemill images push` where it is; then it is fetched"
                raise InputError(f"the image {found.image} is not here, and no registry has it", advice=advice)
            score = verifiers.grade(found, services, content)
        store.add_score(score, found.id, hashlib.sha256(content).hexdigest())
    told = to_json(score)
    if not score.parts:  # of a yes or no there are none to tell
        del told["parts"]
    if as_json:
        output.as_json(told)
    else:
        output.fields(told.items())
    if score.infrastructure_error:
        raise Transient(f"not scored: {score.infrastructure_error}")


# ------------------------------------------------------------------------------------------------------ doctor


@with_settings(*IMAGES, *GITHUB, *MODEL, "clones")
def doctor(as_json: Json = False, *, settings: Settings) -> None:
    """Say what is missing on this machine, and the command that fixes it."""
    from mergemill.doctor import checks  # noqa: PLC0415 - only this command needs it

    found = [asdict(check) for check in checks(settings)]
    output.rows(found, (), as_lines=as_json, nothing="")
    if not all(check["ok"] for check in found):
        raise MachineError("something is to be mended; see above")
