"""Status of the work on a single database: its runs, the queue of each stage, failures, and disk and engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from core.errors import MergemillError
from mergemill.execution.quotas import list_waiting
from mergemill.execution.run_status import ACTIVE_STATES, list_runs
from mergemill.execution.usage import describe_disk, measure_engine
from taskdb.queries.tasks import compute_funnel, compute_summary
from taskdb.records import Stage
from taskdb.store import Store

if TYPE_CHECKING:
    from core.settings.machine import SandboxSettings
    from core.settings.mining import QuotaSettings
    from core.settings.storage import StorageSettings


def collect_status(
    storage: StorageSettings, sandbox: SandboxSettings, quota: QuotaSettings, limit: int
) -> dict[str, Any]:
    """Return the status with the keys of `mergemill status --json`.

    Args:
        storage: place of database and store.
        sandbox: kind of the sandbox.
        quota: limits of a repository.
        limit: ended runs to include, newest first; those that run are all included.

    Raises:
        InputError: there is no database.
    """
    with Store.open(storage.db, create=False) as store:
        funnel, summary, quotas = compute_funnel(store), compute_summary(store), list_waiting(store, quota)
    runs = select_runs(list_runs(storage.store_dir / "runs"), limit)
    return {
        "runs": runs,
        "queue": {row["stage"]: row["waiting"] for row in funnel if row["stage"] != Stage.MINE},
        "quotas": quotas,
        "certified": summary["certified"],
        "failures": list_failures(runs),
        "disk": describe_disk(storage.store_dir),
        "engine": describe_engine(sandbox),
    }


def select_runs(runs: Iterable[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Return the runs that are active and the newest `limit` others, newest first."""
    chosen, n_ended = [], 0
    for run in runs:
        is_active = run["state"] in ACTIVE_STATES
        n_ended += not is_active
        if is_active or n_ended <= limit:
            chosen.append(run)
    return chosen


def list_failures(runs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the failures of some runs, which are not verdicts: stage, kind and number, most frequent first."""
    counted = Counter[tuple[str, str]]()
    for run in runs:
        for stage, kinds in run["failures"].items():
            for kind, n in kinds.items():
                counted[stage, kind] += n
    return [{"stage": stage, "kind": kind, "n": n} for (stage, kind), n in counted.most_common()]


def describe_engine(sandbox: SandboxSettings) -> dict[str, Any] | None:
    """Return the disk, images and containers of the Docker engine, or why it does not answer; None where none is used.

    `disk` is None where the engine's folder is on another machine.
    """
    if sandbox.kind != "docker":
        return None
    from backends.sandbox.docker import DockerSandbox  # noqa: PLC0415 - other sandboxes need no docker SDK

    try:
        return {"problem": None, **measure_engine(DockerSandbox())}
    except MergemillError as error:
        return {"problem": error.format_line()}
