"""Clones: where the git history of a source is stored on this machine, and how it is fetched.

::

    git:PATH          that path, with a work tree or bare, read only
    git:URL           a bare clone in the store, fetched when it is there already
    pypi:NAME         a bare repository in the store that the miner creates from releases
    instances:FILE    the clone of the instance's repository: DIR/OWNER__NAME(.git), else cloned from GitHub
    github:OWNER/NAME DIR/OWNER__NAME(.git), else a bare clone in the store that the miner creates, beside its journal

Local clones (`--clones DIR`) take precedence over cloning. This is the only file that imports GitPython, for clone and
fetch; everything else is read through the pipes of `backends.git`. Nothing is ever written to a user's repository.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from backends.base_trees import BaseTreeStore
from backends.git import GitError, GitRepository, build_git_environment, run_git
from core.errors import InputError, Transient, make_write_error

if TYPE_CHECKING:
    from git import Repo

GITHUB = "https://github.com/{repo}.git"

FORGE_REFS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", "+refs/pull/*/head:refs/pull/*/head")
"""Refs that are fetched from a forge: branches, tags and heads of pull requests, also of closed requests."""

_SCP_PATTERN = re.compile(r"^[\w.-]+@[\w.-]+:(?!/{2})")
_OWNER_NAME_PATTERN = re.compile(r"([^/:]+)/([^/:]+?)(?:\.git)?/?$")
_NETWORK_PATTERN = re.compile(
    r"could not resolve|unable to access|connection|timed out|early eof|rpc failed|remote end hung up|"
    r"network is unreachable|no space left|could not write|unable to write",
    re.IGNORECASE,
)


def is_url(location: str) -> bool:
    """Return whether the location of a `git:` source is a URL (also `user@host:path`) and not a path."""
    return "://" in location or _SCP_PATTERN.match(location) is not None


def split_head(source: str) -> tuple[str, str]:
    """Return location and branch of a `head:` source; the branch is empty where none is named."""
    location, _, revision = source.removeprefix("head:").partition("#")
    return location, revision


def _find_history(source: str) -> str:
    """Return the source whose clone a source reads: that of a head is its repository's."""
    return f"git:{split_head(source)[0]}" if source.startswith("head:") else source


def parse_repo_name(url: str) -> str:
    """Return `owner/name` of a clone URL; the host's name is the owner where there is none."""
    match = _OWNER_NAME_PATTERN.search(url.rstrip("/"))
    return f"{match[1]}/{match[2]}" if match else url.strip("/:") or url


def build_forge_link(store: Path, repo: str) -> Path:
    """Return the link from `owner/name` on GitHub to its folder in the store (`miner.github.repository_folders`)."""
    return store / "github" / "names" / repo.lower().replace("/", "__")


class CloneStore:
    """Clones of a run. Safe for several processes: a clone appears complete, by a single rename.

    Args:
        store: folder for the clones made here (`settings.storage.store_dir / "clones"`); base trees lie beside it.
        local: folder of the user's clones, named OWNER__NAME or OWNER__NAME.git, or None.
        attempts: how often a network operation is attempted.
        first_wait: seconds before the second attempt; doubles from there.
    """

    def __init__(self, store: Path, local: Path | None = None, *, attempts: int = 3, first_wait: float = 1.0) -> None:
        self.folder = store
        self.local_folder = local
        self.trees = BaseTreeStore(store.parent / "trees")
        self.max_attempts = attempts
        self.first_wait = first_wait

    def open(self, source: str, repo: str = "", *, fresh: bool = False) -> GitRepository:
        """Return the history of a source, checked to be complete.

        Args:
            source: `git:...`, `pypi:NAME`, `instances:FILE`, `github:OWNER/NAME` or `head:...`.
            repo: `owner/name`; needed for `instances:`, whose file may name several.
            fresh: fetch an existing clone of the store; only the miner does.

        Raises:
            InputError: not a repository, empty, a shallow or partial clone, or no such repository.
            Transient: the network failed.
        """
        source = _find_history(source)
        scheme, _, location = source.partition(":")
        if scheme == "pypi":
            return open_checked(self.find_package(location), has_head=False)
        # The user's own clone is used as it is: it is never fetched.
        if local := self._find_local(source, repo):
            return open_checked(local)
        if scheme == "github" and self.find_existing(source) is None:
            raise InputError(f"there is no clone of {source}", advice=f"mergemill mine {source}")
        if scheme == "instances" or (scheme == "git" and is_url(location)):
            url = location if scheme == "git" else GITHUB.format(repo=repo)
            return open_checked(self._ensure_clone(url, fresh=fresh))
        if scheme == "git" and repo and not Path(location).exists():
            advice = f"if it has moved, name it {repo.replace('/', '__')} and give its parent folder with --clones"
            raise InputError(f"the clone {location} of {repo} is not there", advice=advice)
        return open_checked(self.find_existing(source) or Path(location))

    def open_tree(self, source: str, repo: str, commit: str) -> GitRepository:
        """Return a repository that contains a commit and its tree, with or without history.

        Base trees in the store need no clone; the clone of the source is used for commits that are not kept.

        Raises:
            InputError, Transient: as in `open`.
        """
        return self.trees.find(repo, commit) or self.open(source, repo)

    def open_history(self, source: str, repo: str, commit: str) -> GitRepository:
        """Return the clone of a source; the base trees in the store where it is gone, or lacks a commit made there.

        Raises:
            InputError, Transient: as in `open`.
        """
        kept = self.trees.find(repo, commit)
        try:
            history = self.open(source, repo)
        except (InputError, Transient):
            if kept is None:
                raise
            return kept
        # Tasks made by this project have commits of their own, which no clone of the source has.
        return history if kept is None or history.has_commit(commit) else kept

    def keep_tree(self, source: str, repo: str, commit: str) -> None:
        """Keep the tree of a commit in the store, from the clone of its source.

        Raises:
            InputError: the clone is missing or lacks objects.
            Transient: the network or the disk failed.
        """
        if self.trees.find(repo, commit) is None:
            self.trees.keep(repo, commit, self.open(source, repo))

    def find_existing(self, source: str, repo: str = "") -> Path | None:
        """Return the clone of a source on this machine, without a network; None when there is none."""
        source = _find_history(source)
        scheme, _, location = source.partition(":")
        if clone := self._find_local(source, repo):
            return clone
        if scheme == "pypi":
            path = self.find_package(location)
        elif scheme == "github":
            path = (build_forge_link(self.folder, location) / "repo.git").resolve()
        elif scheme == "git" and not is_url(location):
            path = Path(location)
        else:
            path = self._build_clone_path(location if scheme == "git" else GITHUB.format(repo=repo))
        return path if path.is_dir() else None

    def _find_local(self, source: str, repo: str) -> Path | None:
        """Return the user's own clone of a source in the folder of `--clones`; a path that exists is used first."""
        scheme, _, location = source.partition(":")
        if scheme == "pypi" or (scheme == "git" and not is_url(location) and (not repo or Path(location).exists())):
            return None
        names = {"github": location, "git": parse_repo_name(location) if is_url(location) else repo}
        return self.find_local_clone(names.get(scheme, repo))

    def find_package(self, name: str) -> Path:
        """Return the path of the repository of a package's releases, whether or not it exists."""
        return self.folder / "pypi" / f"{re.sub(r'[-_.]+', '-', name).lower()}.git"

    def find_local_clone(self, repo: str) -> Path | None:
        """Return the user's own clone of `owner/name` in the folder of `--clones`, or None."""
        if self.local_folder is None:
            return None
        stem = repo.replace("/", "__")
        return next((path for end in ("", ".git") if (path := self.local_folder / f"{stem}{end}").is_dir()), None)

    def fetch_forge(self, path: Path, url: str, *, head: str | None, token: str | None = None) -> None:
        """Create or update the bare clone of a forge's repository. Commits fetched before are kept.

        Args:
            path: path of the clone; waits for another process that updates it.
            url: clone URL of the forge.
            head: default branch, or None.
            token: token for a private repository; it is not stored.

        Raises:
            InputError: it cannot be cloned.
            Transient: the network or the disk failed.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            # Two fetches into the same folder would each fail on the other's locks of refs.
            with (path.parent / "fetching.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._retry(url, lambda: self._fetch_forge(path, url, head, _build_token_environment(url, token)))
        except OSError as error:
            raise make_write_error(f"cannot write the clone of {url}", error) from error

    def _fetch_forge(self, path: Path, url: str, head: str | None, extra: dict[str, str]) -> None:
        from git import Repo  # noqa: PLC0415 - as below

        run_git("init", "-q", "--bare", "--template=", str(path))  # also repairs a clone whose creation was killed
        with Repo(path) as repo:
            with repo.git.custom_environment(**_build_environment(), **extra):
                _fetch_into(repo, url, *FORGE_REFS)
            if head:
                repo.git.symbolic_ref("HEAD", f"refs/heads/{head}")

    def _build_clone_path(self, url: str) -> Path:
        digest = hashlib.sha256(url.encode()).hexdigest()[:8]
        return self.folder / "git" / f"{parse_repo_name(url).replace('/', '__')}-{digest}.git"

    def _ensure_clone(self, url: str, *, fresh: bool) -> Path:
        path = self._build_clone_path(url)
        if not path.exists():
            self._retry(url, lambda: self._clone(url, path))
        elif fresh:
            self._retry(url, lambda: self._fetch(path))
        return path

    def _retry(self, url: str, action: Callable[[], None]) -> None:
        """Run a network action, and retry it after a transient failure."""
        from git import GitCommandError  # noqa: PLC0415 - importing GitPython runs git, which need not be there

        retrying = Retrying(
            stop=stop_after_attempt(self.max_attempts),
            wait=wait_exponential(multiplier=self.first_wait, max=30),
            retry=retry_if_exception_type(Transient),
            reraise=True,
        )
        for attempt in retrying:
            with attempt:
                try:
                    action()
                except GitCommandError as error:
                    raise _translate_error(url, str(error.stderr)) from error
                except OSError as error:
                    raise make_write_error(f"cannot write the clone of {url}", error) from error

    def _clone(self, url: str, path: Path) -> None:
        from git import Repo  # noqa: PLC0415 - as above

        path.parent.mkdir(parents=True, exist_ok=True)
        # Renamed when it is complete: a killed process leaves nothing that looks like a clone.
        partial = path.parent / f".half-{uuid.uuid4().hex}"
        try:
            # A mirror includes refs/pull/*/head, by which rebase merges are recognised.
            Repo.clone_from(url, partial, mirror=True, env=_build_environment()).close()
            try:
                partial.rename(path)
            except OSError:
                if not path.exists():  # else another process has cloned it first
                    raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _fetch(self, path: Path) -> None:
        from git import Repo  # noqa: PLC0415 - as above

        with Repo(path) as repo, repo.git.custom_environment(**_build_environment()):
            _fetch_into(repo, "origin", "+refs/*:refs/*")


def _fetch_into(repo: Repo, url: str, *refs: str) -> None:
    """Fetch refs; deleted branches are kept, unless some branch is in the way of a branch `NAME/...`."""
    from git import GitCommandError  # noqa: PLC0415 - as above

    # A repack in the background would outlive this process and drop commits that no ref reaches.
    fetch = ("git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "fetch", "--quiet", "--no-write-fetch-head")
    try:
        repo.git.execute([*fetch, url, *refs])
    except GitCommandError as error:
        # A branch `a` that is gone keeps a new branch `a/b` out; only then are deleted branches pruned.
        if "cannot lock ref" not in str(error.stderr):
            raise
        repo.git.execute([*fetch, "--prune", url, "+refs/heads/*:refs/heads/*"])
        repo.git.execute([*fetch, url, *refs])


def open_checked(path: Path, *, has_head: bool = True) -> GitRepository:
    """Return the repository at `path` after checking that its history is complete.

    Args:
        path: its folder.
        has_head: whether HEAD must name a commit; a repository of releases has only tags.

    Raises:
        InputError: it is not a repository, or shallow, partial or empty; the advice names the remedy.
    """
    if not path.is_dir():
        raise InputError(f"{path} is not a git repository", advice="there is no such folder")
    # Without a ceiling git would use the repository of a parent folder.
    ceiling = {"GIT_CEILING_DIRECTORIES": str(path.resolve().parent)}
    question = ("rev-parse", "--is-shallow-repository")
    try:
        shallow, *head = run_git(*question, *(["HEAD^{commit}"] if has_head else []), cwd=path, env=ceiling).split()
    except GitError:
        # Which of both is not there?
        try:
            shallow, head = run_git(*question, cwd=path, env=ceiling).strip(), []
        except GitError as error:
            raise InputError(f"{path} is not a git repository", advice="name the folder that holds .git") from error
    if shallow == b"true":
        raise InputError(f"{path} is a shallow clone", advice=f"git -C {path} fetch --unshallow")
    if _is_partial(path):
        raise InputError(f"{path} is a partial clone", advice="clone it again without --filter")
    if has_head and not head:
        raise InputError(f"{path} is an empty repository", advice="its HEAD has no commits")
    return GitRepository(path)


def _is_partial(path: Path) -> bool:
    own = path / ".git"
    try:
        # Most files name no such key, and need no process of git to read them.
        if not re.search(rb"(?i)partialclone|promisor", ((own if own.exists() else path) / "config").read_bytes()):
            return False
    except OSError:  # as in a linked work tree
        pass
    try:
        keys = run_git(
            "config", "--local", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$", cwd=path
        )
    except GitError:  # no such key, or no configuration at all
        return False
    return any(row.partition(" ")[2].lower() not in ("false", "0", "no") for row in keys.decode().splitlines())


def _build_token_environment(url: str, token: str | None) -> dict[str, str]:
    """Return the environment that makes git send a token to the host of `url` only; nothing is stored."""
    if not token:
        return {}
    parts = urlsplit(url)
    secret = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{parts.scheme}://{parts.netloc}/.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {secret}",
    }


def _build_environment() -> dict[str, str]:
    """Return the environment of GitPython's git: differences only, because it is added to this process's own."""
    environment = build_git_environment() | {"GIT_NO_LAZY_FETCH": "0"}
    return {key: value for key, value in environment.items() if os.environ.get(key) != value}


def _translate_error(url: str, stderr: str) -> InputError | Transient:
    """Return git's own error message as Transient (network) or InputError (URL)."""
    lines = [line.strip(" '") for line in stderr.splitlines() if line.strip(" '")]
    message = next((line for line in lines if re.search(r"(fatal|error):", line)), lines[-1] if lines else "git failed")
    message = re.sub(r"^.*?(fatal|error): ", "", message)
    missing = re.search(r"not found|returned error: 40[134]|does not (exist|appear)|could not read Username", stderr)
    if _NETWORK_PATTERN.search(stderr) and not missing:
        return Transient(f"cannot reach {url}: {message}", advice="run the same command again when the network is back")
    return InputError(
        f"cannot clone {url}: {message}", advice="check the URL, or give a clone of your own with --clones"
    )
