"""Lists of repositories as files that people edit and `mergemill run @FILE` reads.

Lines are only ever added: a repository stays removed as long as its line is commented out, and edited lines are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from core.errors import InputError, make_write_error
from core.files import read_input
from miner.repos.rank import RankedRepository

_NAME = re.compile(r"^#?\s*((?:github|git):\S+)")


def describe_repository(ranked: RankedRepository) -> str:
    """Describe a repository, such as `0.93 python, 1,203 merged, tests, ci, BSD-3-Clause, 12 MB`."""
    facts = ranked.facts
    if ranked.rejection:
        return f"rejected: {ranked.rejection}"
    parts = [
        facts.language,
        None if facts.merged is None else f"{facts.merged:,} merged",
        {True: "tests", False: "no tests", None: None}[facts.has_tests],
        {True: "ci", False: "no ci", None: None}[facts.has_ci],
        facts.license,
        None if facts.kilobytes is None else f"{facts.kilobytes / 1000:,.0f} MB",
        "archived" if facts.archived else None,
    ]
    return f"{ranked.score:.2f} {', '.join(word for word in parts if word)}"


def update_list(path: Path, repositories: Sequence[RankedRepository]) -> int:
    """Add new repositories to the list, best first, rejected as comments; return how many were added.

    Raises:
        InputError: the file exists and is not text.
        Transient: it cannot be written.
    """
    try:
        old = read_input(path).decode() if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the list {path}: {error}") from error
    known = set(find_listed_sources(old.splitlines()))
    new = [ranked for ranked in repositories if ranked.facts.source.lower() not in known]
    if not new:
        return 0
    width = max(len(ranked.facts.source) for ranked in new) + 2
    lines = [f"{'# ' if r.rejection else ''}{r.facts.source:<{width}} # {describe_repository(r)}" for r in new]
    head = "" if old else "# Made by `mergemill repos`, best first. Edit it freely: lines are only ever added.\n"
    between = "" if not old or old.endswith("\n") else "\n"
    half = path.with_name(f".{path.name}.half")
    try:
        half.write_text(old + between + head + "\n".join(lines) + "\n", encoding="utf-8")
        half.replace(path)
    except OSError as error:
        raise make_write_error(f"cannot write the list {path}", error) from error
    return len(new)


def find_listed_sources(lines: Iterable[str]) -> Iterable[str]:
    """Yield the sources named in a list's lines, commented lines included, in lower case."""
    return (match[1].lower() for line in lines if (match := _NAME.match(line)))
