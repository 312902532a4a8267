"""Results of fresh gradings of a bundle, for `certify --again` and `bundle certify`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from core.config import Settings
from core.errors import InputError
from core.text import format_count
from mergemill.cli import output


def print_certificates(folder: Path, only: Sequence[str], settings: Settings, *, as_json: bool) -> None:
    """Grade the tasks of a bundle afresh and print the result of each.

    Args:
        folder: folder of the bundle.
        only: names of tasks; empty for all.
        settings: engine, limits and number of gradings.
        as_json: whether to print JSON lines.

    Raises:
        InputError: the bundle has a problem, or a task is not certified.
        MachineError: no engine answers.
    """
    from mergemill.bundles.certify import certify_bundle  # noqa: PLC0415 - needs the exporters

    n_failed = 0
    for result in certify_bundle(folder, settings, only):
        n_failed += bool(result.problems)
        if as_json:
            output.print_json(asdict(result))
            continue
        verdict = "; ".join(result.problems) or f"gold {result.gold}, noop {result.noop}"
        runs = format_count(result.evaluations, "run")
        tried = f"{format_count(len(result.exploits), 'exploit')} tried in {runs}"
        if result.exploits_of:
            tried = f"{runs}; relies on the exploits of {result.exploits_of}"
        output.print_text(f"{result.task}: {verdict}; {tried}")
    if n_failed:
        raise InputError(f"{format_count(n_failed, 'task')} not certified")
