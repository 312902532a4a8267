"""Submissions that must earn 0. `PROBES` is the complete list.

Probes are made from the task's own files and tests. They attack the restored test files, the report and its parser, and
are graded as patches like any other submission.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from backends.git import run_git
from backends.sandbox.container_names import make_folder_prefix
from languages.paths import is_protected
from languages.probes import FORGERIES, Changes, Probe, ProbeTarget
from languages.registry import LANGUAGES
from taskdb.records import Task


def create_target(task: Task, gold_files: Sequence[str], base: Mapping[str, bytes]) -> ProbeTarget:
    """Return what probes of a task are made from; `base` has the base tree's files (`select_base_files`)."""
    sources = [path for path in gold_files if not is_protected(path)]
    return ProbeTarget(task=task, gold_files=gold_files, sources=sources, base=base)


def select_base_files(task: Task, gold_files: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate for the base tree's files that a `ProbeTarget` needs."""
    needed = {*create_target(task, gold_files, {}).test_files, *gold_files}
    patterns = [pattern for language in LANGUAGES.values() for pattern in language.probed_files]
    return lambda path: path in needed or any(re.search(pattern, path) for pattern in patterns)


def _change_nothing(_: ProbeTarget) -> Changes:
    return {}


def _add_stray_file(_: ProbeTarget) -> Changes:
    return {"mergemill-noop.txt": b"An unrelated file.\n"}


NO_OP = Probe(name="no-op", description="an empty patch", make=_change_nothing)
PROBES: tuple[Probe, ...] = (
    NO_OP,
    Probe(name="stray-file", description="a patch that adds an unrelated file", make=_add_stray_file, group=FORGERIES),
    *(probe for language in LANGUAGES.values() for probe in language.probes),
)


def make_patch(changes: Changes, base: Mapping[str, bytes]) -> bytes:
    """Return a git diff of the changes against the base tree."""
    with tempfile.TemporaryDirectory(prefix=make_folder_prefix("probe")) as name:
        folder = Path(name)
        run_git("init", "-q", cwd=folder)
        _write_files(folder, {path: base.get(path) for path in changes})
        run_git("add", "-A", "-f", cwd=folder)
        before = run_git("write-tree", cwd=folder).decode().strip()
        _write_files(folder, changes)
        run_git("add", "-A", "-f", cwd=folder)
        return run_git("diff-index", "--cached", "--binary", "--full-index", "--no-renames", before, cwd=folder)


def _write_files(folder: Path, files: Changes) -> None:
    for path, content in sorted(files.items(), key=lambda item: item[1] is not None):  # a folder may replace a file
        target = folder / path
        if re.search(r"(^|/)\.\.?(/|$)", path):
            continue
        if content is None:
            with suppress(FileNotFoundError, NotADirectoryError):
                target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
