"""`mergemill images`: base and environment images, their disk use and their copies in registries."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError

from core.config import Settings
from core.errors import InputError, MergemillError, Transient, UsageError
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.commands import COMMANDS
from mergemill.cli.options import (
    IMAGE_SETTINGS,
    JsonOption,
    select_certified,
    with_filters,
    with_settings,
)
from taskdb.queries.task_filters import TaskFilters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mergemill.execution.images.copies import TransferResult
    from mergemill.execution.images.inventory import ImageSummary

TABLE_COLUMNS = ("kind", "name", "digest", "own_mb", "shared_mb", "last_used", "tasks", "registry")
PRUNED_COLUMNS = ("kind", "name", "digest", "freed_mb", "last_used")
ONE_MB = 1_000_000

app = typer.Typer(help=COMMANDS["images"].summary, add_completion=False)


class ImageKind(StrEnum):
    """Kinds of images, from the bottom layer up."""

    BASE = "base"
    DEPS = "deps"
    ENV = "env"


@app.command("bootstrap")
@with_settings(*IMAGE_SETTINGS)
def bootstrap_images(
    versions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VERSION...", show_default=False, help="Versions such as 3.11; default: the usual ones."
        ),
    ] = None,
    language: Annotated[
        str, typer.Option("--language", metavar="LANGUAGE", help="Language of the base images.")
    ] = "python",
    as_json: JsonOption = False,
    *,
    settings: Settings,
) -> None:
    """Make the base images that are missing.

    Example: mergemill images bootstrap 3.11 3.12
    """
    # A wrong option is reported without loading the builders.
    from mergemill.operations.images import bootstrap  # noqa: PLC0415

    _print_images(bootstrap(language, versions, settings), as_json=as_json, nothing="no image was made")


@app.command("programs")
@with_settings(*IMAGE_SETTINGS)
def manage_programs(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCAFFOLD...", show_default=False, help="Scaffolds; without any, list what is there."),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove them, or all, instead.")] = False,
    as_json: JsonOption = False,
    *,
    settings: Settings,
) -> None:
    """Install the programs of scaffolds into volumes of the engine, or list those.

    Example: mergemill images programs mini-swe-agent codex
    """
    from mergemill.agents.sampling.programs import install_programs, remove_programs  # noqa: PLC0415 - need no builders yet

    volumes = (remove_programs if remove else install_programs)(names or [], settings)
    nothing = "no program was removed" if remove else "no program is installed"
    output.print_rows([{"volume": name} for name in volumes], (), as_lines=as_json, nothing=nothing)


@app.command("list")
@with_settings(StorageSettings)
def list_images(
    kind: Annotated[ImageKind | None, typer.Option("--kind", help="List images of this kind.")] = None,
    needed: Annotated[
        bool | None,
        typer.Option("--needed/--not-needed", help="List images that certified tasks need, or that none needs."),
    ] = None,
    copied: Annotated[
        bool | None,
        typer.Option("--copied/--not-copied", help="List images of which a registry has a copy, or none has."),
    ] = None,
    as_json: JsonOption = False,
    *,
    settings: Settings,
) -> None:
    """List mergemill's images on this engine with size, last use, tasks and copy.

    Example: mergemill images list --kind env --not-copied
    """
    # A wrong option is reported without an engine.
    from mergemill.operations.images import describe_own_images  # noqa: PLC0415

    images = [
        image
        for image in describe_own_images(settings)
        if (kind is None or image.kind == kind)
        and (needed is None or bool(image.tasks) is needed)
        and (copied is None or (image.registry is not None) is copied)
    ]
    _print_images(images, as_json=as_json)
    own_bytes = sum(image.own_bytes for image in images)
    output.print_note(f"{format_count(len(images), 'image')} with {own_bytes / ONE_MB:.0f} MB of their own")


@app.command("prune")
@with_settings(StorageSettings)
def prune_images(
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="SIZE", help="Remove the least recently used until all take at most SIZE."),
    ] = None,
    include_unknown: Annotated[
        bool, typer.Option("--all", help="Remove images of other databases, and leftovers, too.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be removed and remove nothing.")] = False,
    as_json: JsonOption = False,
    *,
    settings: Settings,
) -> None:
    """Remove images that no task and no pending change needs, or as many as a budget requires.

    Example: mergemill images prune --budget 50GB --dry-run
    """
    # Only this command works with a budget.
    from mergemill.execution.images.budget import format_bytes, format_kept_reasons  # noqa: PLC0415
    from mergemill.operations.images import prune  # noqa: PLC0415

    limit = _parse_size(budget)
    result, removed = prune(settings, limit=limit, include_unknown=include_unknown, dry_run=dry_run)
    rows = removed if as_json else [_format_row(row, freed_mb=row["freed_bytes"]) for row in removed]
    nothing = "nothing to remove; --all includes images that this database does not list"
    output.print_rows(rows, PRUNED_COLUMNS, as_lines=as_json, nothing=nothing)
    freed = format_bytes(result.before - result.after)
    output.print_note(f"{freed} {'would be freed' if dry_run else 'freed'}, {format_bytes(result.after)} left")
    if limit is not None and result.after > limit:
        output.print_note(f"still over the budget of {format_bytes(limit)}: {format_kept_reasons(result)}")


@app.command("push")
@with_settings(StorageSettings)
@with_filters
def push_images(
    registry: Annotated[str, typer.Option("--registry", metavar="HOST/PREFIX", help="Push to this registry.")],
    rebuilt: Annotated[
        bool, typer.Option("--rebuilt", help="Push images that were rebuilt since their task was certified, too.")
    ] = False,
    as_json: JsonOption = False,
    *,
    settings: Settings,
    filters: TaskFilters,
) -> None:
    """Push the images of tasks to a registry and record the copies.

    Without --status the images of certified tasks are pushed.

    Example: mergemill images push --registry localhost:5000/tasks
    """
    # A wrong option is reported without an engine.
    from mergemill.operations.images import push  # noqa: PLC0415

    results, errors = [], []
    for result, error in push(registry, select_certified(filters, settings.storage), settings, rebuilt=rebuilt):
        results.append(result)
        errors += [error] if error else []
        _print_transfer(result, as_json=as_json)
    _finish_transfers(results, errors, as_json=as_json)


@app.command("pull")
@with_settings(StorageSettings)
@with_filters
def pull_images(as_json: JsonOption = False, *, settings: Settings, filters: TaskFilters) -> None:
    """Pull the images of tasks from the registries that have a copy.

    Without --status the images of certified tasks are pulled.

    Example: mergemill images pull --repo pallets/flask
    """
    # A wrong option is reported without an engine.
    from mergemill.operations.images import pull  # noqa: PLC0415

    results, errors = [], []
    for result, error in pull(select_certified(filters, settings.storage), settings):
        results.append(result)
        errors += [error] if error else []
        _print_transfer(result, as_json=as_json)
    _finish_transfers(results, errors, as_json=as_json)


@app.command("audit")
@with_settings(*IMAGE_SETTINGS)
def audit_images(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(metavar="TASK...", show_default=False, help="Names or ids of tasks; default: all certified."),
    ] = None,
    as_json: JsonOption = False,
    *,
    settings: Settings,
) -> None:
    """Search every layer of tasks' images for the gold patch, the tests and later commits.

    Example: mergemill images audit pallets__flask-5063.bugfix
    """
    # A wrong option is reported without an engine.
    from mergemill.operations.images import audit  # noqa: PLC0415

    n_findings = 0
    for task, leaks in audit(tasks or (), settings):
        findings = [asdict(leak) for leak in leaks]
        n_findings += len(findings)
        if as_json:
            output.print_json({"task": task.name, "image": task.image, "clean": not findings, "findings": findings})
            continue
        verdict = (
            format_count(len(findings), "finding")
            if findings
            else "clean, nothing of gold patch, tests or later commits"
        )
        output.print_text(f"{task.name}: {verdict} ({task.image})")
        if findings:
            output.print_rows(findings, ("path", "description", "layer"), as_lines=False, nothing="")
    if n_findings:
        raise InputError(f"{format_count(n_findings, 'finding')}: an agent could read the solution in these images")


# ----------------------------------------------------------------------------------------------------- formatting


def _parse_size(size: str | None) -> int | None:
    """Return the bytes of a size such as 50GB or 20GiB."""
    if size is None:
        return None
    try:
        n_bytes = TypeAdapter(ByteSize).validate_python(size)
    except ValidationError as error:
        raise UsageError(f"--budget: {size!r} is not a size", advice="such as 50GB or 20GiB") from error
    if n_bytes < 0:
        raise UsageError("--budget: a size is not negative")
    return int(n_bytes)


def _format_row(row: Mapping[str, Any], **sizes: int) -> dict[str, Any]:
    """Return a row for people: sizes in megabytes (10**6 bytes), short digests, several tasks as their number."""
    shown = dict(row) | {name: f"{size / ONE_MB:.1f}" for name, size in sizes.items()}
    tasks: tuple[str, ...] = row.get("tasks") or ()
    return shown | {
        "digest": str(row["digest"])[:19],
        "tasks": ", ".join(tasks[:1]) if len(tasks) < 2 else f"{len(tasks)} tasks",
    }


def _print_images(images: list[ImageSummary], *, as_json: bool, nothing: str = "no image matches") -> None:
    rows = [image.to_dict() for image in images]
    if not as_json:
        rows = [_format_row(row, own_mb=row["own_bytes"], shared_mb=row["shared_bytes"]) for row in rows]
    output.print_rows(rows, TABLE_COLUMNS, as_lines=as_json, nothing=nothing)


def _print_transfer(result: TransferResult, *, as_json: bool) -> None:
    if as_json:
        output.print_json(result.to_dict())
    else:
        output.print_text(f"{result.image}  {result.status}  {result.problem or result.registry or ''}".rstrip())


def _finish_transfers(results: list[TransferResult], errors: list[MergemillError], *, as_json: bool) -> None:
    """Print the counts; raise the most severe error, if any."""
    statuses = ("pushed", "pulled", "here", "failed")
    counts = {status: sum(result.status == status for result in results) for status in statuses}
    if not as_json:
        output.print_note(", ".join(f"{count} {status}" for status, count in counts.items() if count))
    if errors:
        worst = next((error for error in errors if isinstance(error, Transient)), errors[0])
        raise type(worst)(f"{format_count(len(errors), 'image')} failed, such as: {worst}", advice=worst.advice)
