"""Which repositories are measured, and at which commit: `python -m benchmarks.environments.choose --clones DIR`.

`repositories.toml` says the rule and holds the pools; this draws from them and writes `chosen.toml`. Both the draw and
the halves depend on nothing but names, so nobody can have chosen what works.
"""

from __future__ import annotations

import argparse
import hashlib
import tomllib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import tomli_w

from backends.git import Repository

FOLDER = Path(__file__).parent
POOLS = FOLDER / "repositories.toml"
CHOSEN = FOLDER / "chosen.toml"

SPOKEN = {
    "javascript": {".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript",
                   ".ts": "typescript", ".tsx": "typescript", ".mts": "typescript"},
    "c-c++": {".c": "c", ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".hpp": "c++"},
}  # fmt: skip
"""Languages that share a pool, told apart by what most program files are written in; headers say nothing."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """One repository of the benchmark, at one commit; `day` is the commit's (UTC)."""

    repo: str
    pool: str
    group: str
    """The language as the tables have it; maven and gradle are one, C and C++ too."""
    language: str
    """As the candidate has it."""
    half: str
    commit: str
    day: str

    @property
    def name(self) -> str:
        """As the clone's folder is called."""
        return self.repo.replace("/", "__")


def _hash(purpose: str, name: str) -> str:
    return hashlib.sha256(f"{purpose} {name.lower()}".encode()).hexdigest()


def drawn(pools: Mapping[str, Any], left_out: Mapping[str, str]) -> dict[str, list[str]]:
    """The names taken of each pool, in the order of the draw."""
    result = {}
    for pool, said in pools.items():
        names = [name for name in said["names"].split() if name not in left_out]
        result[pool] = sorted(names, key=lambda name: _hash("draw", name))[: said["wanted"]]
    return result


def replaced(pools: Mapping[str, Any], left_out: Mapping[str, str]) -> dict[str, str]:
    """The name taken instead -> the one of the first draw that was left out, in the order of both."""
    first, second = drawn(pools, {}), drawn(pools, left_out)
    result: dict[str, str] = {}
    for pool in pools:
        gone = [name for name in first[pool] if name not in second[pool]]
        new = [name for name in second[pool] if name not in first[pool]]
        result |= dict(zip(new, gone, strict=True))
    return result


def halved(pools: Mapping[str, Any], left_out: Mapping[str, str]) -> dict[str, str]:
    """`tune` or `held` for each name that is taken; what was left out leaves its place to what replaces it."""
    groups: dict[str, list[str]] = defaultdict(list)
    for pool, names in drawn(pools, {}).items():
        groups[pools[pool]["language"]] += names
    half = {name: part for names in groups.values() for name, part in halves(names).items()}
    return half | {new: half[old] for new, old in replaced(pools, left_out).items()}


def halves(names: Sequence[str]) -> dict[str, str]:
    """`tune` or `held` for each name of one language."""
    order = sorted(names, key=lambda name: _hash("half", name))
    middle = (len(order) + 1) // 2
    return {name: "tune" if place < middle else "held" for place, name in enumerate(order)}


def chosen() -> list[Chosen]:
    """The repositories of `chosen.toml`, in its order."""
    rows = tomllib.loads(CHOSEN.read_text())["repository"]
    return [Chosen(**row) for row in rows]


def language_of(paths: Sequence[str], group: str) -> str:
    """The language of most program files among `paths`, of those that share the group."""
    ends = SPOKEN.get(group)
    if not ends:
        return group
    counted = Counter(ends[end] for path in paths if (end := PurePosixPath(path).suffix.lower()) in ends)
    return counted.most_common(1)[0][0] if counted else next(iter(ends.values()))


def choose(rule: Mapping[str, Any], clones: Path) -> list[Chosen]:
    """Draw, split and find the commits.

    Raises:
        ValueError: a clone is missing, not whole or over a limit, and has to be named in `left_out`.
    """
    pools = rule["pools"]
    taken = drawn(pools, rule["left_out"])
    half = halved(pools, rule["left_out"])
    found = []
    for pool, names in taken.items():
        group = pools[pool]["language"]
        for name in names:
            commit, day, language = _at(clones / f"{name.replace('/', '__')}.git", group, rule)
            row = Chosen(
                repo=name, pool=pool, group=group, language=language, half=half[name], commit=commit, day=day
            )  # fmt: skip
            found.append(row)
    return found


def _at(path: Path, group: str, rule: Mapping[str, Any]) -> tuple[str, str, str]:
    """(commit, its day, language) of a clone."""
    if not path.is_dir():
        raise ValueError(f"{path.name} is not there")
    megabytes = sum(file.stat().st_size for file in path.resolve().rglob("*.pack")) / 1e6
    repository = Repository(path)
    line = repository.git(
        "log", "-1", "--first-parent", f"--before={rule['day']}T23:59:59Z", "--format=%H %cd",
        "--date=format-local:%Y-%m-%d", "HEAD", env={"TZ": "UTC"},
    )  # fmt: skip
    commit, day = line.decode().split()
    paths = repository.git("ls-tree", "-r", "--name-only", commit).decode(errors="replace").splitlines()
    if megabytes > rule["max_megabytes"] or len(paths) > rule["max_files"]:
        raise ValueError(f"{path.name} is over a limit: {megabytes:.0f} MB, {len(paths)} files")
    entries = [entry.split() for entry in repository.git("ls-tree", "-r", commit).decode(errors="replace").splitlines()]
    blobs = "".join(f"{entry[2]}\n" for entry in entries if entry[1] == "blob")
    if b" missing\n" in repository.git("cat-file", "--batch-check", data=blobs.encode()):
        raise ValueError(f"{path.name} lacks objects of {commit}")
    return commit, day, language_of(paths, group)


def main() -> None:
    """Write `chosen.toml`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clones", type=Path, required=True, metavar="DIR", help="clones as OWNER__NAME.git")
    options = parser.parse_args()
    found = choose(tomllib.loads(POOLS.read_text()), options.clones)
    text = "# Written by `python -m benchmarks.environments.choose`; the rule is in repositories.toml.\n\n"
    CHOSEN.write_text(text + tomli_w.dumps({"repository": [asdict(row) for row in found]}))
    for group in dict.fromkeys(row.group for row in found):
        parts = Counter(row.half for row in found if row.group == group)
        print(f"{group}: {parts['tune']} to tune on, {parts['held']} held")


if __name__ == "__main__":
    main()
