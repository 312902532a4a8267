"""`mergemill audit`: leaks, exploits and oracle strength of tasks and bundles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.config import Settings
from core.errors import InputError
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.options import GRADING_SETTINGS, JsonOption, with_settings
from mergemill.cli.queries.change_report import format_strength
from mergemill.execution.progress import make_count_progress

if TYPE_CHECKING:
    from mergemill.grading.audit import BundleAudit, TaskAudit

TargetsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="TASK|BUNDLE...", help="Names, ids or beginnings of ids of tasks; folders of exported bundles."
    ),
]

app = typer.Typer(add_completion=False)


@app.command("audit")
@with_settings(*GRADING_SETTINGS, "clones", "workers", "strength_runs")
def audit(
    targets: TargetsArgument,
    with_exploits: Annotated[
        bool,
        typer.Option("--exploits", help="Grade every known attack in the task's language, not only ten quick ones."),
    ] = False,
    as_json: JsonOption = False,
    *,
    settings: Settings,
) -> None:
    """Check tasks or bundles for leaks, exploits and weak tests.

    An audit reads image and problem statement for the solution, and grades submissions that must score 0. It runs the
    tests on faults in the gold patch, which they should detect, and on rewrites of it. Findings end with exit code 3.

    Example: mergemill audit pallets__flask-5063.bugfix
    """
    from mergemill.grading.audit import audit_files, audit_targets, resolve_targets  # noqa: PLC0415 - only this command

    resolved = resolve_targets(targets, settings.storage)
    bundles = [audit_files(folder) for folder in resolved.bundles]
    for bundle in bundles:
        _print_bundle(bundle, as_json=as_json)
    if n_findings := sum(len(bundle.findings) for bundle in bundles):
        raise InputError(f"{format_count(n_findings, 'finding')}: files differ from the manifest; no task was audited")
    n_findings = 0
    results = audit_targets(resolved, settings, with_exploits=with_exploits, make_progress=make_count_progress)
    for result in results:
        _print_task(result, as_json=as_json)
        n_findings += len(result.findings)
    if n_findings:
        raise InputError(f"{format_count(n_findings, 'finding')}: docs/guide/verify/grade.md explains them")


def _print_bundle(result: BundleAudit, *, as_json: bool) -> None:
    if as_json:
        output.print_json(asdict(result))
        return
    verdict = format_count(len(result.findings), "finding") if result.findings else "all files match the manifest"
    content = f"{format_count(result.tasks, 'task')}, {result.format}, manifest {result.manifest_sha256[:16]}"
    output.print_text(f"{result.bundle}: {verdict} ({content})")
    if result.findings:
        output.print_rows(result.findings, ("description", "location"), as_lines=False, nothing="")


def _print_task(result: TaskAudit, *, as_json: bool) -> None:
    if as_json:
        output.print_json(asdict(result))
        return
    if result.skipped or result.strength is None:
        output.print_text(f"{result.task}: skipped, {result.skipped}")
        return
    verdict = format_count(len(result.findings), "finding") if result.findings else "no findings"
    output.print_text(f"{result.task}: {verdict} ({result.image})")
    if result.findings:
        output.print_rows(result.findings, ("kind", "location", "description"), as_lines=False, nothing="")
    output.print_rows(result.probes, ("name", "value", "explanation"), as_lines=False, nothing="")
    output.print_text(f"strength {format_strength(result.strength)}")
    if weaknesses := _list_weaknesses(result.strength["edits"]):
        output.print_rows(weaknesses, ("place", "weakness"), as_lines=False, nothing="")


def _list_weaknesses(edits: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return a row for each fault that every test passes, and for each rewrite that a test refuses."""
    from verifiers.strength import EditKind, EditOutcome, TriedEdit  # noqa: PLC0415 - as `mergemill.grading.audit` above

    rows = []
    for edit in (TriedEdit(**edit) for edit in edits):
        weakness = ""
        if edit.kind is EditKind.VARIANT:
            if edit.outcome is EditOutcome.DETECTED:
                weakness = f"a rewrite is refused ({edit.detail}): {edit.by}"
        elif edit.outcome is EditOutcome.PASSED:
            weakness = "no test misses this hunk" if edit.kind is EditKind.HUNK else f"no test detects: {edit.detail}"
        if weakness:
            rows.append({"place": edit.place, "weakness": weakness})
    return rows
