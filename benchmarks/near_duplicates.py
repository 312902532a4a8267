"""Measure similarity limits: `python -m benchmarks.near_duplicates --instances FILE... --repos REPO...`.

Copies (which must be found): commits that name the commit they were cherry-picked from; published tasks that are in two
files; published tasks and the same pull requests in a REPO, patches only; and published tasks of which a share of the
lines (of the words) was replaced, with other indentation and in other files.
Others (which must not be found): all pairs of different published tasks, and all pairs of candidates of a REPO.

Prints for each threshold how many copies are found (recall), how many of the found pairs are copies (precision),
and how many pairs the MinHash keys miss that a comparison of every pair finds.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from backends.git import GitError, GitRepository
from core.config import Settings
from core.minhash import Features, compute_jaccard_index
from mergemill.execution.services import make_services
from miner.changes import UnparsablePatchError
from miner.git.clone import open_reader
from miner.git.history import find_changes
from miner.mine import mine
from miner.patches import split_commit
from miner.similarity import PatchSketch, build_sketch
from taskdb.records import Candidate

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
REPLACED = (0.05, 0.1, 0.2, 0.3)
KINDS: dict[str, Callable[[PatchSketch], Features]] = {"patch": lambda s: s.patch, "statement": lambda s: s.statement}
Pair = tuple[PatchSketch, PatchSketch]


def read_tasks(files: Iterable[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield published tasks by repository and number, each with patch, test_patch and statement."""
    for file in files:
        for line in file.read_text().splitlines():
            row = json.loads(line)
            statement = row.get("problem_statement") or f"{row.get('title', '')} {row.get('body', '')}"
            patch = row.get("patch") or row.get("fix_patch") or ""
            number = row["instance_id"].rsplit("-", 1)[1]
            repo = row["repo"] if "/" in row["repo"] else f"{row['org']}/{row['repo']}"
            yield f"{repo}#{number}".lower(), {"patch": patch, "test_patch": row["test_patch"], "statement": statement}


def replace_share(row: dict[str, Any], share: float, chance: random.Random) -> PatchSketch:
    """Build the sketch of a task with a share of lines and words replaced, in other files and indented."""

    def line(text: str) -> str:
        if text[:1] not in ("+", "-") or text.startswith(("+++", "---")):
            return text
        return f"{text[0]}    " + (f"other_{chance.random()}" if chance.random() < share else text[1:])

    def word(text: str) -> str:
        return f"other{chance.random()}" if chance.random() < share / 3 else text  # each word is in three sequences

    patch, test = ("\n".join(map(line, row[side].split("\n"))) for side in ("patch", "test_patch"))
    return build_sketch(patch, test, " ".join(map(word, row["statement"].split())))


def find_cherry_picks(repo: Path) -> Iterator[Pair]:
    """Yield commits and those cherry-picked from them."""
    repository = GitRepository(repo)
    output = repository.run_git(
        "log", "--all", "--no-merges", "--format=%H %P%x01%B%x00", "--grep=cherry picked from commit"
    )
    with open_reader(repository) as clone:
        for row in output.decode(errors="replace").split("\0"):
            ids, _, message = row.strip().partition("\1")
            match = re.search(r"cherry picked from commit ([0-9a-f]{40})", message)
            try:
                if match and " " in ids:
                    other = repository.run_git("rev-parse", f"{match[1]}^").decode().strip()
                    pairs = (ids.split()[::-1], [other, match[1]])
                    both = [split_commit(clone.scratch, base, commit) for base, commit in pairs]
                    messages = [repository.run_git("log", "-1", "--format=%B", commit).decode() for _, commit in pairs]
                    yield tuple(build_sketch(s.gold.text, s.test.text, m) for s, m in zip(both, messages, strict=True))  # type: ignore[misc]
            except (GitError, UnparsablePatchError, ValueError):
                continue  # the original is not in this clone, or is the first commit


def match_tasks_in_clone(repo: Path, known: dict[str, dict[str, Any]]) -> Iterator[Pair]:
    """Yield published tasks and the same pull requests in a clone."""
    repository, name = GitRepository(repo), repo.name.removesuffix(".git").replace("__", "/").lower()
    with open_reader(repository) as clone:
        for unit in find_changes(repository, repository.resolve("HEAD")):
            if row := known.get(f"{name}#{unit.number}"):
                split = split_commit(clone.scratch, unit.base, unit.commit.sha)
                yield (
                    build_sketch(row["patch"], row["test_patch"], ""),
                    build_sketch(split.gold.text, split.test.text, ""),
                )


def mine_sketches(repo: Path, limit: int) -> list[PatchSketch]:
    """Return the sketches of a clone's newest candidates."""
    with tempfile.TemporaryDirectory(prefix="mergemill-benchmark-") as folder:
        services = make_services(Settings(store=Path(folder), limit=limit), engine=False)
        made = [m.result for m in mine(f"git:{repo}", services) if hasattr(m, "result")]
        read = services.artifacts.get_text
        return [
            build_sketch(read(c.gold_patch), read(c.test_patch), c.problem_statement)
            for c in made
            if isinstance(c, Candidate)
        ]


def print_table(kind: str, copies: dict[str, list[Pair]], others: list[list[PatchSketch]]) -> None:
    """Print the table of one kind."""
    of = KINDS[kind]
    wrong = [
        compute_jaccard_index(of(a), of(b)) for group in others for a, b in combinations(group, 2) if of(a) and of(b)
    ]
    pairs = {name: [(a, b) for a, b in copied if of(a) and of(b)] for name, copied in copies.items()}
    print(
        f"\n{kind}: {len(wrong)} pairs of others, most similar {', '.join(f'{s:.2f}' for s in sorted(wrong)[:-6:-1])}"
    )
    print(f"{'copies':<28}{'pairs':>7}" + "".join(f"{threshold:>8}" for threshold in THRESHOLDS))
    right: list[float] = []
    for name, similar in pairs.items():
        similarities = [compute_jaccard_index(of(a), of(b)) for a, b in similar]
        right += similarities
        if similar:
            shares = "".join(f"{sum(s >= t for s in similarities) / len(similar):>8.3f}" for t in THRESHOLDS)
            print(f"{name:<28}{len(similar):>7}{shares}")
    hits = [(sum(s >= t for s in right), sum(s >= t for s in wrong)) for t in THRESHOLDS]
    print(f"{'others found':<35}" + "".join(f"{n:>8}" for _, n in hits))
    print(f"{'precision':<35}" + "".join(f"{r / (r + n) if r + n else 1:>8.3f}" for r, n in hits))
    every = [pair for similar in pairs.values() for pair in similar]
    missed = [
        sum(compute_jaccard_index(of(a), of(b)) >= t and not set(a.keys) & set(b.keys) for a, b in every)
        for t in THRESHOLDS
    ]
    print(f"{'copies the keys miss':<35}" + "".join(f"{n:>8}" for n in missed))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--instances", type=Path, nargs="+", default=[], metavar="FILE")
    parser.add_argument("--repos", type=Path, nargs="+", default=[], metavar="REPO")
    parser.add_argument("--limit", type=int, default=100, help="candidates of each REPO (default 100)")
    options = parser.parse_args()
    chance = random.Random(1)  # noqa: S311 - a fixed seed, no secret
    known: dict[str, dict[str, Any]] = {}
    copies: dict[str, list[Pair]] = {"in two files": []}
    for name, row in read_tasks(options.instances):
        if name in known:
            copies["in two files"].append((build_sketch(**known[name]), build_sketch(**row)))
        known.setdefault(name, row)
    made = {name: build_sketch(**row) for name, row in known.items()}
    copies["cherry-picked"] = [pair for repo in options.repos for pair in find_cherry_picks(repo)]
    copies["published and in a clone"] = [pair for repo in options.repos for pair in match_tasks_in_clone(repo, known)]
    for share in REPLACED:
        copies[f"{share:.0%} replaced"] = [(made[n], replace_share(row, share, chance)) for n, row in known.items()]
    others = [list(made.values()), *(mine_sketches(repo, options.limit) for repo in options.repos)]
    for kind in KINDS:
        print_table(kind, copies, others)
    return 0


if __name__ == "__main__":
    sys.exit(main())
