"""`mergemill bundle`: bundles on their own, without the database that they were exported from."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from core.config import Settings
from core.errors import InputError, Transient, UsageError
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.bundles.certificates import print_certificates
from mergemill.cli.commands import COMMANDS
from mergemill.cli.options import CERTIFY_SETTINGS, JsonOption, split_words, with_settings
from taskdb.records import Stage

FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", readable=False, help="Folder of an exported bundle.")]

app = typer.Typer(help=COMMANDS["bundle"].summary, add_completion=False)


@app.command("verify")
def verify_bundle(folder: FolderArgument, as_json: JsonOption = False) -> None:
    """Check hashes, records and rows of a bundle; needs neither engine nor database.

    Problems end it with exit code 3.

    Example: mergemill bundle verify bundle-harbor
    """
    from mergemill.bundles.contents import check_bundle  # noqa: PLC0415 - only this command needs the exporters

    check = check_bundle(folder)
    if as_json:
        output.print_json(asdict(check))
    else:
        content = f"{format_count(check.tasks, 'task')}, {check.format}, manifest {check.manifest_sha256[:16]}"
        output.print_text(f"{check.bundle}: {'sound' if check.ok else 'not sound'} ({content})")
        for problem in check.problems:
            output.print_text(problem)
    if not check.ok:
        raise InputError(f"{folder} has {format_count(len(check.problems), 'problem')}")


@app.command("certify")
@with_settings(*CERTIFY_SETTINGS)
def certify_bundle(
    folder: FolderArgument,
    only: Annotated[str | None, typer.Option("--only", metavar="NAME[,NAME]", help="Certify only these tasks.")] = None,
    as_json: JsonOption = False,
    *,
    settings: Settings,
) -> None:
    """Grade gold, empty and forged submissions of every task of a bundle, from the bundle's own files.

    Images come from the engine or from the registry that the bundle names. A task that is not certified ends it with
    exit code 3.

    Example: mergemill bundle certify bundle-harbor --json
    """
    print_certificates(folder, split_words(only), settings, as_json=as_json)


@app.command("import")
@with_settings(StorageSettings, "sandbox", "allow_untrusted_local", "clones", "limit", "since", "until")
def import_bundle(
    path: Annotated[
        Path,
        typer.Argument(metavar="FILE|DIR", readable=False, help="A bundle of mergemill, or a task set in the format."),
    ],
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            show_default=False,
            help="Format of a foreign set: swebench, swe-smith, multi-swe-bench, swe-rebench, r2e-gym or harbor.",
        ),
    ] = None,
    as_json: JsonOption = False,
    *,
    settings: Settings,
) -> None:
    """Add the tasks of a bundle or of a foreign task set to the database.

    Tasks of a bundle of mergemill keep their ids, with their records, artifacts and base trees; images that it holds
    are loaded into the engine. Rows of a foreign set are tasks at once, as they were published (--status imported), and
    changes, whose environments `mergemill run` builds and verifies once there are clones.

    Example: mergemill bundle import bundle-harbor --db other.db
    """
    from mergemill.bundles.bundle_import import is_own_bundle  # noqa: PLC0415 - only this command

    if is_own_bundle(path):
        _import_tasks(path, settings, as_json=as_json)
    elif format_name is None:
        if path.is_dir() or not path.exists():
            raise InputError(f"{path} holds no manifest.json of mergemill", advice="a foreign set needs --format")
        raise UsageError(f"{path} is no bundle of mergemill", advice="a foreign set needs --format")
    else:
        _import_foreign_rows(path, format_name, settings, as_json=as_json)


def _import_tasks(path: Path, settings: Settings, *, as_json: bool) -> None:
    from mergemill.bundles.bundle_import import import_bundle as import_tasks  # noqa: PLC0415 - as above
    from mergemill.bundles.contents import ImagePlace  # noqa: PLC0415 - only this command

    results = []
    for result in import_tasks(path, settings):
        results.append(result)
        if as_json:
            output.print_json(asdict(result))
    if not as_json:
        n_new = sum(result.new for result in results)
        output.print_text(f"{format_count(len(results), 'task')} in {path}, {n_new} new")
    counts = Counter(result.image for result in results)
    if n_loaded := counts[ImagePlace.BUNDLE]:
        output.print_note(f"images of {format_count(n_loaded, 'task')} were loaded from the bundle")
    if n_missing := counts[ImagePlace.MISSING]:
        advice = "export --with-images or --push puts them into the bundle or a registry"
        missing = "is missing: neither the engine nor the bundle nor a registry has it"
        output.print_note(f"the image of {format_count(n_missing, 'task')} {missing} ({advice})")
    if n_unknown := counts[ImagePlace.UNKNOWN]:
        output.print_note(f"no engine answers: the images of {format_count(n_unknown, 'task')} were not loaded")


def _store_published_tasks(
    names: Sequence[str], source: str, settings: Settings, exit_code: int, *, as_json: bool
) -> int:
    """Store imported rows as tasks, name the repositories that they wait for, and return the exit code of the import.

    A clone that cannot be made keeps nothing out of the database, so that mining without it is no failure.
    """
    from mergemill.bundles.foreign_import import locate_imports  # noqa: PLC0415 - only this command
    from mergemill.bundles.published_tasks import store_published_tasks  # noqa: PLC0415 - only this command
    from mergemill.execution.services import make_services  # noqa: PLC0415 - only this command
    from taskdb.store import Store  # noqa: PLC0415 - only this command

    services = make_services(settings, engine=False)
    with Store.open(settings.storage.db, create=True, writes=True) as store:
        imports = locate_imports(settings.storage)
        waiting = store_published_tasks(store, imports, names, services, source=source)
    for repo, number in sorted(waiting.items()):
        if as_json:
            output.print_json({"event": "waiting", "repo": repo, "rows": number})
    if waiting and not as_json:
        shown = ", ".join(sorted(waiting)[:SHOWN_REPOSITORIES])
        more = len(waiting) - SHOWN_REPOSITORIES
        others = f" and {format_count(more, 'other repository', 'other repositories')}" if more > 0 else ""
        output.print_note(f"{format_count(waiting.total(), 'row')} wait for a clone of {shown}{others}")
    return 0 if waiting and exit_code == Transient.exit_code else exit_code


SHOWN_REPOSITORIES = 10
"""Repositories that are named for people; `mergemill sql` and --json name all."""


def _import_foreign_rows(path: Path, format_name: str, settings: Settings, *, as_json: bool) -> None:
    from mergemill.bundles.foreign_import import import_rows, locate_imports  # noqa: PLC0415 - only this command
    from mergemill.cli.pipeline.stage_command import make_scope, run_scope  # noqa: PLC0415 - only this command

    results = []
    for result in import_rows(path, format_name, settings):
        results.append(result)
        if as_json:
            output.print_json(asdict(result))
        elif result.problem:
            output.print_message(result.problem)
    names = sorted({result.name for result in results if result.problem is None})
    source = f"instances:{locate_imports(settings.storage)}"
    exit_code = 0
    if names:
        scope = make_scope(Stage.MINE, [source], only=None, kind=None, retry=None, settings=settings)
        exit_code = run_scope(Stage.MINE, replace(scope, only=names), settings, as_json=as_json)
        exit_code = _store_published_tasks(names, source, settings, exit_code, as_json=as_json)
    n_bad = sum(result.problem is not None and not result.waits for result in results)
    if not as_json:
        n_new = sum(result.new for result in results)
        output.print_text(f"{format_count(len(results), 'row')} in {path}, {n_new} new, {n_bad} unusable")
        if names:
            clones = f" --clones {shlex.quote(str(settings.source.clones))}" if settings.source.clones else ""
            output.print_text(f"build and verify them with: mergemill run {shlex.quote(source)}{clones}")
    if n_bad:
        raise InputError(f"{format_count(n_bad, 'row')} of {path} cannot be used")
    if n_waiting := sum(result.waits for result in results):
        advice = "run the same command again when their repositories can be reached"
        raise Transient(f"{format_count(n_waiting, 'row')} of {path} cannot be read without a clone", advice=advice)
    raise typer.Exit(exit_code)
