"""How CI starts `cargo test`: features, packages and variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from languages.facts import Wanted
from languages.workflows import Job

START = ("cargo", "test")
UNSTABLE = re.compile(r"nightly|unstable$")
"""Features that a stable compiler does not take."""
_NOWHERE = Wanted(text="", path="(default)")
_SKIPPED = re.compile(
    r"--doc\b|--examples?\b|--bench(es)?\b|--manifest-path|--no-run|\+nightly|\bmiri\b|\bcross\b|wasm|--ignored|\bbolero\b"
    r"|--target[ =](?!x86_64-unknown-linux-gnu|\$)"
)
_VALUED = frozenset({"--features", "-F", "--exclude", "-p", "--package"})
_LIBRARIES = re.compile(r"-dev$|^(protobuf-compiler|cmake|clang|nasm|sqlite3|git-lfs|zip|unzip|zstd|fish|zsh|brotli)$")


@dataclass(frozen=True, kw_only=True)
class TestRun:
    """A `cargo test` line: what of it says which code is tested."""

    __test__ = False
    flags: tuple[str, ...] = ()
    """Features and `--workspace`, `--exclude`, `-p`."""
    rustflags: str = ""
    place: Wanted = _NOWHERE

    @property
    def is_whole(self) -> bool:
        """Whether it is about all packages of the workspace."""
        return "--workspace" in self.flags

    def rank(self) -> tuple[bool, bool, int, bool]:
        """The more it covers the larger."""
        named = len(re.split(r"[\s,]+", self.flags[self.flags.index("--features") + 1])) if self.names_features else 0
        return (
            "-p" not in self.flags, "--no-default-features" not in self.flags,
            99 if "--all-features" in self.flags else named, self.is_whole,
        )  # fmt: skip

    @property
    def names_features(self) -> bool:
        """Whether it lists features."""
        return "--features" in self.flags


def test_run(found: Sequence[Job], *, unstable: bool) -> TestRun:
    """The line of CI that covers the most, else the bare command.

    Args:
        found: CI's jobs.
        unstable: whether a feature is called so; then `--all-features` needs a nightly compiler.
    """
    runs = [run for job in found if not job.is_beside for run in _runs(job)]
    runs = [run for run in runs if not (unstable and "--all-features" in run.flags)]
    runs = [run for run in runs if not any(UNSTABLE.search(flag) for flag in run.flags)]
    return max(runs, key=TestRun.rank, default=TestRun())


def _runs(job: Job) -> Iterator[TestRun]:
    values = {f"env.{name}": value for name, value in job.env}
    values |= dict(job.env)
    values |= {f"matrix.{key}": max((v.text for v in found), key=len, default="") for key, found in job.values.items()}
    for line in job.lines:
        for match in re.finditer(r"\bcargo (?:\+\S+ )?(?:test|nextest run|t)\b([^|;&]*)", line.text):
            if not _SKIPPED.search(match[0]) and not line.folder:
                flags = _flags(_filled(match[1], values))
                place = Wanted(text=match[0].strip(), path=job.path, line=line.line)
                yield TestRun(flags=flags, rustflags=dict(job.env).get("RUSTFLAGS", ""), place=place)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The line with CI's and the shell's variables in place; unknown ones are empty."""
    text = re.sub(r"\$\{\{\s*([\w.-]+)\s*\}\}", lambda m: values.get(m[1], values.get(m[1].lower(), "")), text)
    return re.sub(r"\$\{?(\w+)\}?", lambda m: values.get(m[1], ""), text)


def _flags(text: str) -> tuple[str, ...]:
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        flag, _, value = word.partition("=")
        if word == "--":
            break
        if flag in _VALUED:
            given = value or next(rest, "")
            if given:
                kept += [{"-F": "--features", "--package": "-p"}.get(flag, flag), given]
        elif word in ("--all", "--workspace"):
            kept.append("--workspace")
        elif word in ("--all-features", "--no-default-features"):
            kept.append(word)
    return tuple(kept)


def rustflags(run: TestRun) -> str:
    """Compiler flags: CI's `--cfg`s; what is only a lint stops no build."""
    words = run.rustflags.split()
    cfgs = [f"--cfg {value}" for flag, value in pairwise(words) if flag == "--cfg"]
    return " ".join([*cfgs, *(word for word in words if word.startswith("--cfg=")), "--cap-lints=warn"])


def system_packages(found: Sequence[Job]) -> tuple[Wanted, ...]:
    """Debian packages that CI installs and that crates with C parts may need."""
    chosen: dict[str, Wanted] = {}
    for job in found:
        for wanted in () if job.is_beside else job.system_packages():
            if _LIBRARIES.search(wanted.text):
                chosen.setdefault(wanted.text, wanted)
    return tuple(chosen[name] for name in sorted(chosen))
