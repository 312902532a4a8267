"""Examples of skills: `NAME.yaml` beside this file breaks a build in the way that the skill of that name repairs.

`files` is the whole project, `reason` the rejection of its first attempt, `log` the recorded part of its log, `edits`
the edits of the skill. An example without edits belongs to a skill that only provides its text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from backends.tree import CommitTree
from builders.build import create_first_draft
from builders.repair.policy import RepairCase
from taskdb.records import Candidate
from tests import records
from tests.containers import make_services
from tests.helpers import TinyRepo

EXAMPLES_FOLDER = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class SkillExample:
    """One example file."""

    name: str
    language: str
    day: str
    reason: str
    files: dict[str, str | bytes]
    log: str = ""
    edits: list[dict[str, Any]] = field(default_factory=list)
    group: str = ""
    """Examples of one group are built together, each in a folder of its own, because the base of a build is slow."""
    recorded: bool = True
    """Whether `log` was recorded from the build; else it was written after the tools' wording."""
    unseen: str = ""
    """Reason why the build does not run on every machine."""
    settings: dict[str, Any] = field(default_factory=dict)


def load_examples() -> list[SkillExample]:
    return [read_example(path) for path in sorted(EXAMPLES_FOLDER.glob("*.yaml"))]


def read_example(path: Path) -> SkillExample:
    data = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe ones
    return SkillExample(name=path.stem, **data)


def combine_examples(examples: list[SkillExample]) -> SkillExample:
    """Return the examples of a group as one project: a folder for each, with one file of requirements."""
    files: dict[str, str] = {}
    for example in examples:
        folder = f"of_{example.name.replace('-', '_')}"
        for path, text in example.files.items():
            name = path.removeprefix("tests/")
            if path == "requirements.txt":
                files[path] = files.get(path, "") + text
            elif name.startswith("test_"):
                files[f"{folder}/test_{folder}.py"] = text
            else:
                files[f"{folder}/{name}"] = text
    settings = {key: value for example in examples for key, value in example.settings.items()}
    first = examples[0]
    return SkillExample(
        name=first.group, language=first.language, day=first.day, reason=first.reason, files=files, settings=settings
    )


def group_examples() -> dict[str, list[SkillExample]]:
    """Return the examples that are built together, by name of the group or of a single example."""
    groups: dict[str, list[SkillExample]] = {}
    for example in load_examples():
        groups.setdefault(example.group or example.name, []).append(example)
    return groups


def create_candidate(example: SkillExample, folder: Path) -> Candidate:
    """Return a change on top of the example's files, with its repository in `folder`."""
    repo = TinyRepo(folder)
    base = repo.commit("base", dict(example.files))
    pull = records.make_pull_request(source=f"git:{repo.path}", base_commit=base)
    return records.make_candidate(
        pull, language=example.language, created_at=f"{example.day}T12:00:00+00:00", version="", test_files=()
    )


def create_case(example: SkillExample, folder: Path, **settings: Any) -> RepairCase:
    """Return the candidate with its first draft."""
    services = make_services(
        folder, **{"budget_seconds": 1800, "test_timeout": 300, "memory_mb": 2048, "disk_mb": 1024, **settings}
    )
    candidate = create_candidate(example, folder / "repo")
    tree = CommitTree(services.clones.open(candidate.source, candidate.repo), candidate.base_commit)
    return RepairCase(
        candidate=candidate, tree=tree, first_draft=create_first_draft(tree, candidate, services), services=services
    )
