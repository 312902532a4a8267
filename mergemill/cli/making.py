"""Commands that use tasks and engines: export, grade, images, doctor."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    patch_of,
    with_filters,
    with_settings,
)
from mergemill.config import Settings
from mergemill.errors import InputError, MachineError, Transient, UsageError
from mergemill.services import artifacts_of, make_services
from taskdb import queries
from taskdb.queries import Filters
from taskdb.records import Task, to_json
from taskdb.store import Store

if TYPE_CHECKING:
    from mergemill.images import Image

images = typer.Typer(help="Base and environment images.", no_args_is_help=False)
Named = Annotated[str, typer.Argument(metavar="TASK", help="An id, an unambiguous beginning of one, or a name.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(export)
    app.command()(grade)
    app.add_typer(images, name="images")
    app.command()(doctor)


@with_settings(*READING, "clones")
@with_filters
def export(
    formats: Annotated[str, typer.Option("--format", metavar="F", help="swebench or harbor.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write.")],
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
        bundle = exporters.export(formats, [task for task, _ in chosen], certificates, out, services)
        store.add(bundle)
    if as_json:
        output.as_json(to_json(bundle))
    else:
        output.text(f"{len(bundle.tasks)} tasks in {bundle.out} ({formats}, manifest {bundle.manifest_sha256[:16]})")


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
    patch: Annotated[Path | None, typer.Option("--patch", metavar="FILE", help="A patch to grade.")] = None,
    gold: Annotated[bool, typer.Option("--gold", help="Grade the task's own solution.")] = False,
    noop: Annotated[bool, typer.Option("--noop", help="Grade the empty submission.")] = False,
    as_json: Json = False,
    *,
    settings: Settings,
) -> None:
    """Say what a submission is worth: its patch alone travels, into a fresh container without network."""
    if (patch is not None) + gold + noop != 1:
        raise UsageError("grade takes one of --patch FILE, --gold and --noop")
    content = patch_of(patch) if patch else b""
    with Store.open(settings.db, create=False) as store:
        found = queries.resolve_task(store, task)
        content = artifacts_of(settings).get(found.gold_patch) if gold else content
        services = make_services(settings, engine=True)
        import verifiers  # noqa: PLC0415 - after what can be refused without it

        score = verifiers.grade(found, services, content)
        store.add_score(score, found.id, hashlib.sha256(content).hexdigest())
    if as_json:
        output.as_json(to_json(score))
    else:
        output.fields(to_json(score).items())
    if score.infrastructure_error:
        raise Transient(f"not scored: {score.infrastructure_error}")


# ------------------------------------------------------------------------------------------------------ images


@images.command("bootstrap")
@with_settings(*IMAGES)
def bootstrap(
    versions: Annotated[
        list[str] | None, typer.Argument(metavar="VERSION...", show_default=False, help="Such as 3.11; else the usual.")
    ] = None,
    language: Annotated[str, typer.Option("--language", metavar="L", help="Language of the bases.")] = "python",
    as_json: Json = False,
    *,
    settings: Settings,
) -> None:
    """Make base images, where they are missing."""
    from builders import bases  # noqa: PLC0415 - only these commands need them
    from mergemill.images import described  # noqa: PLC0415

    services = make_services(settings, engine=True)
    made = bases.bootstrap(language, tuple(versions) if versions else None, services)
    _list([described(info) for info in made], as_json=as_json)


@images.command("list")
@with_settings(*READING)
def list_images(as_json: Json = False, *, settings: Settings) -> None:
    """List mergemill's images on this engine."""
    from mergemill.images import ours  # noqa: PLC0415

    _list(ours(make_services(settings, engine=True).sandbox), as_json=as_json)


@images.command("prune")
@with_settings(*READING)
def prune(
    everything: Annotated[
        bool, typer.Option("--all", help="Also images this database does not know: leftovers, other databases'.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: Json = False,
    *,
    settings: Settings,
) -> None:
    """Remove environment images that no task and no waiting change of this database needs. Bases stay."""
    from mergemill.images import remove, unused  # noqa: PLC0415

    sandbox = make_services(settings, engine=True).sandbox
    with Store.open(settings.db, create=False) as store:
        found = unused(sandbox, store, everything=everything)
    gone = found if dry_run else remove(sandbox, found)
    _list(gone, as_json=as_json, nothing="nothing to remove; --all also looks at images this database does not know")


@images.command("audit")
@with_settings(*IMAGES)
def audit(
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="TASK...", show_default=False, help="Tasks; all certified when none.")
    ] = None,
    as_json: Json = False,
    *,
    settings: Settings,
) -> None:
    """Read every layer of tasks' images for what an agent must not find: gold patch, tests, later commits."""
    with Store.open(settings.db, create=False) as store:
        if tasks:
            chosen = [queries.resolve_task(store, word) for word in tasks]
        else:
            chosen = [task for task, _ in queries.load_tasks(store, Filters(status=Status.CERTIFIED))]
    services = make_services(settings, engine=True)
    import verifiers  # noqa: PLC0415 - after what can be refused without it

    leaks = 0
    for task in chosen:
        found = [asdict(finding) for finding in verifiers.audit_image(task, services)]
        leaks += len(found)
        if as_json:
            output.as_json({"task": task.name, "image": task.image, "clean": not found, "findings": found})
        else:
            verdict = f"{len(found)} findings" if found else "clean, nothing of gold patch, tests or later commits"
            output.text(f"{task.name}: {verdict} ({task.image})")
            output.rows(found, ("path", "what", "layer"), as_lines=False, nothing="") if found else None
    if leaks:
        raise InputError(f"{leaks} findings: an agent could read the future in these images")


def _list(found: list[Image], *, as_json: bool, nothing: str = "there are none") -> None:
    rows = [image.row() if as_json else image.row() | {"digest": image.digest[:19]} for image in found]
    output.rows(rows, ("name", "layer", "layer_mb", "digest"), as_lines=as_json, nothing=nothing)


# ------------------------------------------------------------------------------------------------------ doctor


@with_settings(*IMAGES, *GITHUB, *MODEL, "clones")
def doctor(as_json: Json = False, *, settings: Settings) -> None:
    """Say what is missing on this machine, and the command that fixes it."""
    from mergemill.doctor import checks  # noqa: PLC0415 - only this command needs it

    found = [asdict(check) for check in checks(settings)]
    output.rows(found, (), as_lines=as_json, nothing="")
    if not all(check["ok"] for check in found):
        raise MachineError("something is to be mended; see above")
