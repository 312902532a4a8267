"""How a script follows a constraint, and how it breaks that one alone: for each check two changes of a draft."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from derivers.instructions.draft import ScriptDraft
from derivers.instructions.script import CallTool, Read, Run
from evaluation.instructions.changes import ChangedFile
from taskdb.records.instructions import JUDGED


@dataclass(frozen=True, kw_only=True)
class RecipeInput:
    """A bound constraint as its recipe needs it."""

    name: str
    arguments: Mapping[str, Any]
    turn: int
    comply: str
    breach: str
    comment: str
    """Start of a comment line; empty where it is not known."""
    source: str
    """Path of a changed program file; empty for none."""
    base_files: frozenset[str] = field(default=frozenset())
    """Files of the base tree."""
    long_function: str = ""
    """Function of the language without documentation and types, whose lines stand for `{body}`; empty for none."""


Change = Callable[[ScriptDraft, RecipeInput], None]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Two changes of a draft."""

    comply: Change = lambda _draft, _input: None
    """Makes the script follow the constraint; nothing where every careful agent does."""
    breach: Change


def _run_extra(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.extra.append(Run(line=given.breach))


def _add_after(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.after[given.name] = given.comply.splitlines()


def _drop_after(draft: ScriptDraft, given: RecipeInput) -> None:
    # Later turns test again, which would make up for it.
    dropped = set(draft.after.pop(given.name))
    # Another constraint may have the same command run.
    draft.after = {name: [line for line in lines if line not in dropped] for name, lines in draft.after.items()}
    draft.tested_turns.clear()


def _reverse_after(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.after[given.name] = draft.after[given.name][::-1]


def _test_each_turn(draft: ScriptDraft, given: RecipeInput) -> None:
    _add_after(draft, given)
    draft.tested_turns |= set(range(2, draft.n_turns + 1))


def _add_before(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.before[given.name] = [given.comply]


def _drop_before(draft: ScriptDraft, given: RecipeInput) -> None:
    dropped = set(draft.before.pop(given.name))
    draft.before = {name: [line for line in lines if line not in dropped] for name, lines in draft.before.items()}


def _set_closing(draft: ScriptDraft, given: RecipeInput) -> None:
    turns = range(given.turn, draft.n_turns + 1) if given.arguments.get("every_turn") else [draft.n_turns]
    for turn in turns:
        draft.answers[turn].closing = given.comply


def _drop_closing(draft: ScriptDraft, _given: RecipeInput) -> None:
    draft.last_answer.closing = "That was the work."


def _mark_sources(draft: ScriptDraft, given: RecipeInput) -> None:
    for path, change in list(draft.changes.items()):
        if change.after is not None and path.endswith(_get_suffix(given.source)):
            draft.change_text(path, _append(change.after, given.comply))


def _unmark_source(draft: ScriptDraft, given: RecipeInput) -> None:
    change = draft.changes[given.source]
    draft.change_text(given.source, (change.after or b"").replace(given.comply.encode() + b"\n", b""))


def _begin_new_files(draft: ScriptDraft, given: RecipeInput) -> None:
    for path, change in list(draft.changes.items()):
        if change.is_new and change.after is not None and path.endswith(_get_suffix(given.source)):
            draft.change_text(path, given.comply.encode() + b"\n" + change.after)


def _drop_beginnings(draft: ScriptDraft, given: RecipeInput) -> None:
    head = given.comply.encode() + b"\n"
    for path, change in list(draft.changes.items()):
        if change.is_new and change.after is not None:
            draft.change_text(path, change.after.removeprefix(head))


def _append_to_source(draft: ScriptDraft, given: RecipeInput) -> None:
    change = draft.changes[given.source]
    draft.change_text(given.source, _append(change.after or b"", given.breach))


def _append_long_line(draft: ScriptDraft, given: RecipeInput) -> None:
    change = draft.changes[given.source]
    line = f"{given.comment} {'x' * int(given.arguments['characters'])}"
    draft.change_text(given.source, _append(change.after or b"", line))


def _append_lines(draft: ScriptDraft, given: RecipeInput) -> None:
    change = draft.changes[given.source]
    lines = "\n".join(f"{given.comment} {number}" for number in range(int(given.arguments["number"]) + 1))
    draft.change_text(given.source, _append(change.after or b"", lines))


def _append_function(draft: ScriptDraft, given: RecipeInput) -> None:
    # Two lines more than allowed, since a function also has a head and an end.
    change = draft.changes[given.source]
    lines = int(given.arguments.get("lines", 3)) + 2
    text = given.long_function.replace("{body}", "\n".join(["    x += 1;"] * lines))
    draft.change_text(given.source, _append(change.after or b"", text))


def _end_without_line(draft: ScriptDraft, given: RecipeInput) -> None:
    path = given.source or next(iter(draft.changes))
    draft.change_text(path, (draft.changes[path].after or b"").rstrip(b"\n"))


def _add_notes(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.change_text(str(given.arguments["path"]), f"{given.comply}\n".encode())


def _drop_notes(draft: ScriptDraft, given: RecipeInput) -> None:
    del draft.changes[str(given.arguments["path"])]


# A breach must not be one of another constraint as well, so it changes as little as possible.
def _touch_file(draft: ScriptDraft, given: RecipeInput) -> None:
    """Change a file that the constraint protects: one that is there, where the base tree has any."""
    globs = given.arguments["globs"]
    known = sorted(
        path
        for path in given.base_files
        if any(fnmatchcase(path, glob) or fnmatchcase(path.rpartition("/")[2], glob) for glob in globs)
    )
    path = known[0] if known else given.breach
    draft.change_text(path, b"changed\n", before=b"before\n" if known else None)


def _add_file(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.change_text(given.breach, b"notes\n")


def _change_many_files(draft: ScriptDraft, given: RecipeInput) -> None:
    # Files that are there already, as constraints on new files are others.
    for number in range(int(given.arguments["number"])):
        draft.change_text(f"data/part{number}.dat", b"after\n", before=b"before\n")


def _write_file(draft: ScriptDraft, given: RecipeInput) -> None:
    # Next to the repository, so that no check of the repository's files sees it.
    draft.extra.append(Run(line=f"echo changed >> ../{given.breach}"))


def _read_relative(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.extra.append(Read(path=given.source, is_absolute=False))


def _call_often(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.extra += [Run(line="true")] * (int(given.arguments["number"]) + 1)


def _write_text(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.opening.append(given.breach)


def _call_tool(draft: ScriptDraft, given: RecipeInput) -> None:
    if not draft.calls:
        draft.calls.append(
            CallTool(
                name=str(given.arguments["tool"]), arguments={"topic": "the change", "reason": "It may be described."}
            )
        )


def _call_again(draft: ScriptDraft, given: RecipeInput) -> None:
    number = int(given.arguments["number"])
    draft.calls += [draft.calls[0]] * number


def _drop_calls(draft: ScriptDraft, _given: RecipeInput) -> None:
    draft.calls.clear()


def _drop_reason(draft: ScriptDraft, given: RecipeInput) -> None:
    argument = given.arguments["argument"]
    draft.calls = [
        CallTool(name=call.name, arguments={key: value for key, value in call.arguments.items() if key != argument})
        for call in draft.calls
    ]


def _change_in_turn(draft: ScriptDraft, given: RecipeInput) -> None:
    turn = int(given.arguments["in_turn"])
    change = draft.changes[given.source]
    again = ChangedFile(given.source, change.after, _append(change.after or b"", f"{given.comment} once more"))
    draft.turn_changes[turn] = again
    draft.change_text(given.source, again.after or b"")


def _set(name: str, value: object) -> Change:
    """Return the change that sets a choice of the draft."""
    return lambda draft, _given: setattr(draft, name, value)


def _set_answer(name: str, value: object) -> Change:
    """Return the change that sets a choice of the last answer."""
    return lambda draft, _given: setattr(draft.last_answer, name, value)


def _use_skill(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.skill = str(given.arguments["skill"])


def _wrap_tests(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.wrapper = given.comply


def _pad_answer(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.last_answer.padding = int(given.arguments["at_most"])


def _add_answer_line(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.last_answer.lines.append(given.comply)


def _drop_answer_line(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.last_answer.lines.remove(given.comply)


def _write_json(draft: ScriptDraft, given: RecipeInput) -> None:
    draft.last_answer.json_keys = tuple(given.arguments["keys"])


RECIPES: Mapping[str, Recipe] = {
    "absolute-paths": Recipe(breach=_read_relative),
    "added-lines-at-most": Recipe(breach=_append_long_line),
    "added-lines-never": Recipe(breach=_append_to_source),
    "answer-begins": Recipe(
        comply=lambda draft, given: setattr(draft.last_answer, "prefix", given.comply),
        breach=_set_answer("prefix", ""),
    ),
    "answer-ends": Recipe(comply=_set_closing, breach=_drop_closing),
    "answer-items": Recipe(comply=_set_answer("items", value=True), breach=_set_answer("items", value=False)),
    "answer-json": Recipe(comply=_write_json, breach=_set_answer("json_keys", ())),
    "answer-mentions": Recipe(comply=_add_answer_line, breach=_drop_answer_line),
    "answer-names-files": Recipe(breach=_set_answer("names_files", value=False)),
    "answer-words": Recipe(breach=_pad_answer),
    "calls-at-most": Recipe(breach=_call_often),
    "calls-explained": Recipe(breach=_set("silent", value=True)),
    "changed-sources-gain": Recipe(comply=_mark_sources, breach=_unmark_source),
    "command-after-last-edit": Recipe(comply=_test_each_turn, breach=_drop_after),
    "command-before-first-edit": Recipe(comply=_add_before, breach=_drop_before),
    "command-run": Recipe(comply=_add_after, breach=_drop_after),
    "commands-in-order": Recipe(comply=_add_after, breach=_reverse_after),
    "file-gains-line": Recipe(comply=_add_notes, breach=_drop_notes),
    "files-at-most": Recipe(breach=_change_many_files),
    "files-untouched": Recipe(breach=_touch_file),
    "functions-at-most": Recipe(breach=_append_function),
    JUDGED: Recipe(comply=_add_answer_line, breach=_drop_answer_line),
    "last-line-ends": Recipe(breach=_end_without_line),
    "lines-at-most": Recipe(breach=_append_lines),
    "never-command": Recipe(breach=_run_extra),
    "never-text": Recipe(breach=_write_text),
    "never-writes": Recipe(breach=_write_file),
    "new-files-begin": Recipe(comply=_begin_new_files, breach=_drop_beginnings),
    "new-files-never": Recipe(breach=_add_file),
    "new-files-only": Recipe(breach=_add_file),
    "new-functions-documented": Recipe(breach=_append_function),
    "new-functions-named": Recipe(breach=_append_function),
    "new-functions-typed": Recipe(breach=_append_function),
    "no-background": Recipe(breach=_run_extra),
    "no-reads-by": Recipe(breach=_run_extra),
    "no-writes-by": Recipe(breach=_run_extra),
    "plan-before-edit": Recipe(breach=_set("plans", value=False)),
    "read-before-edit": Recipe(breach=_set("reads", value=False)),
    "search-before-edit": Recipe(breach=_set("searches", value=False)),
    "single-commands": Recipe(breach=_run_extra),
    "skill-read": Recipe(comply=_use_skill, breach=_set("skill", "")),
    "tool-argument-given": Recipe(comply=_call_tool, breach=_drop_reason),
    "tool-called": Recipe(comply=_call_tool, breach=_drop_calls),
    "tool-calls-at-most": Recipe(comply=_call_tool, breach=_call_again),
    "tool-never": Recipe(breach=_call_tool),
    "turn-without-changes": Recipe(breach=_change_in_turn),
    "wrapped-command": Recipe(comply=_wrap_tests, breach=_set("wrapper", "")),
}
"""Name of a check -> its recipe. Every check has one, so that each is seen to pass and to fail."""


def _append(text: bytes, line: str) -> bytes:
    separator = b"" if not text or text.endswith(b"\n") else b"\n"
    return text + separator + line.encode() + b"\n"


def _get_suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    return "." + name.rpartition(".")[2] if "." in name else name
