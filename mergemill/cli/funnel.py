"""The funnel as people read it: how many came how far, and why the rest did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mergemill.cli import output


def tell_funnel(found: Sequence[Mapping[str, Any]], such_as: Mapping[tuple[str, str], str]) -> None:
    """Print the rows of `taskdb.queries.funnel`; `such_as` names a change for each stage and reason."""
    mined, candidates, certified = found[0]["in"], found[0]["out"], found[-1]["out"]
    stages = [{**row, "rejected": sum(row["rejected"].values())} for row in found]
    output.rows(stages, ("stage", "in", "out", "rejected", "waiting"), as_lines=False, nothing="")
    reasons = [
        {"stage": row["stage"], "rejected": n, "reason": reason, "such as": such_as.get((row["stage"], reason))}
        for row in found
        for reason, n in row["rejected"].items()
    ]
    output.text("")
    if reasons:
        output.rows(reasons, ("stage", "rejected", "reason", "such as"), as_lines=False, nothing="")
        output.text("")
    share = f" ({100 * certified / candidates:.0f} %)" if candidates else ""
    output.text(f"{mined} changes, {candidates} candidates, {certified} certified tasks{share}")
    if reasons:
        output.text("one change's whole story: mergemill why NAME")
