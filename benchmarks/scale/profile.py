"""Measured stage times, outcomes and sizes, as a file of numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from core.errors import InputError

FORMAT = 1
PROFILE = Path(__file__).parent / "profile.json"
"""The profile that is part of the repository."""


@dataclass(frozen=True)
class MeasuredStep:
    """One stage of one change. Derivation and certification have a step for each task or rejected kind."""

    stage: str
    outcome: str
    """`ok`, or the reason of the rejection."""
    kind: str
    """Kind of the task; empty for a stage of the change itself."""
    seconds: float
    """Wall-clock seconds in a worker."""


@dataclass(frozen=True)
class MeasuredChange:
    """One candidate and all that was measured of it. Without steps no stage gave a result: engine or network failed."""

    steps: tuple[MeasuredStep, ...]
    dependency: int | None
    """Number of its dependency layer within the repository, None without an environment."""
    dependency_seconds: float
    """What its build takes longer where the layer must be made."""
    image_bytes: int
    """Own bytes of its image."""


@dataclass(frozen=True)
class MeasuredRepository:
    """A repository whose candidates were processed."""

    language: str
    changes: tuple[MeasuredChange, ...]


@dataclass(frozen=True)
class MinedHistory:
    """A history that was mined up to a number of candidates, the newest first."""

    changes: int
    candidates: int
    seconds: float
    """Of the command, on a clone."""
    clone_bytes: int


@dataclass(frozen=True)
class EnvironmentShare:
    """How many of randomly drawn repositories get an environment, and what the others cost."""

    n: int
    accepted: int
    rejected_seconds: tuple[float, ...]
    dependency_bytes: tuple[int, ...]
    """Of the dependency layers of accepted ones."""


@dataclass(frozen=True)
class StoreTimes:
    """What the driver takes to store results of a stage: (seconds of its own, seconds of the database) each."""

    stages: Mapping[str, tuple[tuple[float, float], ...]]
    """Stage -> one pair for each result; for `mine` one for each change of a batch."""


@dataclass(frozen=True)
class Profile:
    """All that the simulator knows from measurements."""

    sources: tuple[str, ...]
    """What was measured, in words, one line for each source."""
    repositories: tuple[MeasuredRepository, ...]
    cores: Mapping[str, float]
    """Stage -> cores that a worker keeps busy in it: CPU seconds over wall seconds."""
    store: Mapping[str, StoreTimes]
    """Kind of database -> times of the driver."""
    artifact_bytes: float
    """On disk, for each candidate."""
    database_bytes: float
    """For each mined change."""
    mined_limit: int = 0
    """Candidates after which mining of a history ended."""
    histories: tuple[MinedHistory, ...] = ()
    environments: EnvironmentShare | None = None
    format: int = field(default=FORMAT)

    def save(self, path: Path) -> None:
        """Write the file: a line for each change and each history."""
        path.write_text(_dump(asdict(self)) + "\n", encoding="utf-8")


def load_profile(path: Path) -> Profile:
    """Read a profile.

    Raises:
        InputError: there is no such file, or it is no profile of this format.
    """
    advice = "write one with `python -m benchmarks.scale measure`"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the profile {path}", advice=advice) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{path} is no profile of format {FORMAT}", advice=advice)
    environments = data["environments"]
    return Profile(
        sources=tuple(data["sources"]),
        repositories=tuple(
            MeasuredRepository(repository["language"], tuple(_read_change(change) for change in repository["changes"]))
            for repository in data["repositories"]
        ),
        cores=data["cores"],
        store={
            name: StoreTimes({stage: tuple((own, base) for own, base in pairs) for stage, pairs in stages.items()})
            for name, stages in ((name, times["stages"]) for name, times in data["store"].items())
        },
        artifact_bytes=data["artifact_bytes"],
        database_bytes=data["database_bytes"],
        mined_limit=data["mined_limit"],
        histories=tuple(MinedHistory(**history) for history in data["histories"]),
        environments=environments
        and EnvironmentShare(
            environments["n"],
            environments["accepted"],
            tuple(environments["rejected_seconds"]),
            tuple(environments["dependency_bytes"]),
        ),
    )


def _read_change(data: Mapping[str, Any]) -> MeasuredChange:
    steps = tuple(MeasuredStep(*step) for step in data["steps"])
    return MeasuredChange(steps, data["dependency"], data["dependency_seconds"], data["image_bytes"])


def _dump(data: dict[str, Any]) -> str:
    for repository in data["repositories"]:
        for change in repository["changes"]:
            change["steps"] = [list(step.values()) for step in change["steps"]]
    return _indent(data, "")


def _indent(value: Any, margin: str) -> str:
    """Return JSON whose innermost objects and lists of numbers are one line each."""
    parts: Sequence[Any] = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(value, dict | list | tuple) or "steps" in value or not any(map(_has_parts, parts)):
        return json.dumps(value)
    deeper = margin + " "
    lines = [_indent(part, deeper) for part in parts]
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {line}" for key, line in zip(value, lines, strict=True)]
        return "{\n" + ",\n".join(deeper + line for line in lines) + f"\n{margin}}}"
    return "[\n" + ",\n".join(deeper + line for line in lines) + f"\n{margin}]"


def _has_parts(value: Any) -> bool:
    return isinstance(value, dict | list | tuple) and bool(value)
