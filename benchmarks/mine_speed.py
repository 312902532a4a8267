"""How fast histories are read: `python -m benchmarks.mine_speed REPO`.

Compared over the changes of REPO's first-parent line:

- git alone: one `git diff-tree --stdin` over the same commits with the same kind of output (raw rows), thrown away;
- git alone with patches, which is what PyDriller reads too;
- mergemill: the miner's reading of the history, from `git log` to parsed records with the files each change touches;
- PyDriller (an extra: `pip install mergemill[benchmarks]`): the files of each commit of the same line, at most LIMIT.

Three repetitions of each in turn; medians. The goal is at least half the speed of git alone.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from backends.git import EMPTY_TREE, Repository
from miner.history import pull_requests, units

REPETITIONS = 3
PATHS = ("diff-tree", "--stdin", "-r", "-z", "--root", "--raw", "--no-abbrev", "-M", "-l400")
PATCHES = ("diff-tree", "--stdin", "-r", "-p", "--root", "-M", "-l400")


def by_git(path: Path, pairs: list[str], options: tuple[str, ...]) -> int:
    """One `git diff-tree --stdin`, its output counted by nobody."""
    subprocess.run(
        ["git", *options], cwd=path, input="".join(pairs).encode(), stdout=subprocess.DEVNULL, check=True
    )  # fmt: skip
    return len(pairs)


def by_mergemill(path: Path) -> int:
    """The miner's own reading."""
    return sum(1 for _ in pull_requests(Repository(path), f"git:{path}", "owner/name"))


def by_pydriller(path: Path, limit: int) -> int | None:
    """PyDriller's reading of as many commits, files by path only; None when it is not installed."""
    try:
        from pydriller import Repository as Driller  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    commits = islice(Driller(str(path), order="reverse").traverse_commits(), limit)
    return sum(1 for commit in commits if sum(len(file.filename) for file in commit.modified_files) >= 0)


def rate(measure: Callable[[], int | None]) -> float | None:
    """Changes a second."""
    start = time.perf_counter()
    n = measure()
    return None if n is None else n / (time.perf_counter() - start)


def main() -> int:
    """Measure and print ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repo", type=Path)
    parser.add_argument("--limit", type=int, default=200, help="commits that PyDriller reads (default 200)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mergemill-benchmark-") as folder:
        # PyDriller wants a repository with a work tree; its objects are those of REPO.
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "-q", "--shared", "--no-checkout", options.repo.resolve(), clone], check=True)
        compare(options.repo, clone, options.limit)
    return 0


def compare(repo: Path, clone: Path, limit: int) -> None:
    """Measure all ways in turn and print their medians."""
    repository = Repository(repo)
    pairs = [f"{u.commit.sha} {u.base}\n".replace(f" {EMPTY_TREE}", "") for u in units(repository)]
    ways: dict[str, Callable[[], int | None]] = {
        "git diff-tree --stdin": lambda: by_git(repo, pairs, PATHS),
        "the same with -p": lambda: by_git(repo, pairs, PATCHES),
        "mergemill": lambda: by_mergemill(repo),
        "PyDriller": lambda: by_pydriller(clone, limit),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPETITIONS):
        for name, measure in ways.items():
            if (found := rate(measure)) is not None:
                rates[name].append(found)
    medians = {name: statistics.median(found) for name, found in rates.items() if found}
    print(f"{repo}: {len(pairs)} changes, medians of {REPETITIONS}")
    for name, found in medians.items():
        print(f"{name:<24}{found:>10.0f} changes/s {found / medians['git diff-tree --stdin']:>8.3f} of git")
    if "PyDriller" not in medians:
        print("PyDriller               not installed: pip install 'mergemill[benchmarks]'")


if __name__ == "__main__":
    sys.exit(main())
