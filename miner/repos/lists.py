"""Lists of repositories as files that people edit and `mergemill run @FILE` reads.

A list is only ever added to: what people deleted stays gone as long as its line is commented out, what they wrote stays
as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from mergemill.errors import InputError, Transient
from miner.repos.rank import Ranked

_NAME = re.compile(r"^#?\s*((?:github|git):\S+)")


def described(ranked: Ranked) -> str:
    """One repository in a few words, such as `0.93 python, 1,203 merged, tests, ci, BSD-3-Clause, 12 MB`."""
    facts = ranked.facts
    if ranked.out:
        return f"out: {ranked.out}"
    told = [
        facts.language, None if facts.merged is None else f"{facts.merged:,} merged",
        {True: "tests", False: "no tests", None: None}[facts.has_tests],
        {True: "ci", False: "no ci", None: None}[facts.has_ci], facts.license,
        None if facts.kilobytes is None else f"{facts.kilobytes / 1000:,.0f} MB",
        "archived" if facts.archived else None,
    ]  # fmt: skip
    return f"{ranked.score:.2f} {', '.join(word for word in told if word)}"


def update(path: Path, found: Sequence[Ranked]) -> int:
    """Add to the list what it does not name yet, best first; what is out is added as a comment. How many were added.

    Raises:
        InputError: the file is there and is no text.
        Transient: it cannot be written.
    """
    try:
        old = path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the list {path}: {error}") from error
    known = set(named(old.splitlines()))
    new = [ranked for ranked in found if ranked.facts.source.lower() not in known]
    if not new:
        return 0
    width = max(len(ranked.facts.source) for ranked in new) + 2
    lines = [f"{'# ' if r.out else ''}{r.facts.source:<{width}} # {described(r)}" for r in new]
    head = "" if old else "# Made by `mergemill repos`, best first. Edit it freely: lines are only ever added.\n"
    between = "" if not old or old.endswith("\n") else "\n"
    half = path.with_name(f".{path.name}.half")
    try:
        half.write_text(old + between + head + "\n".join(lines) + "\n", encoding="utf-8")
        half.replace(path)
    except OSError as error:
        raise Transient(f"cannot write the list {path}: {error.strerror}") from error
    return len(new)


def named(lines: Iterable[str]) -> Iterable[str]:
    """The sources that a list's lines name, those of commented lines too, in lower case."""
    return (found[1].lower() for line in lines if (found := _NAME.match(line)))
