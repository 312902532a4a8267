"""Measure the environment build of one repository with the product's own build stage."""

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
from benchmarks.environments.choose import BenchmarkRepository
from builders.build import build
from builders.repair.loop import REASONS_WITHOUT_BUILD
from core.errors import InputError, MachineError
from core.settings.group import replace_values
from taskdb.artifacts import open_artifacts
from taskdb.records import Attempt, Candidate, Environment, Rejection

STEPS = ("plan", "built", "collected", "accepted")
"""Steps of a build; a result names the last one reached, or is empty."""

STEP_BY_REASON = {
    "no-language": "",
    "no-plan": "",
    "incomplete-clone": "",
    "bug": "",
    "no-base": "plan",
    "dependencies-failed": "plan",
    "install-failed": "plan",
    "no-report": "built",
    "no-tests-collected": "built",
    "few-collected": "built",
    "timeout": "built",
    "out-of-memory": "built",
    "disk-full": "built",
    "fake-report": "built",
    "mostly-failing": "collected",
    "unstable": "collected",
    "gold-tests-fail": "collected",  # of attempts; no build ends with it
    "needs-network": "built",
    "needs-root": "built",
    "needs-terminal": "built",
    "needs-display": "built",
    "needs-home": "built",
    "needs-locale": "built",
    "needs-time-zone": "built",
}
"""The last step reached when a build ended for that reason."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentResult:
    """Result of one repository. Seconds are wall time; megabytes are 10^6 bytes."""

    repo: str
    group: str
    language: str
    half: str
    commit: str
    day: str
    step: str
    """The last step reached, of STEPS, or empty."""
    reason: str
    """Reason of the rejection; empty if accepted."""
    detail: str
    attempt: int
    """Number of plans tried, including the last one; 0 without a plan."""
    edits: tuple[str, ...]
    """Edits of the first plan with their origin, in order; edits of rejected attempts are included unless undone."""
    version: str
    seconds: float
    test_seconds: float
    own_mb: float
    shared_mb: float
    """Size of the dependency layer, which other commits share."""
    share: float
    passed: int
    ran: int
    revision: str
    """Commit of mergemill."""


def make_candidate(repository: BenchmarkRepository, clones: Path) -> Candidate:
    """Return a candidate with the repository's commit as base and empty patches, which a build does not use."""
    empty = "0" * 64
    return Candidate(
        parent=empty,
        source=f"git:{clones / repository.name}.git",
        repo=repository.repo,
        name=f"{repository.name}-0",
        language=repository.language,
        base_commit=repository.commit,
        merge_commit=repository.commit,
        created_at=f"{repository.day}T00:00:00Z",
        version="",
        problem_statement="",
        hints="",
        license="NOASSERTION",
        gold_patch=empty,
        test_patch=empty,
        gold_files=(),
        test_files=(),
        gold_lines=0,
        test_lines=0,
    )


def measure(repository: BenchmarkRepository, clones: Path, services: Services, logs: Path) -> EnvironmentResult:
    """Build the repository's environment and store the log in `logs`.

    The store must be new, so that no earlier repair of the repository is available.

    Raises:
        Transient: engine, network or disk failed, independent of the repository.
    """
    with tempfile.TemporaryDirectory(prefix="mergemill-benchmark-") as folder:
        settings = replace_values(services.settings, {"store": Path(folder)})
        fresh = replace(services, settings=settings, artifacts=open_artifacts(settings.storage))
        return _build_environment(repository, clones, fresh, logs)


def _build_environment(
    repository: BenchmarkRepository, clones: Path, services: Services, logs: Path
) -> EnvironmentResult:
    started = time.monotonic()
    try:
        result = build(make_candidate(repository, clones), services)
    except (InputError, MachineError) as error:
        reason = "no-language" if isinstance(error, InputError) else "no-base"
        return _make_result(repository, reason=reason, detail=str(error), seconds=time.monotonic() - started)
    except Exception as error:
        if type(error).__module__ == "core.errors":
            raise
        logging.getLogger(__name__).exception("%s", repository.repo)
        (logs / f"{repository.name}.log").write_text(traceback.format_exc())
        return _make_result(repository, reason="bug", detail=repr(error)[:300], seconds=time.monotonic() - started)
    if result.log:
        (logs / f"{repository.name}.log").write_text(services.artifacts.get_text(result.log))
    if isinstance(result, Rejection):
        return _make_result(
            repository,
            reason=str(result.reason),
            detail=result.detail,
            seconds=result.seconds,
            **_summarize_attempts(result.attempts),
        )
    (logs / f"{repository.name}.plan.json").write_text(result.plan.model_dump_json(indent=1))
    return _make_accepted_result(repository, result, services)


def _make_accepted_result(
    repository: BenchmarkRepository, environment: Environment, services: Services
) -> EnvironmentResult:
    shared = services.images.inspect(environment.plan.dependency_image)
    counts = environment.counts
    return _make_result(
        repository,
        step="accepted",
        version=environment.plan.language_version,
        seconds=environment.seconds,
        test_seconds=environment.test_seconds,
        own_mb=environment.image_bytes / 1e6,
        shared_mb=shared.layer_bytes / 1e6 if shared else 0.0,
        share=environment.collected_share,
        passed=counts.passed,
        ran=counts.passed + counts.failed + counts.error + counts.xfailed,
        **_summarize_attempts(environment.attempts),
    )


class _AttemptSummary(TypedDict):
    attempt: int
    edits: tuple[str, ...]


def _summarize_attempts(attempts: Sequence[Attempt]) -> _AttemptSummary:
    """Return the number of plans tried and their edits as fields of `EnvironmentResult`."""
    built = [attempt for attempt in attempts if attempt.reason not in REASONS_WITHOUT_BUILD]
    edits = tuple(
        f"{attempt.proposed_by} {edit}" for attempt in built for edit in attempt.edits if not attempt.rolled_back
    )
    return {"attempt": len(built), "edits": edits}


def _make_result(
    repository: BenchmarkRepository,
    *,
    step: str = "",
    reason: str = "",
    detail: str = "",
    attempt: int = 0,
    version: str = "",
    seconds: float = 0,
    test_seconds: float = 0,
    own_mb: float = 0,
    shared_mb: float = 0,
    share: float = 0,
    passed: int = 0,
    ran: int = 0,
    edits: tuple[str, ...] = (),
) -> EnvironmentResult:
    return EnvironmentResult(
        repo=repository.repo,
        group=repository.group,
        language=repository.language,
        half=repository.half,
        commit=repository.commit,
        day=repository.day,
        step=step or STEP_BY_REASON.get(reason, ""),
        reason=reason,
        detail=detail,
        attempt=attempt,
        edits=edits,
        version=version,
        seconds=round(seconds, 1),
        test_seconds=round(test_seconds, 1),
        own_mb=round(own_mb, 2),
        shared_mb=round(shared_mb, 1),
        share=share,
        passed=passed,
        ran=ran,
        revision=read_revision(),
    )


def read_revision() -> str:
    """Return mergemill's commit, with a `+` for uncommitted changes."""
    here = Path(__file__).parent
    response = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude=*"], cwd=here, capture_output=True, check=False
    )
    return response.stdout.decode().strip()


def append_result(row: EnvironmentResult, path: Path) -> None:
    """Append the result as one line of JSON."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(row)) + "\n")


def read_results(path: Path) -> dict[str, EnvironmentResult]:
    """Read the last result of each repository."""
    return {row.repo: row for row in _parse_results(path)}


def _parse_results(path: Path) -> Iterator[EnvironmentResult]:
    if path.exists():
        for line in path.read_text().splitlines():
            response = json.loads(line)
            yield EnvironmentResult(**response | {"edits": tuple(response["edits"])})
