"""`audit`: whether tasks and bundles can be trusted."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mergemill.cli import output
from mergemill.cli.options import GRADING, Json, with_settings
from mergemill.config import Settings
from mergemill.errors import InputError
from mergemill.images.fetching import fetching
from mergemill.services import make_services
from taskdb import queries
from taskdb.records import Task
from taskdb.store import Store

if TYPE_CHECKING:
    from mergemill.audit import BundleAudit, TaskAudit

Words = Annotated[
    list[str],
    typer.Argument(metavar="TASK|BUNDLE...", help="Ids, beginnings of them or names; folders of bundles."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(audit)


@with_settings(*GRADING, "clones")
def audit(words: Words, as_json: Json = False, *, settings: Settings) -> None:
    """Look for leaks in image and statement, try submissions that must earn nothing, count what guards the tests."""
    from mergemill.audit import audit_bundle, audit_files, audit_task, bundle_of  # noqa: PLC0415 - only here

    chosen = _resolved([(word, bundle_of(word)) for word in words], settings)
    findings = 0
    for files in (audit_files(one) for one in chosen if isinstance(one, Path)):
        _tell_bundle(files, as_json=as_json)
        findings += len(files.findings)
    if findings:
        raise InputError(f"{findings} findings: not the files that the manifest names; no task was looked at")
    services = make_services(settings, engine=True)
    if any(isinstance(one, Task) for one in chosen):
        with Store.open(settings.db, create=False) as store:
            services = fetching(services, store)
    for one in chosen:
        for audited in [audit_task(one, services)] if isinstance(one, Task) else audit_bundle(one, services):
            _tell_task(audited, as_json=as_json)
            findings += len(audited.findings)
    if findings:
        raise InputError(f"{findings} findings: see above, and docs/grade.md on what they mean")


def _resolved(words: list[tuple[str, Path | None]], settings: Settings) -> list[Task | Path]:
    """Bundles as they are, tasks from the database, which only they need."""
    if all(folder for _, folder in words):
        return [folder for _, folder in words if folder]
    with Store.open(settings.db, create=False) as store:
        return [folder or queries.resolve_task(store, word) for word, folder in words]


def _tell_bundle(found: BundleAudit, *, as_json: bool) -> None:
    if as_json:
        output.as_json(asdict(found))
        return
    verdict = f"{len(found.findings)} findings" if found.findings else "every file is as the manifest says"
    output.text(
        f"{found.bundle}: {verdict} ({found.tasks} tasks, {found.format}, manifest {found.manifest_sha256[:16]})"
    )
    if found.findings:
        output.rows(found.findings, ("what", "where"), as_lines=False, nothing="")


def _tell_task(found: TaskAudit, *, as_json: bool) -> None:
    if as_json:
        output.as_json(asdict(found))
        return
    if found.skipped or found.strength is None:
        output.text(f"{found.task}: not looked at, {found.skipped}")
        return
    verdict = f"{len(found.findings)} findings" if found.findings else "no findings"
    strength = found.strength
    guarded = f"{strength['twins']} of {strength['fail_to_pass']} FAIL_TO_PASS tests have a twin"
    output.text(f"{found.task}: {verdict}; {guarded} ({found.image})")
    if found.findings:
        output.rows(found.findings, ("kind", "where", "what"), as_lines=False, nothing="")
    output.rows(found.probes, ("name", "value", "explanation"), as_lines=False, nothing="")
