"""Generated damage to patches: what is applied is the whole patch, as git applies it undamaged, or nothing of it."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import pytest

from guest.harness import apply_patch

VARIATIONS = 12
"""Patches that each kind of damage is done to."""
WORDS = ("total", "price", "items", "name", "value", "count", "rate", "left")
Lines = list[str]
Damage = Callable[[Lines, random.Random], Lines | None]


class Kind(NamedTuple):
    """A kind of damage: what it does to the lines of a patch, and whether each of its patches must be applied."""

    damage: Damage
    is_read: bool


class Change(NamedTuple):
    """A file before and after a change, and the lines of git's patch, plain and with colours."""

    before: str
    after: str
    patch: Lines
    coloured: Lines


def draw_file(rng: random.Random) -> Lines:
    """Return the lines of a made-up file, with indented, blank and repeated lines, and some that begin as hunks do."""
    lines = []
    for n in range(rng.randrange(25, 60)):
        word = rng.choice(WORDS)
        shapes = [f"{word}_{n} = {n}", f"    return {word} + {n}", f"        {word} = {rng.randrange(4)}", "    }", "}"]
        shapes += ["", f"def {word}_{n}({word}):", f"- {word}", f"+{n}", f"# {word} {word} {n}", f"\t{word}()"]
        lines.append(rng.choice(shapes))
    return lines


def change_file(lines: Lines, rng: random.Random) -> Lines:
    """Return the lines with some replaced, removed and added."""
    changed = list(lines)
    for at in sorted(rng.sample(range(len(lines)), rng.randrange(2, 6)), reverse=True):
        added = [f"{rng.choice(('', '    '))}new_{rng.choice(WORDS)} = {rng.randrange(99)} + {n}" for n in range(3)]
        changed[at : at + rng.choice((0, 1, 1, 2))] = added[: rng.randrange(0, 3)]
    return changed if changed != lines else ["new = 1", *lines]


def list_lines(patch: Lines, markers: str = " +-") -> list[int]:
    """Return where lines with one of some markers stand in the hunks."""
    start = next(n for n, line in enumerate(patch) if line.startswith("@@"))
    return [n for n in range(start, len(patch)) if patch[n][:1] in tuple(markers)]


def pick(patch: Lines, rng: random.Random, markers: str = " +-", pattern: str = "") -> int | None:
    """Return where some line with one of the markers stands whose text has a pattern."""
    places = [n for n in list_lines(patch, markers) if re.search(pattern, patch[n][1:])]
    return rng.choice(places) if places else None


def replace(markers: str, pattern: str, edit: Callable[[str, random.Random], Lines]) -> Damage:
    """Return the damage that edits one line."""

    def damage(patch: Lines, rng: random.Random) -> Lines | None:
        at = pick(patch, rng, markers, pattern)
        return None if at is None else [*patch[:at], *edit(patch[at], rng), *patch[at + 1 :]]

    return damage


def recount(edit: Callable[[int, int], tuple[int, int]]) -> Damage:
    """Return the damage that changes the counts of all hunks."""

    def change(line: str) -> str:
        match = re.match(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@(.*)", line)
        if not match:
            return line
        old, new = edit(int(match[2]), int(match[4]))
        return f"@@ -{match[1]},{old} +{match[3]},{new} @@{match[5]}"

    return lambda patch, _: [change(line) for line in patch]


def count_body(patch: Lines) -> Lines:
    """Return a patch whose counts are those of the lines with markers that follow each header at once."""
    headers = [n for n, line in enumerate(patch) if line.startswith("@@")]
    for at in headers:
        end = at + 1
        while end < len(patch) and patch[end][:1] in (" ", "+", "-"):
            end += 1
        body = patch[at + 1 : end]
        old, new = (sum(line[0] in markers for line in body) for markers in (" -", " +"))
        patch = [*patch[:at], re.sub(r",\d+ \+(\d+),\d+", rf",{old} +\1,{new}", patch[at]), *patch[at + 1 :]]
    return patch


def insert(text: str) -> Damage:
    """Return the damage that adds a line inside of a hunk."""

    def damage(patch: Lines, rng: random.Random) -> Lines | None:
        at = pick(patch, rng)
        return None if at is None else [*patch[:at], text, *patch[at:]]

    return damage


def cut_off(patch: Lines, rng: random.Random) -> Lines | None:
    """Return a patch that ends at a changed line or soon after it."""
    at = pick(patch, rng, "+-")
    end = 0 if at is None else at + rng.randrange(1, 3)
    rest = takewhile(lambda line: not line.startswith("@@"), patch[end:])
    can_be_seen = any(line[:1] in (" ", "-") and line[1:] for line in rest)
    return patch[:end] if end and can_be_seen else None


def lose_all_blanks(patch: Lines, _: random.Random) -> Lines:
    """Return a patch whose context has no first blank."""
    return [line[1:] if n in list_lines(patch, " ") else line for n, line in enumerate(patch)]


def break_header(patch: Lines, rng: random.Random) -> Lines | None:
    """Return a patch with one header of a hunk that cannot be read."""
    headers = [n for n, line in enumerate(patch) if line.startswith("@@")]
    at = rng.choice(headers)
    return [*patch[:at], rng.choice(("@@", "@@ def f():", "@ -1,2 +1,2 @")), *patch[at + 1 :]]


def drop_headers(patch: Lines, _: random.Random) -> Lines:
    """Return a patch without any header of a hunk but the first."""
    first = next(n for n, line in enumerate(patch) if line.startswith("@@"))
    return [line for n, line in enumerate(patch) if n <= first or not line.startswith("@@")]


def end_counts(damage: Damage) -> Damage:
    """Return a damage after which the counts end where the first line without a marker stands."""

    def change(patch: Lines, rng: random.Random) -> Lines | None:
        damaged = damage(patch, rng)
        return damaged and count_body(damaged)

    return change


def combine(patch: Lines, rng: random.Random) -> Lines | None:
    """Return a patch with two kinds of damage."""
    for name in rng.sample(SINGLE, 2):
        patch = (KINDS[name].damage(patch, rng) or patch) if any(line.startswith("@@") for line in patch) else patch
    return patch


LIST = ["", "What I did:", "- one thing", "- another thing", ""]
FOREIGN = "the_next = one, too"
KINDS: Mapping[str, Kind] = {
    "undamaged": Kind(lambda patch, _: patch, is_read=True),
    "context without its blank": Kind(replace(" ", r"^\S", lambda line, _: [line[1:]]), is_read=True),
    "indented context without its blank": Kind(replace(" ", r"^\s+\S", lambda line, _: [line[1:]]), is_read=False),
    "all context without its blank": Kind(lose_all_blanks, is_read=False),
    "`+` lost": Kind(replace("+", "", lambda line, _: [line[1:]]), is_read=False),
    "`-` lost": Kind(replace("-", "", lambda line, _: [line[1:]]), is_read=False),
    "`+` became a blank": Kind(replace("+", "", lambda line, _: [" " + line[1:]]), is_read=False),
    "a line without a marker": Kind(insert(FOREIGN), is_read=False),
    "a line without a marker, counted": Kind(
        lambda patch, rng: recount(lambda old, new: (old + 1, new + 1))(insert(FOREIGN)(patch, rng) or patch, rng),
        is_read=False,
    ),
    "a line without a marker, not counted": Kind(end_counts(insert(FOREIGN)), is_read=False),
    "a blank line": Kind(insert(""), is_read=False),
    "a blank line, not counted": Kind(end_counts(insert("")), is_read=False),
    "dots for context": Kind(replace(" ", "", lambda *_: ["..."]), is_read=False),
    "dots for context, not counted": Kind(end_counts(replace(" ", "", lambda *_: ["..."])), is_read=False),
    "a no-break space for a blank": Kind(replace(" ", "", lambda line, _: ["\u00a0" + line[1:]]), is_read=False),
    "a wrapped added line": Kind(
        replace("+", "= ", lambda line, _: line.replace(" = ", " =\n", 1).split("\n")), is_read=False
    ),
    "a wrapped line": Kind(
        replace(" +-", r"\S ", lambda line, _: re.split(r"(?<=\w) ", line, maxsplit=1)), is_read=False
    ),
    "a fence in a hunk": Kind(insert("```"), is_read=False),
    "wrong counts": Kind(recount(lambda old, new: (old + 5, new + 3)), is_read=False),
    "counts too small": Kind(recount(lambda old, new: (old // 2, new // 2)), is_read=True),
    "cut off": Kind(cut_off, is_read=False),
    "a header of a hunk that cannot be read": Kind(break_header, is_read=False),
    "headers of hunks lost": Kind(drop_headers, is_read=False),
    "in a fence": Kind(lambda patch, _: ["It is:", "```diff", *patch, "```", *LIST], is_read=True),
    "followed by a list": Kind(lambda patch, _: [*patch, *LIST], is_read=True),
    "CR LF": Kind(lambda patch, _: [line + "\r" for line in patch], is_read=True),
    "white space stripped": Kind(lambda patch, _: [line.rstrip() for line in patch], is_read=True),
    "two of these": Kind(combine, is_read=False),
}
SINGLE = [name for name in KINDS if name != "two of these"]
COLOURED = "colours"


def run(folder: Path, *command: str, text: str | None = None) -> str:
    """Return the output of a command."""
    ran = subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True, input=text, encoding="utf-8")
    return ran.stdout


def split_patch(patch: str) -> list[Lines]:
    """Return the lines of the diff of each file."""
    return [part.splitlines() for part in re.split(r"(?m)^(?=(?:\x1b\[1m)?diff --git)", patch) if part]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a repository in which the state before all changes is committed."""
    return tmp_path_factory.mktemp("damaged")


@pytest.fixture(scope="module")
def changes(folder: Path) -> dict[str, Change]:
    """Return a change for each variation of each kind; git applies all of their patches as expected."""
    rng = random.Random(7)
    names = [f"file_{n:03}.txt" for n in range((len(KINDS) + 1) * VARIATIONS)]
    before = {name: draw_file(rng) for name in names}
    after = {name: change_file(before[name], rng) for name in names}
    run(folder, "init", "-q")
    for tree in (before, after):
        for name, lines in tree.items():
            (folder / name).write_text("".join(line + "\n" for line in lines))
        if tree is before:
            run(folder, "add", "-A")
    patch, coloured = (run(folder, "diff", f"--color={when}") for when in ("never", "always"))
    run(folder, "checkout", "-q", ".")
    run(folder, "apply", text=patch)
    changes = {
        name: Change("\n".join(before[name]) + "\n", "\n".join(after[name]) + "\n", lines, coloured_lines)
        for name, lines, coloured_lines in zip(names, split_patch(patch), split_patch(coloured), strict=True)
    }
    assert all((folder / name).read_text() == change.after for name, change in changes.items())
    run(folder, "checkout", "-q", ".")
    return changes


def test_a_damaged_patch_is_applied_as_a_whole_or_refused(folder: Path, changes: dict[str, Change]) -> None:
    rng = random.Random(11)
    expected = {name: change.before for name, change in changes.items()}
    names = iter(changes)
    wrong, applied = [], dict.fromkeys([*KINDS, COLOURED], 0)
    for kind in applied:
        for _ in range(VARIATIONS):
            name = next(names)
            change = changes[name]
            damaged = change.coloured if kind == COLOURED else KINDS[kind].damage(change.patch, rng)
            if damaged is None:
                continue
            text = "".join(line + "\n" for line in damaged)
            is_applied, repairs, _ = apply_patch.apply_patch(text.encode(), str(folder))
            applied[kind] += is_applied
            expected[name] = change.after if is_applied else change.before
            content = (folder / name).read_bytes().decode()
            if content != expected[name] or (not is_applied and (kind == COLOURED or KINDS[kind].is_read)):
                wrong.append((kind, name, is_applied, repairs, text))
    assert not wrong, "\n\n".join(map(str, wrong[0])) + f"\n{[entry[:4] for entry in wrong]}"
    assert {name: (folder / name).read_bytes().decode() for name in changes} == expected
    assert sum(applied.values()) > len(changes) // 4, applied
