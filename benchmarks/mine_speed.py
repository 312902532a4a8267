"""Measure the speed of reading histories: `python -m benchmarks.mine_speed REPO...`.

Compared over the changes that the miner finds in REPO, by wall-clock time and by CPU time (user and system, git's too):

- `diff-tree --raw`: one `git diff-tree --stdin -r --raw -M` over a given list of the changes' commits and bases; its
  output is discarded. It reads no message, and finds no change by itself;
- `diff-tree -p`: the same with patches, as PyDriller runs git;
- `mergemill`: everything up to the input of the rules: the log of HEAD and of all `refs/pull/*/head`, merges and the
  merged commits, detection of rebase merges, names, the files of each change, records;
- `PyDriller` (an extra: `pip install mergemill[benchmarks]`): commits with their modified files, at most LIMIT.

Some repetitions of each in turn; medians. The goal is at least half the speed of the first row.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from backends.git import EMPTY_TREE, GitRepository
from miner.git.history import find_changes, read_pull_requests

PATHS = ("diff-tree", "--stdin", "-r", "-z", "--root", "--raw", "--no-abbrev", "-M", "-l400")
PATCHES = ("diff-tree", "--stdin", "-r", "-p", "--root", "-M", "-l400")


def read_with_git(path: Path, pairs: list[str], options: tuple[str, ...]) -> int:
    """Run one `git diff-tree --stdin` and discard its output."""
    subprocess.run(["git", *options], cwd=path, input="".join(pairs).encode(), stdout=subprocess.DEVNULL, check=True)
    return len(pairs)


def read_with_mergemill(path: Path) -> int:
    """Read the history with the miner."""
    return sum(1 for _ in read_pull_requests(GitRepository(path), f"git:{path}", "owner/name"))


def read_with_pydriller(path: Path, limit: int) -> int | None:
    """Read as many commits with PyDriller, files by path only; None when it is not installed."""
    try:
        from pydriller import Repository as Driller  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    commits = islice(Driller(str(path), order="reverse").traverse_commits(), limit)
    return sum(1 for commit in commits if sum(len(file.filename) for file in commit.modified_files) >= 0)


def time_reader(measure: Callable[[], int | None]) -> tuple[float, float] | None:
    """Return wall-clock and CPU seconds for a thousand changes."""
    cpu, start = _cpu_seconds(), time.perf_counter()
    n = measure()
    wall = time.perf_counter() - start
    return None if n is None else (1000 * wall / n, 1000 * (_cpu_seconds() - cpu) / n)


def _cpu_seconds() -> float:
    """Return user and system time of this process and of finished children."""
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def main() -> int:
    """Measure and print ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repos", type=Path, nargs="+", metavar="REPO")
    parser.add_argument("--limit", type=int, default=200, help="commits that PyDriller reads (default 200)")
    parser.add_argument("--repetitions", type=int, default=5, help="of each reader (default 5)")
    options = parser.parse_args()
    for repo in options.repos:
        with tempfile.TemporaryDirectory(prefix="mergemill-benchmark-") as folder:
            # PyDriller needs a repository with a work tree; its objects are those of REPO.
            clone = Path(folder) / "clone"
            subprocess.run(["git", "clone", "-q", "--shared", "--no-checkout", repo.resolve(), clone], check=True)
            compare(repo, clone, options.limit, options.repetitions)
    return 0


def compare(repo: Path, clone: Path, limit: int, repetitions: int) -> None:
    """Measure all readers in turn and print their medians."""
    repository = GitRepository(repo)
    pairs = [
        f"{u.commit.sha} {u.base}\n".replace(f" {EMPTY_TREE}", "")
        for u in find_changes(repository, repository.resolve("HEAD"))
    ]
    ways: dict[str, Callable[[], int | None]] = {
        "diff-tree --raw": lambda: read_with_git(repo, pairs, PATHS),
        "diff-tree -p": lambda: read_with_git(repo, pairs, PATCHES),
        "mergemill": lambda: read_with_mergemill(repo),
        "PyDriller": lambda: read_with_pydriller(clone, limit),
    }
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(repetitions):
        for name, measure in ways.items():
            if (times := time_reader(measure)) is not None:
                seconds[name].append(times)
    medians = {
        name: [statistics.median(column) for column in zip(*timings, strict=True)]
        for name, timings in seconds.items()
        if timings
    }
    print(f"{repo.name}: {len(pairs)} changes, medians of {repetitions}; ratios to the first row")
    print(f"{'':<16}{'changes/s':>10}{'ratio':>8}{'per CPU s':>12}{'ratio':>8}")
    wall_of_git, cpu_of_git = medians["diff-tree --raw"]
    for name, (wall, cpu) in medians.items():
        print(f"{name:<16}{1000 / wall:>10.0f}{wall_of_git / wall:>8.2f}{1000 / cpu:>12.0f}{cpu_of_git / cpu:>8.2f}")
    if "PyDriller" not in medians:
        print("PyDriller       not installed: pip install 'mergemill[benchmarks]'")


if __name__ == "__main__":
    sys.exit(main())
