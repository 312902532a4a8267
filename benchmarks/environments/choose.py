"""Choose repositories and commits of the benchmark: `python -m benchmarks.environments.choose --clones DIR`.

The rule and the pools are in `repositories.toml`; the result is written to `chosen.toml`. Draw and split depend only on
names, so they cannot be biased towards repositories that work.

`--frozen COMMIT` draws the third part from `frozen_pools.toml` to `draws/COMMIT.toml`, by the names and the hash of the
commit of mergemill that will be measured. `--names` prints what has to be cloned, and chooses nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import tomli_w

from backends.git import GitRepository

FOLDER = Path(__file__).parent
POOLS = FOLDER / "repositories.toml"
CHOSEN = FOLDER / "chosen.toml"
FROZEN_POOLS = FOLDER / "frozen_pools.toml"
DRAWS = FOLDER / "draws"
"""Folder of all draws of the third part, `COMMIT.toml`, and of their rows, `COMMIT.jsonl`."""

LANGUAGES_BY_GROUP = {
    "javascript": {
        ".js": "javascript",
        ".mjs": "javascript",
        ".cjs": "javascript",
        ".jsx": "javascript",
        ".ts": "typescript",
        ".tsx": "typescript",
        ".mts": "typescript",
    },
    "c-c++": {".c": "c", ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".hpp": "c++"},
}
"""Languages that share a pool, by suffix; the most frequent one counts. Headers are ambiguous and not listed."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkRepository:
    """One repository of the benchmark at one commit; `day` is the commit's (UTC)."""

    repo: str
    pool: str
    group: str
    """Language group of the tables: Maven and Gradle are one group, as are C and C++."""
    language: str
    """Language of the candidate."""
    half: str
    commit: str
    day: str

    @property
    def name(self) -> str:
        """Folder name of the clone."""
        return self.repo.replace("/", "__")


def _compute_hash(purpose: str, name: str) -> str:
    return hashlib.sha256(f"{purpose} {name.lower()}".encode()).hexdigest()


def draw_names(pools: Mapping[str, Any], left_out: Collection[str], salt: str = "") -> dict[str, list[str]]:
    """Return the names drawn from each pool, in the order of the draw, which depends on `salt`."""
    purpose = f"draw {salt}".rstrip()
    result = {}
    for pool, definition in pools.items():
        names = [name for name in definition["names"].split() if name not in left_out]
        result[pool] = sorted(names, key=lambda name: _compute_hash(purpose, name))[: definition["wanted"]]
    return result


def draw_frozen(rule: Mapping[str, Any], commit: str, draws: Path = DRAWS) -> dict[str, list[str]]:
    """Return the names drawn from each pool for the measurement of one commit of mergemill.

    Those of the draws for other commits are left out: they may have been looked at since.
    """
    others = [path for path in sorted(draws.glob("*.toml")) if read_frozen_commit(path) != commit]
    drawn = [row for path in others for row in load_chosen(path)]
    return draw_names(rule["pools"], {*rule["left_out"], *(row.repo for row in (*load_chosen(), *drawn))}, commit)


def find_replacements(pools: Mapping[str, Any], left_out: Mapping[str, str]) -> dict[str, str]:
    """Return replacement -> excluded name of the first draw, in the order of both."""
    first, second = draw_names(pools, {}), draw_names(pools, left_out)
    result: dict[str, str] = {}
    for pool in pools:
        gone = [name for name in first[pool] if name not in second[pool]]
        new = [name for name in second[pool] if name not in first[pool]]
        result |= dict(zip(new, gone, strict=True))
    return result


def assign_halves(pools: Mapping[str, Any], left_out: Mapping[str, str]) -> dict[str, str]:
    """Return `tune` or `held` for each drawn name; a replacement inherits the half of the excluded one."""
    groups: dict[str, list[str]] = defaultdict(list)
    for pool, names in draw_names(pools, {}).items():
        groups[pools[pool]["language"]] += names
    half = {name: part for names in groups.values() for name, part in split_halves(names).items()}
    return half | {new: half[old] for new, old in find_replacements(pools, left_out).items()}


def split_halves(names: Sequence[str]) -> dict[str, str]:
    """Return `tune` or `held` for each name of one language."""
    order = sorted(names, key=lambda name: _compute_hash("half", name))
    middle = (len(order) + 1) // 2
    return {name: "tune" if place < middle else "held" for place, name in enumerate(order)}


def load_chosen(path: Path = CHOSEN) -> list[BenchmarkRepository]:
    """Read the repositories of `chosen.toml` or of a draw in its order; none if it does not exist."""
    rows = tomllib.loads(path.read_text())["repository"] if path.exists() else []
    return [BenchmarkRepository(**row) for row in rows]


def read_frozen_commit(path: Path) -> str:
    """Return the commit of mergemill that a draw is for."""
    return str(tomllib.loads(path.read_text())["code"])


def detect_language(paths: Sequence[str], group: str) -> str:
    """Return the language of the group with most program files among `paths`."""
    ends = LANGUAGES_BY_GROUP.get(group)
    if not ends:
        return group
    counted = Counter(ends[end] for path in paths if (end := PurePosixPath(path).suffix.lower()) in ends)
    return counted.most_common(1)[0][0] if counted else next(iter(ends.values()))


def choose(rule: Mapping[str, Any], clones: Path) -> list[BenchmarkRepository]:
    """Draw repositories, split them, and select commits.

    Raises:
        ValueError: a clone is missing, incomplete or over a limit, and has to be listed in `left_out`.
    """
    return _find_commits(
        rule, draw_names(rule["pools"], rule["left_out"]), assign_halves(rule["pools"], rule["left_out"]), clones
    )


def choose_frozen(rule: Mapping[str, Any], commit: str, clones: Path) -> list[BenchmarkRepository]:
    """Draw the third part for one commit of mergemill, and select commits; raises as `choose`."""
    drawn = draw_frozen(rule, commit)
    return _find_commits(rule, drawn, {name: "frozen" for names in drawn.values() for name in names}, clones)


def _find_commits(
    rule: Mapping[str, Any], drawn: Mapping[str, Sequence[str]], half: Mapping[str, str], clones: Path
) -> list[BenchmarkRepository]:
    commits = []
    for pool, names in drawn.items():
        group = rule["pools"][pool]["language"]
        for name in names:
            commit, day, language = _read_head(clones / f"{name.replace('/', '__')}.git", group, rule)
            row = BenchmarkRepository(
                repo=name, pool=pool, group=group, language=language, half=half[name], commit=commit, day=day
            )
            commits.append(row)
    return commits


def _read_head(path: Path, group: str, rule: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return (commit, its day, language) of a clone."""
    if not path.is_dir():
        raise ValueError(f"{path.name} is not there")
    megabytes = sum(file.stat().st_size for file in path.resolve().rglob("*.pack")) / 1e6
    repository = GitRepository(path)
    line = repository.run_git(
        "log",
        "-1",
        "--first-parent",
        f"--before={rule['day']}T23:59:59Z",
        "--format=%H %cd",
        "--date=format-local:%Y-%m-%d",
        "HEAD",
        env={"TZ": "UTC"},
    )
    commit, day = line.decode().split()
    paths = repository.run_git("ls-tree", "-r", "--name-only", commit).decode(errors="replace").splitlines()
    if megabytes > rule["max_megabytes"] or len(paths) > rule["max_files"]:
        raise ValueError(f"{path.name} is over a limit: {megabytes:.0f} MB, {len(paths)} files")
    entries = [
        entry.split() for entry in repository.run_git("ls-tree", "-r", commit).decode(errors="replace").splitlines()
    ]
    blobs = "".join(f"{entry[2]}\n" for entry in entries if entry[1] == "blob")
    if b" missing\n" in repository.run_git("cat-file", "--batch-check", data=blobs.encode()):
        raise ValueError(f"{path.name} lacks objects of {commit}")
    return commit, day, detect_language(paths, group)


def main() -> None:
    """Write `chosen.toml` or a draw, or print names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--clones", type=Path, metavar="DIR", help="clones as OWNER__NAME.git")
    what.add_argument("--names", action="store_true", help="print the names, one a line, and choose nothing")
    parser.add_argument("--frozen", metavar="COMMIT", help="draw the third part for this commit of mergemill")
    parser.add_argument("--drawn", type=Path, metavar="FILE", help="where that draw is written; else draws/COMMIT.toml")
    options = parser.parse_args()
    rule = tomllib.loads((FROZEN_POOLS if options.frozen else POOLS).read_text())
    if options.names:
        drawn = draw_frozen(rule, options.frozen) if options.frozen else draw_names(rule["pools"], rule["left_out"])
        print("\n".join(name for names in drawn.values() for name in names))
    elif options.frozen:
        path = options.drawn or DRAWS / f"{options.frozen[:7]}.toml"
        write_chosen(choose_frozen(rule, options.frozen, options.clones), path, FROZEN_POOLS, code=options.frozen)
    else:
        write_chosen(choose(rule, options.clones), CHOSEN, POOLS)


def write_chosen(repositories: Sequence[BenchmarkRepository], path: Path, pools: Path, **head: str) -> None:
    """Write a file like `chosen.toml`, and print how many repositories of each language it has.

    Args:
        repositories: the repositories.
        path: of the file.
        pools: file of the rule.
        head: values at its beginning.
    """
    text = f"# Written by `python -m benchmarks.environments.choose`; the rule is in {pools.name}.\n\n"
    path.write_text(text + tomli_w.dumps({**head, "repository": [asdict(row) for row in repositories]}))
    for group in dict.fromkeys(row.group for row in repositories):
        parts = Counter(row.half for row in repositories if row.group == group)
        print(f"{group}: {', '.join(f'{count} {half}' for half, count in sorted(parts.items()))}")


if __name__ == "__main__":
    main()
