"""Files of a gold patch that are no part of the fix are marked, and stay in the record of the merge."""

from __future__ import annotations

import pytest

from languages.paths import is_incidental
from taskdb.records import Candidate
from tests.helpers import TinyRepo
from tests.miner.conftest import FIX, START, MinerHarness

INCIDENTAL = (
    *(
        "AGENTS.md",
        "docs/AGENTS.md",
        "CLAUDE.md",
        "CLAUDE.local.md",
        "GEMINI.md",
        ".cursorrules",
        ".cursor/rules/a.mdc",
    ),
    *(".claude/settings.json", ".github/copilot-instructions.md", ".github/instructions/a.md", ".mcp.json"),
    *("Cargo.lock", "web/package-lock.json", "yarn.lock", "pnpm-lock.yaml", "uv.lock", "go.sum", "go.work.sum"),
    *(
        "bun.lockb",
        "gradle.lockfile",
        "packages.lock.json",
        "npm-shrinkwrap.json",
        "conda-lock.yml",
        "Package.resolved",
    ),
    *("CHANGELOG.md", "CHANGES.rst", "CHANGES", "NEWS", "HISTORY.md", "ChangeLog", "docs/release-notes.md"),
    *(
        "changelog.d/12.fix.md",
        "newsfragments/1.bugfix",
        ".changeset/a-b.md",
        "releasenotes/notes/x.yaml",
        "news/1.fix",
    ),
)
PART_OF_THE_FIX = (
    *("src/changes.py", "history/models.py", "news/views.py", "news/feed.html", "news/data.json", "changelog.go"),
    *("go.mod", "package.json", "setup.py", "README.md", "docs/gemini.md", "src/lock.py", "src/agents/base.md"),
)


@pytest.mark.parametrize("path", INCIDENTAL)
def test_files_that_a_fix_takes_along_are_incidental(path: str) -> None:
    assert is_incidental(path)


@pytest.mark.parametrize("path", PART_OF_THE_FIX)
def test_other_files_are_not(path: str) -> None:
    assert not is_incidental(path)


def test_a_candidate_marks_them_and_keeps_the_whole_patch(tiny: TinyRepo, harness: MinerHarness) -> None:
    texts = {"AGENTS.md": "Obey.\n", "uv.lock": "version = 1\n", "CHANGELOG.md": "# Changes\n"}
    tiny.commit("Begin", {**START, **texts})
    tiny.commit("Fix the number", {**FIX, "AGENTS.md": None, "uv.lock": "version = 2\n", "CHANGELOG.md": "# Fixed\n"})
    mined = harness.mine(f"git:{tiny.path}")[0]
    candidate = mined.result
    assert isinstance(candidate, Candidate), candidate
    assert candidate.incidental_files == ("AGENTS.md", "CHANGELOG.md", "uv.lock")
    assert candidate.gold_files == ("AGENTS.md", "CHANGELOG.md", "pkg/core.py", "uv.lock")
    gold, _ = harness.read_patches(mined)
    assert all(f"a/{path} b/{path}" in gold for path in candidate.gold_files)


def test_a_candidate_without_them_keeps_its_id(tiny: TinyRepo, harness: MinerHarness) -> None:
    tiny.commit("Begin", START)
    tiny.commit("Fix the number", FIX)
    candidate = harness.mine(f"git:{tiny.path}")[0].result
    assert isinstance(candidate, Candidate), candidate
    assert candidate.incidental_files == ()
    fields = candidate.model_dump()
    assert Candidate.model_validate(fields | {"incidental_files": ("NEWS",)}).id != candidate.id
    del fields["incidental_files"]
    assert Candidate.model_validate(fields).id == candidate.id
