"""Extract the `cargo test` command from CI configuration: features, packages and variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from languages.facts import SourcedValue
from languages.workflows import Job

START = ("cargo", "test")
UNSTABLE = re.compile(r"nightly|unstable$")
"""Matches features that need a nightly compiler."""
_NO_SOURCE = SourcedValue(text="", path="(default)")
_SKIPPED_COMMANDS = re.compile(
    r"--doc\b|--examples?\b|--bench(es)?\b|--manifest-path|--no-run|\+nightly|\bmiri\b|\bcross\b|wasm|--ignored|\bbolero\b"
    r"|--target[ =](?!x86_64-unknown-linux-gnu|\$)"
)
_VALUE_FLAGS = frozenset({"--features", "-F", "--exclude", "-p", "--package"})
_LIBRARIES = re.compile(r"-dev$|^(protobuf-compiler|cmake|clang|nasm|sqlite3|git-lfs|zip|unzip|zstd|fish|zsh|brotli)$")


@dataclass(frozen=True, kw_only=True)
class CargoTestCommand:
    """Options of a `cargo test` command line that select the code under test."""

    __test__ = False
    flags: tuple[str, ...] = ()
    """Features, `--workspace`, `--exclude` and `-p`."""
    rustflags: str = ""
    source: SourcedValue = _NO_SOURCE

    @property
    def is_whole(self) -> bool:
        """Whether the command tests all packages of the workspace."""
        return "--workspace" in self.flags

    def coverage_key(self) -> tuple[bool, bool, int, bool]:
        """Return a sort key that is larger for commands that cover more code."""
        feature_count = (
            len(re.split(r"[\s,]+", self.flags[self.flags.index("--features") + 1])) if self.has_features else 0
        )
        return (
            "-p" not in self.flags,
            "--no-default-features" not in self.flags,
            99 if "--all-features" in self.flags else feature_count,
            self.is_whole,
        )

    @property
    def has_features(self) -> bool:
        """Whether the command enables features by name."""
        return "--features" in self.flags


def find_test_command(jobs: Sequence[Job], *, unstable: bool) -> CargoTestCommand:
    """Return the CI command that covers most code, else the bare command.

    Args:
        jobs: jobs of CI.
        unstable: whether the workspace has an unstable feature; then `--all-features` needs a nightly compiler.
    """
    commands = [command for job in jobs if not job.is_auxiliary for command in _parse_commands(job)]
    commands = [command for command in commands if not (unstable and "--all-features" in command.flags)]
    commands = [command for command in commands if not any(UNSTABLE.search(flag) for flag in command.flags)]
    return max(commands, key=CargoTestCommand.coverage_key, default=CargoTestCommand())


def _parse_commands(job: Job) -> Iterator[CargoTestCommand]:
    values = {f"env.{name}": value for name, value in job.env}
    values |= dict(job.env)
    values |= {
        f"matrix.{key}": max((v.text for v in options), key=len, default="") for key, options in job.values.items()
    }
    for line in job.lines:
        for match in re.finditer(r"\bcargo (?:\+\S+ )?(?:test|nextest run|t)\b([^|;&]*)", line.text):
            if not _SKIPPED_COMMANDS.search(match[0]) and not line.folder:
                flags = _parse_flags(_substitute_variables(match[1], values))
                source = SourcedValue(text=match[0].strip(), path=job.path, line=line.line)
                yield CargoTestCommand(flags=flags, rustflags=dict(job.env).get("RUSTFLAGS", ""), source=source)


def _substitute_variables(text: str, values: Mapping[str, str]) -> str:
    """Return the line with CI and shell variables substituted; unknown variables become empty."""
    text = re.sub(r"\$\{\{\s*([\w.-]+)\s*\}\}", lambda m: values.get(m[1], values.get(m[1].lower(), "")), text)
    return re.sub(r"\$\{?(\w+)\}?", lambda m: values.get(m[1], ""), text)


def _parse_flags(text: str) -> tuple[str, ...]:
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    kept: list[str] = []
    remaining = iter(words)
    for word in remaining:
        flag, _, value = word.partition("=")
        if word == "--":
            break
        if flag in _VALUE_FLAGS:
            argument = value or next(remaining, "")
            if argument:
                kept += [{"-F": "--features", "--package": "-p"}.get(flag, flag), argument]
        elif word in ("--all", "--workspace"):
            kept.append("--workspace")
        elif word in ("--all-features", "--no-default-features"):
            kept.append(word)
    return tuple(kept)


def build_rustflags(command: CargoTestCommand) -> str:
    """Return the compiler flags: CI's `--cfg` options. Lints are capped, so that they cannot fail the build."""
    words = command.rustflags.split()
    cfgs = [f"--cfg {value}" for flag, value in pairwise(words) if flag == "--cfg"]
    return " ".join([*cfgs, *(word for word in words if word.startswith("--cfg=")), "--cap-lints=warn"])


def find_system_packages(jobs: Sequence[Job]) -> tuple[SourcedValue, ...]:
    """Return the Debian packages installed by CI that crates with C code may need."""
    packages: dict[str, SourcedValue] = {}
    for job in jobs:
        for package in () if job.is_auxiliary else job.list_system_packages():
            if _LIBRARIES.search(package.text):
                packages.setdefault(package.text, package)
    return tuple(packages[name] for name in sorted(packages))
