"""Whether a task's image knows the future: every layer is read, also what a later layer hides.

Looked for: added lines of the gold and the test patch that the base tree does not have (in texts, archives, every git
object), commits beside the one, what git remembers elsewhere (remotes, tags, stashes, reflogs), objects that nothing
refers to, and later releases of the project among installed packages. Compiled files are not decompiled.
"""

from __future__ import annotations

import base64
import functools
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.version import InvalidVersion, Version

from backends.git import git_environment
from backends.services import Services
from taskdb.records import Task
from verifiers.base import Base, cloned_files, read_base
from verifiers.layers import MIN_LINE, LayerReader, git_directories, hashes, normalised

ENOUGH = 3
"""Distinct lines of a patch that, found in one file outside the project, are no coincidence."""
SHARE = 0.2
"""Or this share of the patch, where that is more."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something of the future. `layer` is a diff id, `path` a file in it, `what` one line for people."""

    layer: str
    path: str
    what: str


@dataclass(frozen=True, kw_only=True)
class _Needles:
    """Lines of a patch that the base tree does not have, by hash."""

    patch: str
    lines: frozenset[int]

    def found(self, there: set[int], *, inside: bool) -> str | None:
        """What to say of a file with these lines; `inside` the project a single one is proof."""
        hits = len(self.lines & there)
        enough = 1 if inside else max(ENOUGH, round(SHARE * len(self.lines)))
        return f"{hits} added lines of the {self.patch} patch" if hits >= enough else None


_OTHER_REFS = (b"refs/remotes/", b"refs/tags/", b"refs/stash")
_reader = LayerReader()


def audit_image(task: Task, services: Services, base: Base | None = None) -> tuple[Finding, ...]:
    """Everything of the future in the task's image; empty is what it should be.

    `base`: the base tree; read from the clone of the task's source when not given.

    Raises:
        InputError: there is no such image, or the history is not there to tell old lines from new ones.
        Transient: the engine failed.
    """
    needles = _needles(task, services, (base or read_base(cloned_files(task, services))).lines)
    findings: list[Finding] = []
    with services.sandbox.layers(task.image) as layers:
        for diff_id, tar in layers:
            layer = _reader.read(diff_id, tar)
            tell = functools.partial(Finding, layer=diff_id)
            for path, lines in layer.files:
                inside = path.startswith(task.the_plan.workdir.strip("/") + "/")
                said = [needle.found(set(lines), inside=inside) for needle in needles]
                findings += [tell(path=path, what=what) for what in said if what]
            for root, files in git_directories(layer.git).items():
                findings += [tell(path=path, what=what) for path, what in _in_git(root, files, needles)]
            findings += [tell(path=path, what=what) for path, what in _later_releases(task, layer.installed)]
    return tuple(findings)


def _needles(task: Task, services: Services, old: frozenset[int]) -> list[_Needles]:
    """Distinctive lines of both patches, and of their base64 as scripts carry them."""
    needles = []
    for name, digest in (("gold", task.gold_patch), ("test", task.test_patch)):
        patch = services.artifacts.get(digest)
        added = b"\n".join(
            line[1:] for line in patch.split(b"\n") if line.startswith(b"+") and not line.startswith(b"+++ ")
        )
        lines = frozenset(hashes(added)) - old
        needles += [_Needles(patch=name, lines=lines), _Needles(patch=name, lines=frozenset(_encoded(patch)))]
    return [needle for needle in needles if needle.lines]


def _encoded(patch: bytes) -> set[int]:
    full = [line for line in base64.encodebytes(patch).split(b"\n") if len(line) >= max(MIN_LINE, 76)]
    return {hash(line) for line in full}


def _in_git(root: str, files: Mapping[str, bytes], needles: list[_Needles]) -> Iterator[tuple[str, str]]:
    """What a git directory knows beside one commit."""
    yield from ((f"{root}/{path}", what) for path, what in _memories(files))
    with tempfile.TemporaryDirectory(prefix="mergemill-") as folder:
        for path, content in files.items():
            inside = PurePosixPath(path)
            if inside.parts[:1] == ("objects",) and ".." not in inside.parts and inside.parts[1:2] != ("info",):
                target = Path(folder, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        for needed in ("refs", "objects"):
            Path(folder, needed).mkdir(exist_ok=True)
        Path(folder, "HEAD").write_text("ref: refs/heads/none\n")
        listed = _git(folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)").split(
            b"\n"
        )
        rows = [line.decode().split() for line in listed if line]
        commits = [oid for oid, kind in rows if kind == "commit"]
        if len(commits) > 1:
            yield root, f"{len(commits)} commits where one is allowed"
        if any(kind == "tag" for _, kind in rows):
            yield root, "a tag object"
        if len(commits) == 1:
            reached = {
                line.split()[0].decode() for line in _git(folder, "rev-list", "--objects", commits[0]).splitlines()
            }
            if left := [oid for oid, _ in rows if oid not in reached]:
                yield root, f"{len(left)} objects that the commit does not reach, such as {left[0]}"
        text = set(hashes(_git(folder, "cat-file", "--batch-all-objects", "--batch")))
        yield from ((root, what) for needle in needles if (what := needle.found(text, inside=True)))


def _memories(files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Names that git keeps: remotes, tags, stashes, reflogs, heads of other times."""
    for path, content in files.items():
        if path.startswith(("refs/remotes/", "refs/tags/")) or path == "refs/stash":
            yield path, "a ref beside the branch"
        elif path.startswith("logs/") and content.count(b"\n") > 1:
            yield path, "a reflog"
        elif path in ("FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD"):
            yield path, "a head of another time"
        elif path == "packed-refs" and any(
            word in content for word in (b"refs/remotes/", b"refs/tags/", b"refs/stash")
        ):
            yield path, "a ref beside the branch"
        elif path == "config" and b"[remote " in content:
            yield path, "a remote"


def _git(folder: str, *arguments: str) -> bytes:
    """Git's output over a directory that may lack objects: what it can read is what an agent could."""
    command = ["git", "--git-dir", folder, *arguments]
    return subprocess.run(command, capture_output=True, check=False, env=git_environment()).stdout


def _later_releases(task: Task, installed: frozenset[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Installed copies of the project itself that are newer than the base commit."""
    own = normalised(task.repo.rpartition("/")[2])
    for name, version in sorted(installed):
        try:
            later = name == own and bool(task.version) and Version(version) > Version(task.version)
        except InvalidVersion:
            continue
        if later:
            yield f"{name}-{version}", f"release {version} of the project, the base commit is {task.version}"
