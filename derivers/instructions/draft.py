"""Draft of a script: choices from which it is made, so that a constraint changes one of them and leaves the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from derivers.instructions.script import CallTool, Edit, Plan, Read, ReadSkill, Run, Script, Search, Step, Turn
from evaluation.instructions.changes import ChangedFile

SUMMARY = "The behaviour that was asked for is in place"


@dataclass(kw_only=True)
class AnswerDraft:
    """The answer that ends a turn."""

    prefix: str = ""
    lines: list[str] = field(default_factory=list)
    names_files: bool = True
    items: bool = False
    """Whether it is a list."""
    json_keys: tuple[str, ...] = ()
    closing: str = ""
    padding: int = 0
    """Number of words that only make it longer."""

    def render(self, changes: Sequence[ChangedFile], summary: str) -> str:
        """Return the text."""
        if self.json_keys:
            return json.dumps(dict.fromkeys(self.json_keys, summary))
        names = ", ".join(f"`{change.path}`" for change in changes) if self.names_files and changes else ""
        points = [f"{summary}.", f"Changed: {names}." if names else "", *self.lines]
        kept = [point for point in points if point] + (["The tests were run."] if self.items else [])
        body = "\n".join(f"- {point}" for point in kept[:5]) if self.items else " ".join(kept)
        padded = " ".join([body, *["indeed"] * self.padding])
        head = f"{self.prefix} " if self.prefix else ""
        return "\n\n".join(filter(None, (f"{head}{padded}", self.closing)))


@dataclass(kw_only=True)
class ScriptDraft:
    """Choices of a script. Every default is that of a careful agent."""

    changes: dict[str, ChangedFile]
    """Path -> change that the work consists of."""
    test_command: str
    n_turns: int = 1
    opening: list[str] = field(default_factory=list)
    plans: bool = True
    searches: bool = True
    reads: bool = True
    skill: str = ""
    """Name of the skill that is read; empty for none."""
    calls: list[CallTool] = field(default_factory=list)
    before: dict[str, list[str]] = field(default_factory=dict)
    """Name of a constraint -> commands that are run before the first change for it."""
    after: dict[str, list[str]] = field(default_factory=dict)
    """Name of a constraint -> commands that are run after the last change for it; without a name, the tests."""
    extra: list[Step] = field(default_factory=list)
    """Steps behind the reading."""
    wrapper: str = ""
    """Command that the tests are run by."""
    is_absolute: bool = True
    silent: bool = False
    """Whether the first call is not explained; a plan is a text for some scaffolds."""
    answers: dict[int, AnswerDraft] = field(default_factory=dict)
    """Turn -> its answer."""
    turn_changes: dict[int, ChangedFile] = field(default_factory=dict)
    """Turn -> change that is made in it."""
    tested_turns: set[int] = field(default_factory=set)
    """Turns after the first in which the tests are run."""

    def __post_init__(self) -> None:
        self.after.setdefault("", [self.test_command])
        for turn in range(1, self.n_turns + 1):
            self.answers.setdefault(turn, AnswerDraft())

    @property
    def last_answer(self) -> AnswerDraft:
        """Answer of the last turn."""
        return self.answers[self.n_turns]

    def change_text(self, path: str, after: bytes, before: bytes | None = None) -> None:
        """Set the text of a file at the end."""
        known = self.changes.get(path)
        self.changes[path] = ChangedFile(path, known.before if known is not None else before, after)

    def make_script(self) -> Script:
        """Return the script."""
        changes = [self.changes[path] for path in sorted(self.changes)]
        first = self._list_steps(changes)
        turns = [Turn(steps=first, answer=self.answers[1].render(changes, SUMMARY))]
        for number in range(2, self.n_turns + 1):
            steps: list[Step] = []
            if number in self.turn_changes:
                steps.append(Edit(change=self.turn_changes[number], is_absolute=self.is_absolute))
            if number in self.tested_turns:
                steps.append(Run(line=self._wrap(self.test_command)))
            turns.append(Turn(steps=steps, answer=self.answers[number].render(changes, SUMMARY)))
        calling = next((place for place, step in enumerate(first) if not isinstance(step, Plan)), 0)
        silent = frozenset((calling,)) if self.silent else frozenset()
        return Script(turns=turns, changes=changes, opening="\n\n".join(self.opening), silent=silent)

    def _list_steps(self, changes: Sequence[ChangedFile]) -> list[Step]:
        steps: list[Step] = []
        if self.plans:
            plan = ("Read the code that is concerned.", "Change it.", "Run the tests and report.")
            steps.append(Plan(steps=plan))
        if self.skill:
            steps.append(ReadSkill(name=self.skill))
        if self.searches:
            steps.append(Search())
        steps += self.calls
        steps += [Run(line=self._wrap(line)) for lines in self.before.values() for line in lines]
        if self.reads:
            steps += [Read(path=change.path, is_absolute=self.is_absolute) for change in changes if not change.is_new]
        steps += self.extra
        steps += [Edit(change=change, is_absolute=self.is_absolute) for change in changes]
        steps += [Run(line=self._wrap(line)) for lines in self.after.values() for line in lines]
        return steps

    def _wrap(self, line: str) -> str:
        return f"{self.wrapper} {line}" if self.wrapper and line == self.test_command else line
