"""`pypi:` sources: a package's releases as a history, where no forge can be reached.

Each final release becomes a commit of a bare git repository in the store, made of its source distribution alone and
dated to its upload, so it has the same id on every machine. These commits have no parents: that is what lets the newest
be made first, and no more of them than are needed. What changed with a release is its difference to the release before
it: the highest lower version that was there already. The changelog's entry is the problem statement.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from backends.git import EMPTY_TREE, GitError, Repository, git
from mergemill.errors import InputError, Transient
from miner import changelog
from miner.changes import Change, Reason, Split, Unparsable, within
from miner.git.clone import reading
from miner.git.diffs import raw_diffs
from miner.pypi import sdists
from miner.pypi.index import Index, Sdist
from taskdb.records import PullRequest, Shape

if TYPE_CHECKING:
    from backends.services import Services

_NEVER = "1970-01-01T00:00:00+00:00"


class Releases:
    """The repository of one package's releases: a tag for each version that was asked for so far."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self.repository = Repository(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            git("init", "-q", "--bare", "--template=", str(path))  # also mends what a kill left half made
        except OSError as error:
            raise Transient(f"cannot write {path}: {error.strerror}") from error

    def commit(self, sdist: Sdist, index: Index) -> str:
        """The commit of a release, made now when it is not there yet.

        Raises:
            InputError: its archive cannot be used.
            Transient: it cannot be had this time.
        """
        tag = f"refs/tags/{sdist.version}"
        if found := self._made(tag, sdist):
            return found
        if sdist.size is not None and sdist.size > sdists.MAX_BYTES:
            raise InputError(f"{sdist.package.filename} has {sdist.size // 1024**2} MB")
        with tempfile.TemporaryDirectory(prefix="mergemill-sdist-") as folder:
            files = sdists.read(index.download(sdist, Path(folder)))
        try:
            self.repository.git("fast-import", "--quiet", "--done", "--force", data=self._stream(tag, sdist, files))
        except GitError as error:
            raise InputError(f"{sdist.package.filename} cannot be kept: {error}") from error
        return self.repository.resolve(tag)

    def _made(self, tag: str, sdist: Sdist) -> str | None:
        """The commit of an earlier run, when it was made of the same file."""
        try:
            message = self.repository.git("log", "-1", "--format=%H%n%B", tag).decode().strip()
        except GitError:
            return None
        sha, _, text = message.partition("\n")
        return sha if text.strip() == self._message(sdist) else None

    def _message(self, sdist: Sdist) -> str:
        return f"{self.name} {sdist.version}\n\n{sdist.package.filename}\nsha256:{sdist.digest}"

    def _stream(self, tag: str, sdist: Sdist, files: dict[str, sdists.File]) -> bytes:
        """What `git fast-import` reads: the tag appears with the commit, after everything it needs."""
        seconds = int(datetime.fromisoformat(sdist.uploaded or _NEVER).timestamp())
        message = self._message(sdist).encode()
        # Any fixed identity will do; a release does not say who made it.
        head = f"reset {tag}\n\ncommit {tag}\n" + "".join(
            f"{role} {self.name} <{self.name}@releases.invalid> {seconds} +0000\n" for role in ("author", "committer")
        )
        parts = [head.encode(), f"data {len(message)}\n".encode(), message, b"\n"]
        for path, file in files.items():
            quoted = path.encode(errors="surrogateescape").replace(b"\\", b"\\\\").replace(b'"', b'\\"')
            parts += [b'M %s inline "%s"\n' % (file.mode.encode(), quoted.replace(b"\n", b"\\n"))]
            parts += [f"data {len(file.content)}\n".encode(), file.content, b"\n"]
        return b"".join([*parts, b"done\n"])


def changes_of_releases(source: str, services: Services) -> Iterator[Change | InputError]:
    """Every release of a `pypi:` source between `since` and `until` against the one before it, newest first.

    Lazy: a release is downloaded when its turn comes.

    Raises:
        InputError: unknown package, or one without source distributions.
        Transient: the index cannot be reached.
    """
    name = canonicalize_name(source.partition(":")[2])
    with Index(services.settings) as index:
        known = index.sdists(name)
        releases = Releases(services.clones.package(name), name)
        with reading(releases.repository) as clone:
            for sdist in sorted(known, key=lambda s: (s.uploaded, s.version), reverse=True):
                if not within(services.settings, sdist.uploaded or _NEVER):
                    continue
                before = previous(sdist, known)
                try:
                    base = releases.commit(before, index) if before else EMPTY_TREE
                    merge = releases.commit(sdist, index)
                except InputError as error:
                    yield _unreadable(source, name, sdist, str(error))
                    continue
                files = next(raw_diffs(releases.repository, [(merge, base)])) if before else ()
                said = _entry(releases, name, sdist, merge)
                request = _record(source, name, sdist, before, base=base, merge=merge, statement=said)
                yield clone.change(request, files)


def previous(sdist: Sdist, known: list[Sdist]) -> Sdist | None:
    """The release that `sdist` followed: the highest lower version, of those uploaded no later. None for the first."""
    lower = [s for s in known if s.version < sdist.version and s.uploaded <= sdist.uploaded]
    return max(lower, key=lambda s: s.version, default=None)


def _entry(releases: Releases, name: str, sdist: Sdist, commit: str) -> str:
    """The changelog entry in the release's own tree."""
    tree = {
        entry.path: entry.oid
        for entry in releases.repository.ls_tree(commit)
        if changelog.may_tell(entry.path) and entry.mode != "120000"
    }
    contents = releases.repository.blobs(tree.values())
    return changelog.entry(dict(zip(tree, contents, strict=True)), name, sdist.version)


def _record(
    source: str, name: str, sdist: Sdist, before: Sdist | None, *, base: str, merge: str, statement: str
) -> PullRequest:
    return PullRequest(
        source=source, repo=f"{name}/{name}", name=f"{name}__{name}-{sdist.version}", number=None, shape=Shape.RELEASE,
        title=f"{name} {sdist.version}", body=statement, author="", merged_at=sdist.uploaded or _NEVER,
        base_commit=base, merge_commit=merge, problem_statement=statement,
        version=str(before.version) if before else "",
    )  # fmt: skip


def _unreadable(source: str, name: str, sdist: Sdist, why: str) -> Change:
    def nothing() -> Split:
        raise Unparsable(why)

    request = _record(source, name, sdist, None, base=EMPTY_TREE, merge=EMPTY_TREE, statement="")
    return Change(
        pull_request=request, files=(), make_split=nothing, find_license=str, settled=(Reason.UNREADABLE_SDIST, why)
    )
