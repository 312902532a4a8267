"""`images`: base and environment images, their room on the disk, their copies in registries."""

from __future__ import annotations

import logging
from dataclasses import asdict, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError

from mergemill.cli import output
from mergemill.cli.options import IMAGES, READING, Json, Status, meant, with_filters, with_settings
from mergemill.config import Settings
from mergemill.errors import InputError, MergemillError, Transient, UsageError
from mergemill.services import make_services
from taskdb import image_queries, queries
from taskdb.queries import Filters
from taskdb.schema import is_there
from taskdb.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mergemill.images.copies import Moved
    from mergemill.images.listing import Image
    from taskdb.image_queries import Needs
    from taskdb.images import ImageCopy

images = typer.Typer(help="Base and environment images.", no_args_is_help=False)
TABLE = ("kind", "name", "digest", "own_mb", "shared_mb", "last_used", "tasks", "registry")
ONE_MB = 1_000_000


class ImageKind(StrEnum):
    """Kinds of images, from the bottom up."""

    BASE = "base"
    DEPS = "deps"
    ENV = "env"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(images, name="images")


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
    from builders import bases  # noqa: PLC0415 - only this command needs them

    services = make_services(settings, engine=True)
    made = {info.name for info in bases.bootstrap(language, tuple(versions) if versions else None, services)}
    found = [image for image in _described(settings, services.sandbox) if image.name in made]
    _list(found, as_json=as_json, nothing="")


@images.command("list")
@with_settings(*READING)
def list_images(
    kind: Annotated[ImageKind | None, typer.Option("--kind", help="Only of this kind.")] = None,
    needed: Annotated[
        bool | None,
        typer.Option("--needed/--not-needed", help="Only those that certified tasks need, or that none needs."),
    ] = None,
    copied: Annotated[
        bool | None,
        typer.Option("--copied/--not-copied", help="Only those of which a registry has a copy, or none has."),
    ] = None,
    as_json: Json = False,
    *,
    settings: Settings,
) -> None:
    """List mergemill's images on this engine: what they take, when they were used, who needs them."""
    chosen = [
        image
        for image in _described(settings, make_services(settings, engine=True).sandbox)
        if (kind is None or image.kind == kind)
        and (needed is None or bool(image.tasks) is needed)
        and (copied is None or (image.registry is not None) is copied)
    ]
    _list(chosen, as_json=as_json)
    own = sum(image.own_bytes for image in chosen)
    _say(f"{len(chosen)} images with {own / ONE_MB:.0f} MB of their own")


@images.command("prune")
@with_settings(*READING)
def prune(
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="SIZE", help="Remove the least recently used until all take at most this."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also images this database does not know: leftovers, other databases'.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: Json = False,
    *,
    settings: Settings,
) -> None:
    """Remove images: those that no task and no waiting change needs, or as many as a budget asks for."""
    from mergemill.images import budget as budgets  # noqa: PLC0415 - only this command needs them
    from mergemill.images import copies, listing, pruning  # noqa: PLC0415
    from mergemill.images.ledger import Ledger, told  # noqa: PLC0415

    limit = _bytes(budget)
    sandbox = make_services(settings, engine=True).sandbox
    ledger = Ledger(settings.store_dir)
    used = ledger.all()
    needs, known_copies = _facts(settings, required=True)
    known = pruning.Known(
        needs=needs, copies=known_copies, ledger=ledger, everything=everything, budget=limit is not None
    )
    check = copies.Registries(sandbox).have
    done = pruning.prune(sandbox, known, limit=limit or 0, dry_run=dry_run, check=check)
    rows: list[dict[str, Any]] = [
        {
            "kind": listing.kind_of(image.name), "name": image.name, "digest": image.digest, "freed_bytes": freed,
            "last_used": told(used.get(image.name)),
        }
        for image, freed in done.removed
    ]  # fmt: skip
    shown = rows if as_json else [_readable(row, freed_mb=row["freed_bytes"]) for row in rows]
    nothing = "nothing to remove; --all also looks at images this database does not know"
    output.rows(shown, ("kind", "name", "digest", "freed_mb", "last_used"), as_lines=as_json, nothing=nothing)
    _tell_pruned(done.before - done.after, done.after, dry_run=dry_run)
    if limit is not None and done.after > limit:
        _say(f"still over the budget of {budgets.gigabytes(limit)}: {budgets.why_kept(done)}")


@images.command("push")
@with_settings(*READING)
@with_filters
def push(
    registry: Annotated[
        str, typer.Option("--registry", metavar="HOST/PREFIX", help="Where to, such as localhost:5000/tasks.")
    ],
    rebuilt: Annotated[
        bool, typer.Option("--rebuilt", help="Also images that were built anew since their task was certified.")
    ] = False,
    as_json: Json = False,
    *,
    settings: Settings,
    filters: Filters,
) -> None:
    """Push tasks' images to a registry and remember where they are. Without --status of certified tasks only."""
    from mergemill.images import copies  # noqa: PLC0415 - only these commands need them
    from taskdb.images import ImageCopy  # noqa: PLC0415

    registry = copies.checked_registry(registry)
    services = make_services(settings, engine=True)
    moved, troubles = [], []
    with Store.open(settings.db, create=False) as store:
        chosen = _wanted(store, settings, filters)
        for one, came in copies.push(services.sandbox, chosen, registry, services.clock, rebuilt=rebuilt):
            moved.append(one)
            if isinstance(came, ImageCopy):
                store.add(came)
            else:
                troubles.append(came)
            _tell_moved(one, as_json=as_json)
    _end(moved, troubles, as_json=as_json)


@images.command("pull")
@with_settings(*READING)
@with_filters
def pull(as_json: Json = False, *, settings: Settings, filters: Filters) -> None:
    """Bring tasks' images here from the registries they were pushed to. Without --status of certified tasks only."""
    from mergemill.images import copies  # noqa: PLC0415 - only these commands need them

    sandbox = make_services(settings, engine=True).sandbox
    moved, troubles = [], []
    with Store.open(settings.db, create=False) as store:
        known = image_queries.copies(store)
        for one, trouble in copies.pull(sandbox, _wanted(store, settings, filters), known):
            moved.append(one)
            troubles += [trouble] if trouble else []
            _tell_moved(one, as_json=as_json)
    _end(moved, troubles, as_json=as_json)


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
    from mergemill.images.fetching import fetching  # noqa: PLC0415 - only this command needs it

    with Store.open(settings.db, create=False) as store:
        if tasks:
            chosen = [queries.resolve_task(store, word) for word in tasks]
        else:
            chosen = [task for task, _ in queries.load_tasks(store, Filters(status=Status.CERTIFIED))]
        services = fetching(make_services(settings, engine=True), store)
    import verifiers  # noqa: PLC0415 - after what can be refused without it

    leaks = 0
    for task in chosen:
        with services.sandbox.holding():
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


# ------------------------------------------------------------------------------------------------ what they share


def _facts(settings: Settings, *, required: bool) -> tuple[Needs, Mapping[str, tuple[ImageCopy, ...]]]:
    """Who needs images and where copies are; nobody and nowhere when there is no database yet."""
    if not required and not is_there(settings.db):
        return image_queries.Needs(), {}
    with Store.open(settings.db, create=False) as store:
        return image_queries.needs(store), image_queries.copies(store)


def _described(settings: Settings, sandbox: Any) -> list[Image]:
    from mergemill.images import listing  # noqa: PLC0415 - only these commands need it
    from mergemill.images.ledger import Ledger  # noqa: PLC0415

    needs, known = _facts(settings, required=False)
    return listing.described(listing.ours(sandbox), needs, known, Ledger(settings.store_dir))


def _wanted(store: Store, settings: Settings, filters: Filters) -> list[Any]:
    from mergemill.images.copies import wanted  # noqa: PLC0415 - only these commands need it

    filters = replace(meant(filters, settings), status=filters.status or Status.CERTIFIED)
    if not (found := wanted(queries.load_tasks(store, filters))):
        raise InputError("there are no such tasks", advice="`mergemill tasks list` shows what there is")
    return found


def _bytes(size: str | None) -> int | None:
    """A size such as 50GB or 20GiB."""
    if size is None:
        return None
    try:
        found = TypeAdapter(ByteSize).validate_python(size)
    except ValidationError as error:
        raise UsageError(f"--budget: {size!r} is no size", advice="such as 50GB or 20GiB") from error
    if found < 0:
        raise UsageError("--budget: a size is not negative")
    return int(found)


def _readable(row: Mapping[str, Any], **sizes: int) -> dict[str, Any]:
    """A row for people: sizes in megabytes (10**6 bytes), ids short, several tasks as their number."""
    shown = dict(row) | {name: f"{size / ONE_MB:.1f}" for name, size in sizes.items()}
    tasks: tuple[str, ...] = row.get("tasks") or ()
    return shown | {
        "digest": str(row["digest"])[:19],
        "tasks": ", ".join(tasks[:1]) if len(tasks) < 2 else f"{len(tasks)} tasks",
    }


def _list(found: list[Image], *, as_json: bool, nothing: str = "there are none") -> None:
    rows = [image.row() for image in found]
    if not as_json:
        rows = [_readable(row, own_mb=row["own_bytes"], shared_mb=row["shared_bytes"]) for row in rows]
    output.rows(rows, TABLE, as_lines=as_json, nothing=nothing)


def _say(line: str) -> None:
    """A line for people, unless they want to hear nothing."""
    if logging.getLogger().isEnabledFor(logging.WARNING):
        output.tell(line)


def _tell_pruned(freed: int, left: int, *, dry_run: bool) -> None:
    from mergemill.images.budget import gigabytes  # noqa: PLC0415 - only this command needs it

    _say(f"{gigabytes(freed)} {'would be freed' if dry_run else 'freed'}, {gigabytes(left)} left")


def _tell_moved(one: Moved, *, as_json: bool) -> None:
    if as_json:
        output.as_json(one.row())
    else:
        output.text(f"{one.image}  {one.status}  {one.problem or one.registry or ''}".rstrip())


def _end(moved: list[Moved], troubles: list[MergemillError], *, as_json: bool) -> None:
    """What came of it, in a line; the worst trouble decides how the command ends."""
    counts = {status: sum(one.status == status for one in moved) for status in ("pushed", "pulled", "here", "failed")}
    if not as_json:
        _say(", ".join(f"{count} {status}" for status, count in counts.items() if count))
    if worst := next((e for e in troubles if isinstance(e, Transient)), troubles[0] if troubles else None):
        raise type(worst)(f"{len(troubles)} images failed, such as: {worst}", advice=worst.advice)
