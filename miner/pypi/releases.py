"""`pypi:` sources: a package's releases as a history, without a forge.

Each final release becomes a commit of a bare git repository in the store, made from its source distribution only and
dated by its upload, so it has the same id on every machine. These commits have no parents, so the newest can be made
first and only as many as needed. The change of a release is its difference to the release before it: the highest lower
version that existed at that time. The changelog's entry is the problem statement.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from backends.git import EMPTY_TREE, GitError, GitRepository, run_git
from backends.sandbox.container_names import make_folder_prefix
from core.errors import InputError, make_write_error
from miner import changelog
from miner.changes import Change, ChangeSource, PatchSplit, Reason, UnparsablePatchError, is_in_date_range
from miner.git.clone import open_reader
from miner.git.diffs import read_raw_diffs
from miner.pypi import sdists
from miner.pypi.index import PackageIndex, Sdist
from taskdb.records import PullRequest, Shape

if TYPE_CHECKING:
    from backends.services import Services

_UNKNOWN_DATE = "1970-01-01T00:00:00+00:00"


class ReleaseRepository:
    """Repository of a package's releases, with a tag for each version that was needed so far."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self.repository = GitRepository(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            run_git("init", "-q", "--bare", "--template=", str(path))  # also repairs a partial one
        except OSError as error:
            raise make_write_error(f"cannot write {path}", error) from error

    def commit_release(self, sdist: Sdist, index: PackageIndex) -> str:
        """Return the commit of a release; create it when there is none.

        Raises:
            InputError: its archive is unusable.
            Transient: the download failed.
        """
        tag = f"refs/tags/{sdist.version}"
        if commit := self._find_existing_commit(tag, sdist):
            return commit
        if sdist.size is not None and sdist.size > sdists.MAX_BYTES:
            raise InputError(f"{sdist.package.filename} has {sdist.size // 1024**2} MB")
        with tempfile.TemporaryDirectory(prefix=make_folder_prefix("sdist")) as folder:
            files = sdists.read_sdist(index.download(sdist, Path(folder)))
        try:
            self.repository.run_git(
                "fast-import", "--quiet", "--done", "--force", data=self._build_import_stream(tag, sdist, files)
            )
        except GitError as error:
            raise InputError(f"{sdist.package.filename} cannot be stored: {error}") from error
        return self.repository.resolve(tag)

    def _find_existing_commit(self, tag: str, sdist: Sdist) -> str | None:
        """Return the commit of an earlier run, if it was made from the same file."""
        try:
            message = self.repository.run_git("log", "-1", "--format=%H%n%B", tag).decode().strip()
        except GitError:
            return None
        sha, _, text = message.partition("\n")
        return sha if text.strip() == self._build_message(sdist) else None

    def _build_message(self, sdist: Sdist) -> str:
        return f"{self.name} {sdist.version}\n\n{sdist.package.filename}\nsha256:{sdist.digest}"

    def _build_import_stream(self, tag: str, sdist: Sdist, files: dict[str, sdists.SdistFile]) -> bytes:
        """Build the input of `git fast-import`: the tag is written with the commit, after all its files."""
        seconds = int(datetime.fromisoformat(sdist.uploaded or _UNKNOWN_DATE).timestamp())
        message = self._build_message(sdist).encode()
        # Any fixed identity will do; a release has no author.
        head = f"reset {tag}\n\ncommit {tag}\n" + "".join(
            f"{role} {self.name} <{self.name}@releases.invalid> {seconds} +0000\n" for role in ("author", "committer")
        )
        parts = [head.encode(), f"data {len(message)}\n".encode(), message, b"\n"]
        for path, file in files.items():
            quoted = path.encode(errors="surrogateescape").replace(b"\\", b"\\\\").replace(b'"', b'\\"')
            parts += [b'M %s inline "%s"\n' % (file.mode.encode(), quoted.replace(b"\n", b"\\n"))]
            parts += [f"data {len(file.content)}\n".encode(), file.content, b"\n"]
        return b"".join([*parts, b"done\n"])


def read_releases(source: str, services: Services) -> Iterator[Change | InputError]:
    """Yield every release of a `pypi:` source between `since` and `until` compared with the previous, newest first.

    Lazy: a release is downloaded when it is needed.

    Raises:
        InputError: unknown package, or a package without source distributions.
        Transient: the index cannot be reached.
    """
    name = canonicalize_name(source.partition(":")[2])
    with PackageIndex(services.settings.host) as index:
        known = index.list_sdists(name)
        releases = ReleaseRepository(services.clones.find_package(name), name)
        with open_reader(releases.repository) as clone:
            for sdist in sorted(known, key=lambda s: (s.uploaded, s.version), reverse=True):
                if not is_in_date_range(services.settings.source, sdist.uploaded or _UNKNOWN_DATE):
                    continue
                before = find_previous_release(sdist, known)
                try:
                    base = releases.commit_release(before, index) if before else EMPTY_TREE
                    merge = releases.commit_release(sdist, index)
                except InputError as error:
                    yield _build_unreadable_change(source, name, sdist, str(error))
                    continue
                files = next(read_raw_diffs(releases.repository, [(merge, base)])) if before else ()
                statement = _read_changelog_entry(releases, name, sdist, merge)
                request = _build_record(source, name, sdist, before, base=base, merge=merge, statement=statement)
                yield clone.build_change(request, files)


def find_previous_release(sdist: Sdist, known: list[Sdist]) -> Sdist | None:
    """Return the highest lower version uploaded no later than `sdist`; None for the first release."""
    lower = [s for s in known if s.version < sdist.version and s.uploaded <= sdist.uploaded]
    return max(lower, key=lambda s: s.version, default=None)


def _read_changelog_entry(releases: ReleaseRepository, name: str, sdist: Sdist, commit: str) -> str:
    """Return the changelog entry in the release's own tree."""
    tree = {
        entry.path: entry.oid
        for entry in releases.repository.ls_tree(commit)
        if changelog.is_changelog_path(entry.path) and entry.mode != "120000"
    }
    contents = releases.repository.read_blobs(tree.values())
    return changelog.find_entry(dict(zip(tree, contents, strict=True)), name, sdist.version)


def _build_record(
    source: str, name: str, sdist: Sdist, before: Sdist | None, *, base: str, merge: str, statement: str
) -> PullRequest:
    return PullRequest(
        source=source,
        repo=f"{name}/{name}",
        name=f"{name}__{name}-{sdist.version}",
        number=None,
        shape=Shape.RELEASE,
        title=f"{name} {sdist.version}",
        body=statement,
        author="",
        merged_at=sdist.uploaded or _UNKNOWN_DATE,
        base_commit=base,
        merge_commit=merge,
        problem_statement=statement,
        version=str(before.version) if before else "",
    )


@dataclass(frozen=True)
class UnreadableSource(ChangeSource):
    """Source of a release that cannot be read. `problem`: the problem with it."""

    problem: str

    def make_split(self) -> PatchSplit:
        """See ChangeSource."""
        raise UnparsablePatchError(self.problem)

    def find_license(self) -> str:
        """See ChangeSource."""
        return ""


def _build_unreadable_change(source: str, name: str, sdist: Sdist, why: str) -> Change:
    request = _build_record(source, name, sdist, None, base=EMPTY_TREE, merge=EMPTY_TREE, statement="")
    return Change(
        pull_request=request,
        files=(),
        source=UnreadableSource(why),
        source_rejection=(Reason.UNREADABLE_SDIST, why),
    )
