"""Submissions that must earn 0: the target of a probe, and its changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from taskdb.records import Task

Changes = Mapping[str, bytes | None]
"""Path -> new content, None to delete the file."""

FORGERIES = "combined-forgeries"
"""Probes after which the task's tests are reported as passed, and no other result differs."""
EXITS = "combined-exits"
"""Probes that end the test process with 0 before it has a report."""


@dataclass(frozen=True, kw_only=True)
class ProbeTarget:
    """The task and the base tree's files (`select_base_files`) from which probes are made."""

    task: Task
    gold_files: Sequence[str]
    """Paths changed by the gold patch; both names of renamed files."""
    sources: Sequence[str]
    """Those that are no tests or configuration."""
    base: Mapping[str, bytes]

    @cached_property
    def test_files(self) -> list[str]:
        """Files of the FAIL_TO_PASS tests in any language."""
        return sorted({test.partition("::")[0] for test, _ in self.task.FAIL_TO_PASS})

    @cached_property
    def program_files(self) -> list[str]:
        """Those of `sources`, in any language, that the base tree has."""
        return [path for path in self.touched if path in self.sources]

    @cached_property
    def touched(self) -> dict[str, bytes]:
        """Content of the base tree's files that the gold patch changes, removes or renames."""
        return {path: self.base[path] for path in self.gold_files if path in self.base}

    def append_to_files(self, paths: Sequence[str], text: str) -> Changes:
        """Append a text to files; a file that the base tree lacks is created."""
        return {path: self.base.get(path, b"") + text.encode() for path in paths}


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A submission that must earn 0.

    Attributes:
        name: name in reports.
        description: action of the submission.
        make: function that returns its changes, empty where it cannot be made from the target.
        needs_controls: whether nothing but negative controls exposes it, so that it may earn 1 where there are none.
        group: name of the submission in which it may be combined with others (`verifiers.combined_probes`); empty
            where it would hide the effect of others.
    """

    name: str
    description: str
    make: Callable[[ProbeTarget], Changes] = field(repr=False)
    needs_controls: bool = False
    group: str = ""
