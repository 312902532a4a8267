"""Find solution and future information in the layers of a task's image, including files that a later layer hides.

The audit looks for added lines of the gold and the test patch that the base tree does not have (in texts, archives and
every git object), further commits, other traces of history in git (remotes, tags, stashes, reflogs), unreachable
objects, and later releases of the project among installed packages. Compiled files are not decompiled.
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.version import InvalidVersion, Version

from backends.git import build_git_environment, list_patch_paths
from backends.sandbox.container_names import make_folder_prefix
from backends.services import Services
from evaluation.solution_lines import encode_lines, extract_added_lines, hash_lines
from taskdb.records import Task
from taskdb.records.oracles import ReviewOracle
from verifiers.base_tree import BaseTreeIndex, index_base_tree, read_base_files, read_review_files
from verifiers.layers import LayerReader, group_git_directories, normalize_package_name

MIN_MATCHES = 3
"""Minimum number of distinct patch lines in a single file outside the project: fewer may be coincidence."""
MIN_MATCH_SHARE = 0.2
"""Minimum share of the patch's lines in a single file outside the project, where it is more than `MIN_MATCHES`."""
REPAIRED_DIFFS = ("diff", "cross-file")
"""Forms of reviews of a change that is older than the base tree, and whose defects the gold patch repairs."""
MIN_COPY_SHARE = 0.5
"""Minimum share of the patch's lines in a copy of a file of the patch, where it is fewer than other files need."""


@dataclass(frozen=True, kw_only=True)
class ImageLeak:
    """A piece of solution or future information in an image.

    Attributes:
        layer: diff id of the layer.
        path: file in the layer.
        description: a line for people.
    """

    layer: str
    path: str
    description: str


@dataclass(frozen=True, kw_only=True)
class _PatchLines:
    """Hashes of the lines of a patch that the base tree does not have."""

    patch: str
    lines: frozenset[int]

    def describe_match(self, line_hashes: set[int], *, inside: bool, is_copy: bool = False) -> str | None:
        """Describe a match with the lines of a file; None if it may be coincidence.

        Inside the project a single line is proof. A copy has the place of a file of the patch in an installed package.
        """
        hits = len(self.lines & line_hashes)
        enough = 1 if inside else max(MIN_MATCHES, round(MIN_MATCH_SHARE * len(self.lines)))
        if is_copy:
            enough = min(enough, max(1, round(MIN_COPY_SHARE * len(self.lines))))
        return f"{hits} added lines of the {self.patch} patch" if hits >= enough else None


_INSTALLED = re.compile(r"(^|/)(node_modules|site-packages|dist-packages|vendor)/")
"""Folders in the tree into which a build installs packages of others; what a commit has there is in the base tree."""
_OTHER_REFS = (b"refs/remotes/", b"refs/tags/", b"refs/stash")
_reader = LayerReader()


def audit_image(task: Task, services: Services, base: BaseTreeIndex | None = None) -> tuple[ImageLeak, ...]:
    """Return all solution and future information in the task's image; empty for a clean image.

    Args:
        task: the task whose image is read.
        services: sandbox, clones and artifacts.
        base: the base tree; read from the clone of the task's source by default.

    Raises:
        InputError: the image does not exist, or the base tree cannot be read.
        Transient: the engine failed.
    """
    patches = _select_patch_lines(task, services, (base or index_base_tree(read_base_files(task, services))).lines)
    copies, workdir = _list_copy_suffixes(task, services), task.require_plan().workdir.strip("/") + "/"
    findings: list[ImageLeak] = []
    with services.images.open_layers(task.image) as layers:
        for diff_id, tar in layers:
            layer = _reader.read(diff_id, tar)
            make_leak = functools.partial(ImageLeak, layer=diff_id)
            for path, lines in layer.files:
                inside = path.startswith(workdir) and not _INSTALLED.search(path.removeprefix(workdir))
                is_copy = path.endswith(copies)
                matches = [
                    patch_lines.describe_match(set(lines), inside=inside, is_copy=is_copy) for patch_lines in patches
                ]
                findings += [make_leak(path=path, description=description) for description in matches if description]
            for root, files in group_git_directories(layer.git_files).items():
                findings += [
                    make_leak(path=path, description=description)
                    for path, description in _audit_git_directory(root, files, patches)
                ]
            findings += [
                make_leak(path=path, description=description)
                for path, description in _find_later_releases(task, layer.packages)
            ]
    return tuple(findings)


def audit_review_tree(task: Task, services: Services, base: BaseTreeIndex) -> Iterator[tuple[str, str]]:
    """Yield path and description of files in the tree of a review that hold lines of the gold patch.

    The tree of a review of a diff is older than the base tree, so lines that only the gold patch adds are not its own.
    Other forms are not examined: their tree is the base tree, or their gold patch contains the version under review.

    Args:
        task: any task.
        services: clones and artifacts.
        base: base tree of the task.

    Raises:
        InputError: the tree is neither in the store nor in a clone of the task's source.
    """
    oracle = task.oracle
    if not isinstance(oracle, ReviewOracle) or oracle.tree is None or oracle.target not in REPAIRED_DIFFS:
        return
    patches = _select_patch_lines(task, services, base.lines)
    for path, content in read_review_files(task, oracle.tree, services):
        lines = set(hash_lines(content))
        for patch_lines in patches:
            if description := patch_lines.describe_match(lines, inside=False):
                yield path, description


def _select_patch_lines(task: Task, services: Services, old: frozenset[int]) -> list[_PatchLines]:
    """Return the distinctive lines of both patches, and of their base64 encoding as it occurs in scripts."""
    patches = []
    for name, digest in (("gold", task.gold_patch), ("test", task.test_patch)):
        patch = services.artifacts.get(digest)
        lines = frozenset(hash_lines(extract_added_lines(patch))) - old
        patches += [
            _PatchLines(patch=name, lines=lines),
            _PatchLines(patch=name, lines=frozenset(map(hash, encode_lines(patch)))),
        ]
    return [patch_lines for patch_lines in patches if patch_lines.lines]


def _list_copy_suffixes(task: Task, services: Services) -> tuple[str, ...]:
    """Return the ends of the paths of copies of the gold patch's files: folder and name, such as `/cart/cart.py`.

    A file at the root is in a folder with the name of the project.
    """
    project, paths = task.repo.rpartition("/")[2], list_patch_paths(services.artifacts.get(task.gold_patch))
    return tuple("/" + "/".join(PurePosixPath(project, path).parts[-2:]) for path in paths)


def _audit_git_directory(
    root: str, files: Mapping[str, bytes], patches: list[_PatchLines]
) -> Iterator[tuple[str, str]]:
    """Yield (path, description) for everything in a git directory besides a commit."""
    yield from ((f"{root}/{path}", description) for path, description in _find_extra_refs(files))
    with tempfile.TemporaryDirectory(prefix=make_folder_prefix("audit")) as folder:
        for path, content in files.items():
            inside = PurePosixPath(path)
            if inside.parts[:1] == ("objects",) and ".." not in inside.parts and inside.parts[1:2] != ("info",):
                target = Path(folder, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        for needed in ("refs", "objects"):
            Path(folder, needed).mkdir(exist_ok=True)
        Path(folder, "HEAD").write_text("ref: refs/heads/none\n")
        listed = _run_git(folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)").split(
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
                line.split()[0].decode() for line in _run_git(folder, "rev-list", "--objects", commits[0]).splitlines()
            }
            if unreachable := [oid for oid, _ in rows if oid not in reached]:
                yield root, f"{len(unreachable)} objects not reachable from the commit, such as {unreachable[0]}"
        text = set(hash_lines(_run_git(folder, "cat-file", "--batch-all-objects", "--batch")))
        yield from (
            (root, description)
            for patch_lines in patches
            if (description := patch_lines.describe_match(text, inside=True))
        )


def _find_extra_refs(files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield (path, description) for refs besides the branch: remotes, tags, stashes, reflogs, other heads."""
    for path, content in files.items():
        if path.startswith(("refs/remotes/", "refs/tags/")) or path == "refs/stash":
            yield path, "a ref besides the branch"
        elif path.startswith("logs/") and content.count(b"\n") > 1:
            yield path, "a reflog"
        elif path in ("FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD"):
            yield path, "another head"
        elif path == "packed-refs" and any(ref in content for ref in _OTHER_REFS):
            yield path, "a ref besides the branch"
        elif path == "config" and b"[remote " in content:
            yield path, "a remote"


def _run_git(folder: str, *arguments: str) -> bytes:
    """Return git's output for a directory that may lack objects; an agent could read the same."""
    command = ["git", "--git-dir", folder, *arguments]
    return subprocess.run(command, capture_output=True, check=False, env=build_git_environment()).stdout


def _find_later_releases(task: Task, installed: frozenset[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield installed copies of the project itself that are newer than the base commit."""
    own = normalize_package_name(task.repo.rpartition("/")[2])
    for name, version in sorted(installed):
        try:
            later = name == own and bool(task.version) and Version(version) > Version(task.version)
        except InvalidVersion:
            continue
        if later:
            yield f"{name}-{version}", f"release {version} of the project, the base commit is {task.version}"
