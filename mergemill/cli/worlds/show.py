"""`mergemill worlds show`: one world or scenario."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from core.errors import UsageError
from core.settings.storage import StorageSettings
from mergemill.cli import output
from mergemill.cli.options import IdArgument, JsonOption, with_settings
from mergemill.worlds.reports import describe_scenario, describe_world, find_world_or_scenario
from taskdb.artifacts import open_artifacts
from taskdb.records.worlds import World
from taskdb.store import Store

WORLD_FIELDS = ("id", "name", "origin", "environment", "source", "license", "model", "status", "reason", "theme")
SCENARIO_FIELDS = ("id", "name", "world", "environment", "license", "model", "status", "reason")
CERTIFICATE_FIELDS = ("n_calls", "rounds", "passed", "warned", "failed", "pass_rate", "score", "tester", "checker")
PROOF_FIELDS = ("solution_origin", "n_calls", "n_tools", "n_queries", "n_kept", "mutations", "mutations_noticed")

app = typer.Typer(add_completion=False)


@app.command("show")
@with_settings(StorageSettings)
def show(
    name: IdArgument,
    program: Annotated[bool, typer.Option("--program", help="Print the program of the world instead.")] = False,
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
) -> None:
    """Show one world with certificate, tools and scenarios, or one scenario with task, checks and solution.

    Example: mergemill worlds show library_loans
    """
    artifacts = open_artifacts(storage)
    with Store.open(storage.db, create=False) as store:
        record = find_world_or_scenario(store, name)
        if program:
            if not isinstance(record, World):
                raise UsageError(f"{record.name} is a scenario, and has no program", advice="name its world")
            output.print_text(artifacts.get_text(record.program))
            return
        if isinstance(record, World):
            report, print_report = describe_world(store, artifacts, record), _print_world
        else:
            report, print_report = describe_scenario(store, artifacts, record), _print_scenario
    if as_json:
        output.print_json(report)
    else:
        print_report(report)


def _print_world(report: dict[str, Any]) -> None:
    output.print_fields((name, report[name]) for name in WORLD_FIELDS)
    _print_certificate(report["certificate"], CERTIFICATE_FIELDS)
    output.print_text(f"\n{report['documentation'].strip()}")
    output.print_text("")
    tools = [{"tool": tool["name"], "does": tool["description"].partition("\n")[0]} for tool in report["tools"]]
    output.print_rows(tools, ("tool", "does"), as_lines=False, nothing="no tools")
    if report["scenarios"]:
        output.print_text("")
        columns = ("name", "status", "reason", "n_checks")
        output.print_rows(report["scenarios"], columns, as_lines=False, nothing="")
    output.print_text(f"\nprogram: mergemill worlds show {report['name']} --program")


def _print_scenario(report: dict[str, Any]) -> None:
    output.print_fields((name, report[name]) for name in SCENARIO_FIELDS)
    _print_certificate(report["certificate"], PROOF_FIELDS)
    output.print_text(f"\n{report['task']}")
    output.print_text("")
    output.print_rows(report["checks"], ("function", "item"), as_lines=False, nothing="no checks")
    if report["solution"]:
        output.print_text("")
        output.print_rows(report["solution"], ("tool", "arguments"), as_lines=False, nothing="")


def _print_certificate(certificate: dict[str, Any] | None, names: tuple[str, ...]) -> None:
    if certificate is None:
        output.print_text("\nno certificate")
        return
    output.print_text("\ncertificate")
    output.print_fields((name, certificate[name]) for name in names)
    if certificate["gates"]:
        output.print_rows(certificate["gates"], ("name", "value", "limit", "detail"), as_lines=False, nothing="")
