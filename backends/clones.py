"""Where the git history of a source lies on this machine, and how it gets there.

::

    git:PATH          that path, with a work tree or bare, read only
    git:URL           a bare clone in the store, fetched when it is there already
    pypi:NAME         a bare repository in the store that the miner makes of releases
    instances:FILE    the clone of the instance's repository: DIR/OWNER__NAME(.git), else cloned from GitHub
    github:OWNER/NAME DIR/OWNER__NAME(.git), else a bare clone in the store that the miner makes, beside its journal

Local clones (`--clones DIR`) come before any cloning. This is the only file that imports GitPython: it clones and
fetches. Everything else is read through the pipes of `backends.git`. Nothing is ever written to a user's repository.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from backends.git import GitError, Repository, git, git_environment
from mergemill.errors import InputError, Transient

if TYPE_CHECKING:
    from git import Repo

GITHUB = "https://github.com/{repo}.git"

FORGE_REFS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", "+refs/pull/*/head:refs/pull/*/head")
"""What a forge's repository is fetched of: branches, tags and the tips of pull requests, also of rejected ones."""

_SCP_LIKE = re.compile(r"^[\w.-]+@[\w.-]+:(?!/{2})")
_OWNER_NAME = re.compile(r"([^/:]+)/([^/:]+?)(?:\.git)?/?$")
_NETWORK = re.compile(
    r"could not resolve|unable to access|connection|timed out|early eof|rpc failed|remote end hung up|"
    r"network is unreachable|no space left|could not write|unable to write",
    re.IGNORECASE,
)


def is_url(place: str) -> bool:
    """Whether the place of a `git:` source is a URL (also `user@host:path`) and not a path."""
    return "://" in place or _SCP_LIKE.match(place) is not None


def repo_of_url(url: str) -> str:
    """`owner/name` of a clone URL; the host's name stands in for an owner where there is none."""
    found = _OWNER_NAME.search(url.rstrip("/"))
    return f"{found[1]}/{found[2]}" if found else url.strip("/:") or url


def forge_link(store: Path, repo: str) -> Path:
    """The link that leads from `owner/name` on GitHub to its folder in the store of clones (`miner.github.home`)."""
    return store / "github" / "names" / repo.lower().replace("/", "__")


class Clones:
    """The clones of one run. Safe for several processes: a clone appears whole, by one rename.

    Args:
        store: folder for the clones made here (`settings.store_dir / "clones"`).
        local: folder of the user's clones, named OWNER__NAME or OWNER__NAME.git, or None.
        attempts: how often a network operation is tried.
        first_wait: seconds before the second attempt; doubles from there.
    """

    def __init__(self, store: Path, local: Path | None = None, *, attempts: int = 3, first_wait: float = 1.0) -> None:
        self.store = store
        self.local = local
        self.attempts = attempts
        self.first_wait = first_wait

    def open(self, source: str, repo: str = "", *, fresh: bool = False) -> Repository:
        """The history behind a source word, checked to be whole.

        Args:
            source: `git:...`, `pypi:NAME`, `instances:FILE` or `github:OWNER/NAME`.
            repo: `owner/name`; needed for `instances:`, where the file does not say which one is meant.
            fresh: fetch a clone of ours that is there already; only the miner asks for that.

        Raises:
            InputError: not a repository, empty, a shallow or partial clone, or no such repository.
            Transient: the network failed.
        """
        scheme, _, place = source.partition(":")
        if scheme == "pypi":
            return checked(self.package(place), has_head=False)
        if scheme == "github":
            return checked(self.local_clone(place) or self._of_forge(place))
        if scheme == "git" and not is_url(place):
            return checked(Path(place))
        url = place if scheme == "git" else GITHUB.format(repo=repo)
        if found := self.local_clone(repo_of_url(url) if scheme == "git" else repo):
            return checked(found)
        return checked(self._cloned(url, fresh=fresh))

    def package(self, name: str) -> Path:
        """Where the repository made of a package's releases lies, whether or not it is there yet."""
        return self.store / "pypi" / f"{re.sub(r'[-_.]+', '-', name).lower()}.git"

    def local_clone(self, repo: str) -> Path | None:
        """The user's own clone of `owner/name` in the folder of `--clones`, or None."""
        if self.local is None:
            return None
        stem = repo.replace("/", "__")
        return next((path for end in ("", ".git") if (path := self.local / f"{stem}{end}").is_dir()), None)

    def fetch_forge(self, path: Path, url: str, *, head: str | None, token: str | None = None) -> None:
        """Make or renew the bare clone of a forge's repository. Nothing that was fetched before is dropped.

        Args:
            path: where it lies; another process that is at it is waited for.
            url: what the forge says to clone from.
            head: its default branch, or None.
            token: for a private repository; it is written nowhere.

        Raises:
            InputError: it cannot be cloned.
            Transient: the network or the disk failed.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            with (path.parent / "fetching.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._try(url, lambda: self._fetch_forge(path, url, head, _bearing(url, token)))
        except OSError as error:
            raise Transient(f"cannot write the clone of {url}: {error.strerror}") from error

    def _fetch_forge(self, path: Path, url: str, head: str | None, extra: dict[str, str]) -> None:
        from git import Repo  # noqa: PLC0415 - as below

        git("init", "-q", "--bare", "--template=", str(path))  # also mends what a kill left half made
        with Repo(path) as repo:
            with repo.git.custom_environment(**_environment(), **extra):
                _fetch_into(repo, url, *FORGE_REFS)
            if head:
                repo.git.symbolic_ref("HEAD", f"refs/heads/{head}")

    def _of_forge(self, repo: str) -> Path:
        path = forge_link(self.store, repo) / "repo.git"
        if not path.exists():
            raise InputError(f"there is no clone of github:{repo}", advice=f"mergemill mine github:{repo}")
        return path.resolve()

    def _cloned(self, url: str, *, fresh: bool) -> Path:
        digest = hashlib.sha256(url.encode()).hexdigest()[:8]
        path = self.store / "git" / f"{repo_of_url(url).replace('/', '__')}-{digest}.git"
        if not path.exists():
            self._try(url, lambda: self._clone(url, path))
        elif fresh:
            self._try(url, lambda: self._fetch(path))
        return path

    def _try(self, url: str, action: Callable[[], None]) -> None:
        """Run a network action, again after a failure that may pass."""
        from git import GitCommandError  # noqa: PLC0415 - importing GitPython runs git, which need not be there

        retrying = Retrying(
            stop=stop_after_attempt(self.attempts), wait=wait_exponential(multiplier=self.first_wait, max=30),
            retry=retry_if_exception_type(Transient), reraise=True,
        )  # fmt: skip
        for attempt in retrying:
            with attempt:
                try:
                    action()
                except GitCommandError as error:
                    raise _told(url, str(error.stderr)) from error
                except OSError as error:
                    raise Transient(f"cannot write the clone of {url}: {error.strerror}") from error

    def _clone(self, url: str, path: Path) -> None:
        from git import Repo  # noqa: PLC0415 - as above

        path.parent.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(prefix=".half-", dir=path.parent))
        try:
            # A mirror also holds refs/pull/*/head, by which rebase merges are recognised.
            Repo.clone_from(url, half, mirror=True, env=_environment()).close()
            try:
                half.rename(path)
            except OSError:
                if not path.exists():  # else another process was quicker, and its clone is as good
                    raise
        finally:
            shutil.rmtree(half, ignore_errors=True)

    def _fetch(self, path: Path) -> None:
        from git import Repo  # noqa: PLC0415 - as above

        with Repo(path) as repo, repo.git.custom_environment(**_environment()):
            _fetch_into(repo, "origin", "+refs/*:refs/*")


def _fetch_into(repo: Repo, url: str, *refs: str) -> None:
    """Fetch refs; branches that are gone stay, unless one stands where `name/of/another` has to."""
    from git import GitCommandError  # noqa: PLC0415 - as above

    # A repack in the background would outlive us, and drop what only a branch that is gone holds.
    fetch = ("git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "fetch", "--quiet", "--no-write-fetch-head")
    try:
        repo.git.execute([*fetch, url, *refs])
    except GitCommandError as error:
        if "cannot lock ref" not in str(error.stderr):
            raise
        repo.git.execute([*fetch, "--prune", url, "+refs/heads/*:refs/heads/*"])
        repo.git.execute([*fetch, url, *refs])


def checked(path: Path, *, has_head: bool = True) -> Repository:
    """The repository at `path`, when its whole history can be read.

    Args:
        path: its folder.
        has_head: whether HEAD must name a commit; a repository of releases has only tags.

    Raises:
        InputError: it cannot, with what to do about it.
    """
    if not path.is_dir():
        raise InputError(f"{path} is not a git repository", advice="there is no such folder")
    # Without a ceiling git would take the repository of a folder further up for the one that was named.
    ceiling = {"GIT_CEILING_DIRECTORIES": str(path.resolve().parent)}
    try:
        shallow = git("rev-parse", "--is-shallow-repository", cwd=path, env=ceiling).strip() == b"true"
    except GitError as error:
        raise InputError(f"{path} is not a git repository", advice="name the folder that holds .git") from error
    if shallow:
        raise InputError(f"{path} is a shallow clone", advice=f"git -C {path} fetch --unshallow")
    if _is_partial(path):
        raise InputError(f"{path} is a partial clone", advice="clone it again without --filter")
    repository = Repository(path)
    if has_head and not repository.has_commit("HEAD"):
        raise InputError(f"{path} is an empty repository", advice="its HEAD has no commits")
    return repository


def _is_partial(path: Path) -> bool:
    try:
        keys = git("config", "--local", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$", cwd=path)
    except GitError:  # no such key, or no configuration at all
        return False
    return any(row.partition(" ")[2].lower() not in ("false", "0", "no") for row in keys.decode().splitlines())


def _bearing(url: str, token: str | None) -> dict[str, str]:
    """The environment that lets git send a token to the host of `url` and to no other; nothing is written down."""
    if not token:
        return {}
    parts = urlsplit(url)
    secret = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"http.{parts.scheme}://{parts.netloc}/.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {secret}",
    }  # fmt: skip


def _environment() -> dict[str, str]:
    """What GitPython's git is run with; it adds to the process's own environment, so only the differences count."""
    ours = git_environment() | {"GIT_NO_LAZY_FETCH": "0"}
    return {key: value for key, value in ours.items() if os.environ.get(key) != value}


def _told(url: str, stderr: str) -> InputError | Transient:
    """Git's own last word as an error of ours: the network's fault, or the URL's."""
    lines = [line.strip(" '") for line in stderr.splitlines() if line.strip(" '")]
    said = next((line for line in lines if re.search(r"(fatal|error):", line)), lines[-1] if lines else "git failed")
    said = re.sub(r"^.*?(fatal|error): ", "", said)
    missing = re.search(r"not found|returned error: 40[134]|does not (exist|appear)|could not read Username", stderr)
    if _NETWORK.search(stderr) and not missing:
        return Transient(f"cannot reach {url}: {said}", advice="run the same command again when the network is back")
    return InputError(f"cannot clone {url}: {said}", advice="check the URL, or give a clone of your own with --clones")
