"""One repository on the ladder, by the product's own stage: what a row of the benchmark is made of."""

from __future__ import annotations

import json
import logging
import subprocess
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypedDict

from backends.services import Services
from benchmarks.environments.choose import Chosen
from builders.build import build
from builders.repair.loop import NOT_BUILT
from mergemill.errors import InputError, MachineError
from mergemill.services import artifacts_of
from taskdb.records import Attempt, Candidate, Environment, Rejection

STEPS = ("plan", "built", "collected", "accepted")
"""The steps of the ladder; a row names the last one reached, or nothing."""

REACHED = {
    "no-language": "", "no-plan": "", "incomplete-clone": "", "bug": "",
    "no-base": "plan", "dependencies-failed": "plan", "install-failed": "plan",
    "no-report": "built", "no-tests-collected": "built", "few-collected": "built", "timeout": "built",
    "out-of-memory": "built", "disk-full": "built",
    "fake-report": "built", "mostly-failing": "collected", "unstable": "collected",
}  # fmt: skip
"""The last step reached when it ended for that reason."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What became of one repository. Seconds are wall time; megabytes are 10^6 bytes."""

    repo: str
    group: str
    language: str
    half: str
    commit: str
    day: str
    step: str
    """The last step reached, of STEPS, or empty."""
    reason: str
    """Why it is not accepted; empty when it is."""
    detail: str
    attempt: int
    """How many plans were tried, the last one accepted or not; 0 when there was none."""
    edits: tuple[str, ...]
    """What was changed of the first plan and by whom, in order; of refused attempts, too, unless they were undone."""
    version: str
    seconds: float
    test_seconds: float
    own_mb: float
    shared_mb: float
    """Of the dependency layer, which other commits share."""
    share: float
    passed: int
    ran: int
    revision: str
    """Of mergemill itself."""


def candidate_of(chosen: Chosen, clones: Path) -> Candidate:
    """The candidate whose base is the repository's commit; its patches are empty, the build does not look at them."""
    empty = "0" * 64
    return Candidate(
        parent=empty, source=f"git:{clones / chosen.name}.git", repo=chosen.repo, name=f"{chosen.name}-0",
        language=chosen.language, base_commit=chosen.commit, merge_commit=chosen.commit,
        created_at=f"{chosen.day}T00:00:00Z", version="", problem_statement="", hints="", license="NOASSERTION",
        gold_patch=empty, test_patch=empty, gold_files=(), test_files=(), gold_lines=0, test_lines=0,
    )  # fmt: skip


def measure(chosen: Chosen, clones: Path, services: Services, logs: Path) -> Row:
    """Build the repository's environment and keep the log as a file of `logs`.

    The store is one that has seen no other run: nothing is known of what mended the repository before.

    Raises:
        Transient: engine, network or disk failed; that says nothing of the repository.
    """
    with tempfile.TemporaryDirectory(prefix="mergemill-benchmark-") as folder:
        settings = services.settings.model_copy(update={"store": Path(folder)})
        fresh = replace(services, settings=settings, artifacts=artifacts_of(settings))
        return _measured(chosen, clones, fresh, logs)


def _measured(chosen: Chosen, clones: Path, services: Services, logs: Path) -> Row:
    started = time.monotonic()
    try:
        result = build(candidate_of(chosen, clones), services)
    except (InputError, MachineError) as error:
        reason = "no-language" if isinstance(error, InputError) else "no-base"
        return _row(chosen, reason=reason, detail=str(error), seconds=time.monotonic() - started)
    except Exception as error:
        if type(error).__module__ == "mergemill.errors":
            raise
        logging.getLogger(__name__).exception("%s", chosen.repo)
        (logs / f"{chosen.name}.log").write_text(traceback.format_exc())
        return _row(chosen, reason="bug", detail=repr(error)[:300], seconds=time.monotonic() - started)
    if result.log:
        (logs / f"{chosen.name}.log").write_text(services.artifacts.text(result.log))
    if isinstance(result, Rejection):
        return _row(
            chosen, reason=str(result.reason), detail=result.detail, seconds=result.seconds, **_tried(result.attempts)
        )  # fmt: skip
    (logs / f"{chosen.name}.plan.json").write_text(result.plan.model_dump_json(indent=1))
    return _accepted(chosen, result, services)


def _accepted(chosen: Chosen, environment: Environment, services: Services) -> Row:
    shared = services.sandbox.image(environment.plan.dependency_image)
    counts = environment.counts
    return _row(
        chosen, step="accepted", version=environment.plan.language_version,
        seconds=environment.seconds, test_seconds=environment.test_seconds, own_mb=environment.image_bytes / 1e6,
        shared_mb=shared.layer_bytes / 1e6 if shared else 0.0, share=environment.collected_share,
        passed=counts.passed, ran=counts.passed + counts.failed + counts.error + counts.xfailed,
        **_tried(environment.attempts),
    )  # fmt: skip


class _Tried(TypedDict):
    attempt: int
    edits: tuple[str, ...]


def _tried(attempts: Sequence[Attempt]) -> _Tried:
    """How many plans were tried and what was edited, as `Row` has it."""
    built = [one for one in attempts if one.reason not in NOT_BUILT]
    edits = tuple(f"{one.by} {edit}" for one in built for edit in one.edits if not one.undone)
    return {"attempt": len(built), "edits": edits}


def _row(
    chosen: Chosen, *, step: str = "", reason: str = "", detail: str = "", attempt: int = 0, version: str = "",
    seconds: float = 0, test_seconds: float = 0, own_mb: float = 0, shared_mb: float = 0, share: float = 0,
    passed: int = 0, ran: int = 0, edits: tuple[str, ...] = (),
) -> Row:  # fmt: skip
    return Row(
        repo=chosen.repo, group=chosen.group, language=chosen.language, half=chosen.half, commit=chosen.commit,
        day=chosen.day, step=step or REACHED.get(reason, ""), reason=reason, detail=detail, attempt=attempt,
        edits=edits, version=version, seconds=round(seconds, 1), test_seconds=round(test_seconds, 1),
        own_mb=round(own_mb, 2), shared_mb=round(shared_mb, 1), share=share, passed=passed, ran=ran,
        revision=revision(),
    )  # fmt: skip


def revision() -> str:
    """The commit of mergemill that this is run from, with a `+` when files were changed since."""
    here = Path(__file__).parent
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude=*"], cwd=here, capture_output=True, check=False
    )  # fmt: skip
    return said.stdout.decode().strip()


def write(row: Row, path: Path) -> None:
    """Append the row as one line of JSON."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(row)) + "\n")


def read(path: Path) -> dict[str, Row]:
    """The last row of each repository."""
    return {row.repo: row for row in _rows(path)}


def _rows(path: Path) -> Iterator[Row]:
    if path.exists():
        for line in path.read_text().splitlines():
            said = json.loads(line)
            yield Row(**said | {"edits": tuple(said["edits"])})
