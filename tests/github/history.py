"""The git half of a generated repository: branches and pull requests of every shape, in one fast-import stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from tests.github.fastimport import FastImportStream

MODULES = 24
FUNCTIONS = 12
LAG = 3  # number of merges a pull request may be behind its base
START = 1_500_000_000
STEP = 7200  # seconds between two pull requests
SHAPES = (
    ("merge", 34),
    ("squash", 32),
    ("rebase", 10),
    ("maintenance", 5),
    ("develop", 3),
    ("closed", 11),
    ("open", 5),
)
KINDS = (
    ("fix", 38),
    ("feature", 14),
    ("tests", 6),
    ("docs", 8),
    ("dependency", 8),
    ("binary", 3),
    ("rename", 3),
    ("revert", 2),
    ("style", 6),
    ("several", 10),
    ("generated", 2),
)
MOST_FILES = 320  # of the one pull request whose diff GitHub rejects


@dataclass
class BranchState:
    """A branch: its tip, its files, and the modules that its last commits touched."""

    name: str
    mark: int
    files: dict[str, bytes]
    marks: list[int] = field(default_factory=list)
    recent: list[str] = field(default_factory=list)


@dataclass
class CodeChange:
    """Code of a pull request; marks become ids when the stream is written."""

    shape: str
    kind: str
    base_ref: str
    base: int  # the base branch's tip when it was opened
    head: int
    merged: int | None
    commits: int
    files: dict[str, bytes | None]
    additions: int
    deletions: int
    when: int
    word: str  # topic


def choose_weighted(rng: Random, weighted: tuple[tuple[str, int], ...]) -> str:
    return rng.choices([name for name, _ in weighted], [weight for _, weight in weighted])[0]


def render_module(index: int, values: list[int]) -> bytes:
    functions = [f"def step_{n}(x):\n    return x + {value}\n" for n, value in enumerate(values)]
    return (f'"""Part {index}."""\n\n\n' + "\n\n".join(functions)).encode()


def render_tests(index: int, values: list[int]) -> bytes:
    head = f"from lib.part_{index} import *\n\n\n"
    cases = [f"def test_step_{n}():\n    assert step_{n}(1) == {1 + value}\n" for n, value in enumerate(values)]
    return (head + "\n\n".join(cases)).encode()


def count_changed_lines(before: Mapping[str, bytes], after: Mapping[str, bytes | None]) -> tuple[int, int]:
    """Return the approximate numbers of added and removed lines, by the count of each line."""
    added = removed = 0
    for path, content in after.items():
        old, new = Counter((before.get(path) or b"").split(b"\n")), Counter((content or b"").split(b"\n"))
        added, removed = added + (new - old).total(), removed + (old - new).total()
    return added, removed


class RepositoryHistory:
    """Grows a repository pull request by pull request; `changes` is indexed by number."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.stream = FastImportStream()
        self.values = [[rng.randrange(100) for _ in range(FUNCTIONS)] for _ in range(MODULES)]
        self.changes: dict[int, CodeChange] = {}
        files = {f"lib/part_{i}.py": render_module(i, v) for i, v in enumerate(self.values)}
        files |= {f"tests/test_part_{i}.py": render_tests(i, v) for i, v in enumerate(self.values)}
        files |= {"lib/__init__.py": b"", "README.md": b"# lib\n", "requirements.txt": b"left==1.0\nright==1.0\n"}
        first = self.stream.commit("Begin", START - STEP, files)
        self.main = BranchState("main", first, files, [first])
        self.lines = {"maintenance": BranchState("1.x", first, dict(files), [first])}
        self.develop = BranchState("develop", first, dict(files), [first])
        self.waiting = 0

    def pull(self, number: int, when: int, *, most_files: bool = False) -> CodeChange:
        """Return the code of pull request `number`, opened at `when` (seconds) and, if merged, merged an hour later."""
        rng = self.rng
        shape, kind = choose_weighted(rng, SHAPES), choose_weighted(rng, KINDS)
        if most_files:
            shape, kind = "squash", "most"
        line = self.lines.get(shape, self.develop if shape == "develop" else self.main)
        if shape == "develop":
            kind = "feature"
        back = rng.randrange(min(LAG, len(line.marks))) if kind == "fix" and line is self.main else 0
        base = line.marks[-1 - back]
        files, word = self._edit(kind, number, line)
        added, removed = count_changed_lines(line.files, files)
        parts = self._commits(kind, files)
        head = base
        for step, part in enumerate(parts):
            text = f"{word}\n\nPart {step + 1} of it." if step else word
            head = self.stream.commit(text, when + 60 * step, part, [head], "Eve <eve@example.org>")
        if rng.random() < 0.05:  # force-pushed: the head differs from the commit first pushed
            head = self.stream.commit(f"{word}, again", when + 900, files, [base], "Eve <eve@example.org>")
            parts = [files]
        merged = self._merge(shape, number, word, when + 3600, line, head, parts, files)
        change = CodeChange(
            shape,
            kind,
            line.name,
            line.marks[-2] if merged and len(line.marks) > 1 else base,
            head,
            merged,
            len(parts),
            files,
            added,
            removed,
            when,
            word,
        )
        self.changes[number] = change
        return change

    def _commits(self, kind: str, files: dict[str, bytes | None]) -> list[dict[str, bytes | None]]:
        """The change as one commit or several."""
        if kind != "several" or len(files) < 2:
            return [files]
        return [dict([pair]) for pair in files.items()]

    def _edit(self, kind: str, number: int, line: BranchState) -> tuple[dict[str, bytes | None], str]:
        """Return the files that a change alters, and its title."""
        rng = self.rng
        if kind in ("fix", "several", "tests", "style", "revert"):
            return self._edit_module(kind, line)
        word, batch = f"Add extra {number}", number // 100  # folders stay small, since git rewrites a changed one
        extra = f"lib/more_{batch}/extra_{number}.py"
        code: dict[str, bytes | None] = {extra: f"def extra():\n    return {number}\n".encode()}
        if kind == "feature":
            case = f"from lib.more_{batch}.extra_{number} import extra\n\n\n"
            case += f"def test_extra():\n    assert extra() == {number}\n"
            return code | {f"tests/more_{batch}/test_extra_{number}.py": case.encode()}, word
        if kind == "docs":
            return {f"docs/page_{rng.randrange(40)}.md": f"# Page\n\nWritten by {number}.\n".encode()}, "Say it better"
        if kind == "dependency":
            lines = f"left==1.{number}\nright==1.{rng.randrange(9)}\n"
            return {"requirements.txt": lines.encode()}, f"Bump left from 1.0 to 1.{number}"
        if kind == "binary":
            return {
                f"docs/pictures_{batch}/{number}.png": b"\x89PNG\r\n\x1a\n" + rng.randbytes(300)
            }, f"Picture {number}"
        if kind == "generated":
            return {
                f"lib/more_{batch}/extra_{number}_pb2.py": b"# Generated by the protocol buffer compiler.\nX = 1\n"
            }, "Regenerate"
        if kind == "most":
            return {f"data/row_{n}.txt": f"{n}\n".encode() for n in range(MOST_FILES)}, "Add the data"
        old = next((p for p in reversed(line.files) if p.startswith("lib/more_") and p.count("_") == 2), None)
        if not old:
            return code, word
        return {old: None, f"lib/more_{batch}/moved{number}.py": line.files[old]}, "Move a module"

    def _edit_module(self, kind: str, line: BranchState) -> tuple[dict[str, bytes | None], str]:
        """Change one function's constant and its test."""
        rng = self.rng
        free = [i for i in range(MODULES) if f"lib/part_{i}.py" not in line.recent]
        index = rng.choice(free)
        source, case = f"lib/part_{index}.py", f"tests/test_part_{index}.py"
        if kind == "tests":
            return {case: line.files[case] + b"\n\ndef test_more():\n    assert True\n"}, f"Test part {index} more"
        if kind == "style":
            return {source: line.files[source].replace(b"x + ", b"x  +  ", 1)}, f"Tidy part {index}"
        values, step = self.values[index], rng.randrange(FUNCTIONS)
        values[step] = (values[step] + rng.randrange(1, 99)) % 1000
        word = f"Step {step} of part {index} is wrong"
        return {source: render_module(index, values), case: render_tests(index, values)}, word

    def _merge(
        self,
        shape: str,
        number: int,
        word: str,
        when: int,
        line: BranchState,
        head: int,
        parts: list[dict[str, bytes | None]],
        files: dict[str, bytes | None],
    ) -> int | None:
        """Merge a pull request into its branch; return the commit that GitHub reports as its merge commit."""
        if shape in ("closed", "open"):
            return None
        if shape in ("merge", "develop"):
            text = f"Merge pull request #{number} from eve/change-{number}\n\n{word}"
            mark = self.stream.commit(text, when, files, [line.mark, head])
        elif shape == "rebase":
            mark = line.mark
            for part in parts:
                mark = self.stream.commit(word, when, part, [mark], "Eve <eve@example.org>")
        else:
            mark = self.stream.commit(f"{word} (#{number})", when, files, [line.mark], "Eve <eve@example.org>")
        self._advance(line, mark, files)
        if shape == "develop":
            self._merge_develop(when + 60)
        elif line is self.main and self.rng.random() < 0.02:
            text = f"Release 1.{number}\n\n- {word} (#{number})"
            self._advance(line, self.stream.commit(text, when + 120, {"VERSION": f"1.{number}\n".encode()}, [mark]), {})
        return mark

    def _merge_develop(self, when: int) -> None:
        """Merge develop into main after every third pull request: those were merged elsewhere first."""
        self.waiting += 1
        if self.waiting < 3:
            return
        self.waiting = 0
        new = {p: c for p, c in self.develop.files.items() if p not in self.main.files and "extra_" in p}
        mark = self.stream.commit("Merge branch 'develop'", when, new, [self.main.mark, self.develop.mark])
        self._advance(self.main, mark, dict(new))
        self.develop = BranchState("develop", mark, dict(self.main.files), [mark])

    def _advance(self, line: BranchState, mark: int, files: Mapping[str, bytes | None]) -> None:
        line.mark = mark
        line.marks = [*line.marks[-LAG:], mark]
        line.recent = [*line.recent, *files][-4 * LAG :]
        for path, content in files.items():
            if content is None:
                line.files.pop(path, None)
            else:
                line.files[path] = content

    def refs(self) -> dict[str, int]:
        """Return every ref: the branches, and the head of each pull request."""
        heads = {f"refs/pull/{number}/head": change.head for number, change in self.changes.items()}
        return heads | {
            "refs/heads/main": self.main.mark,
            "refs/heads/1.x": self.lines["maintenance"].mark,
            "refs/heads/develop": self.develop.mark,
        }
