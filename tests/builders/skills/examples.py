"""The examples of skills: `NAME.yaml` beside this file breaks a build in the way that the skill of that name mends.

`files` is the whole project, `reason` why its first attempt is refused, `log` what was seen of that log, `edits`
what the skill makes of it. An example without edits shows what its skill only tells of.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from backends.tree import Tree
from builders.build import first_draft
from builders.repair.policy import Case
from taskdb.records import Candidate
from tests import records
from tests.boxes import make_services
from tests.helpers import TinyRepo

HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Example:
    """One file."""

    name: str
    language: str
    day: str
    reason: str
    files: dict[str, str | bytes]
    log: str = ""
    edits: list[dict[str, Any]] = field(default_factory=list)
    group: str = ""
    """Examples of one group are built together, each in a folder of its own: most of a build's time is not theirs."""
    recorded: bool = True
    """Whether `log` was recorded of the build itself; else it is worded as the tools word it."""
    unseen: str = ""
    """Why its build cannot be run on every machine."""
    settings: dict[str, Any] = field(default_factory=dict)


def examples() -> list[Example]:
    return [read(path) for path in sorted(HERE.glob("*.yaml"))]


def read(path: Path) -> Example:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    return Example(name=path.stem, **data)


def together(several: list[Example]) -> Example:
    """The examples of a group as one project: each in a folder of its name, what they require in one file."""
    files: dict[str, str] = {}
    for one in several:
        folder = f"of_{one.name.replace('-', '_')}"
        for path, text in one.files.items():
            name = path.removeprefix("tests/")
            if path == "requirements.txt":
                files[path] = files.get(path, "") + text
            elif name.startswith("test_"):
                files[f"{folder}/test_{folder}.py"] = text
            else:
                files[f"{folder}/{name}"] = text
    settings = {key: value for one in several for key, value in one.settings.items()}
    first = several[0]
    return Example(
        name=first.group, language=first.language, day=first.day, reason=first.reason, files=files, settings=settings
    )


def groups() -> dict[str, list[Example]]:
    """Name -> the examples that are built together; most stand alone."""
    found: dict[str, list[Example]] = {}
    for one in examples():
        found.setdefault(one.group or one.name, []).append(one)
    return found


def candidate_of(example: Example, folder: Path) -> Candidate:
    """A change on top of the example's files, made into a repository in `folder`."""
    repo = TinyRepo(folder)
    base = repo.commit("base", dict(example.files))
    pull = records.pull_request(source=f"git:{repo.path}", base_commit=base)
    return records.candidate(
        pull, language=example.language, created_at=f"{example.day}T12:00:00+00:00", version="", test_files=()
    )


def case_of(example: Example, folder: Path, **settings: Any) -> Case:
    """The candidate with its first draft."""
    services = make_services(
        folder, **{"budget_seconds": 1800, "test_timeout": 300, "memory_mb": 2048, "disk_mb": 1024, **settings}
    )
    candidate = candidate_of(example, folder / "repo")
    tree = Tree(services.clones.open(candidate.source, candidate.repo), candidate.base_commit)
    return Case(candidate=candidate, tree=tree, first=first_draft(tree, candidate, services), services=services)
