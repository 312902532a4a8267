"""`mergemill doctor`: requirements of this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from core.config import Settings
from core.errors import MachineError
from core.settings.machine import ClusterSettings
from mergemill.cli import output
from mergemill.cli.options import (
    GITHUB_SETTINGS,
    IMAGE_SETTINGS,
    JsonOption,
    with_settings,
)

if TYPE_CHECKING:
    from mergemill.operations.machine_checks import MachineCheck

app = typer.Typer(add_completion=False)


@app.command("doctor")
@with_settings(*IMAGE_SETTINGS, *GITHUB_SETTINGS, "llm", "model", ClusterSettings, "clones")
def doctor(as_json: JsonOption = False, *, settings: Settings) -> None:
    """Check this machine's requirements and name the command that fixes each.

    Example: mergemill doctor --llm http://localhost:8000/v1 --model qwen3-coder
    """
    from mergemill.operations.doctor import run_checks  # noqa: PLC0415 - a wrong option is reported without loading the stages

    checks = run_checks(settings)
    if as_json:
        output.print_rows(map(asdict, checks), (), as_lines=True, nothing="")
    else:
        for check in checks:
            _print_check(check)
    failed = [check.name for check in checks if not check.ok]
    if failed:
        raise MachineError(
            f"checks failed: {', '.join(failed)}", advice="the line `to fix it` below each has the command"
        )


def _print_check(check: MachineCheck) -> None:
    mark = output.choose_mark(ok=check.ok)
    output.print_text(f"{mark} {check.name:17} {check.detail}")
    if check.fix:
        output.print_text(f"{'':{len(mark)}} {'':17} to fix it: {check.fix}")
