"""Script of an agent that does the work of a task: its steps and texts, whatever its tools are.

`render_script` writes it with the tools of a scaffold, as answers of a model. Nothing is run.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evaluation.instructions.actions import ModelAnswer
from evaluation.instructions.changes import ChangedFile

SCAFFOLDS = ("react", "claude-code")
"""Scaffolds whose tools scripts are written with: commands alone, and tools for files."""
_HEREDOC_END = "END_OF_FILE"


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of an agent; each is one call."""


@dataclass(frozen=True, kw_only=True)
class Search(Step):
    """The tree is listed."""


@dataclass(frozen=True, kw_only=True)
class Read(Step):
    """A file is read. `is_absolute`: by its absolute path."""

    path: str
    is_absolute: bool = True


@dataclass(frozen=True, kw_only=True)
class Edit(Step):
    """A file is changed to a text."""

    change: ChangedFile
    is_absolute: bool = True


@dataclass(frozen=True, kw_only=True)
class Run(Step):
    """A command is run."""

    line: str


@dataclass(frozen=True, kw_only=True)
class Plan(Step):
    """A plan is written."""

    steps: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class ReadSkill(Step):
    """A skill is read."""

    name: str


@dataclass(frozen=True, kw_only=True)
class CallTool(Step):
    """A tool is called that instructions brought."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The steps of a turn and the answer that ends it."""

    steps: Sequence[Step]
    answer: str


@dataclass(frozen=True, kw_only=True)
class Script:
    """The turns of an agent. `changes`: files that differ at the end."""

    turns: Sequence[Turn]
    changes: Sequence[ChangedFile]
    opening: str = ""
    """Text of the first answer, before its call."""
    silent: frozenset[int] = field(default=frozenset())
    """Places of the steps of the first turn that no text explains."""


def render_script(script: Script, scaffold: str, workdir: str) -> list[ModelAnswer]:
    """Return the answers of a model that follows a script with the tools of a scaffold.

    Args:
        script: the script.
        scaffold: `react`, or `claude-code`.
        workdir: directory of the repository, absolute.
    """
    render = _RENDERERS[scaffold]
    answers: list[ModelAnswer] = []
    for number, turn in enumerate(script.turns, 1):
        for place, step in enumerate(turn.steps):
            is_first = number == 1 and place == 0
            is_silent = number == 1 and place in script.silent
            explained = "" if is_silent else _explain(step)
            text = "\n\n".join(filter(None, (script.opening if is_first else "", explained)))
            calls = [
                _make_call(f"call_{len(answers)}_{at}", name, arguments)
                for at, (name, arguments) in enumerate(render(step, workdir))
            ]
            message = {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})
            answers.append(ModelAnswer(exchange=len(answers), turn=number, message=message))
        message = {"role": "assistant", "content": turn.answer}
        answers.append(ModelAnswer(exchange=len(answers), turn=number, message=message))
    return answers


def _make_call(identifier: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": identifier, "type": "function", "function": function}


def _explain(step: Step) -> str:
    """Return the sentence that explains a step; a plan is one itself where there is no tool for it."""
    if isinstance(step, Plan):
        return "The plan:\n" + "\n".join(f"{number}. {text}" for number, text in enumerate(step.steps, 1))
    texts: Mapping[type[Step], str] = {
        Search: "I look at the files of the project.",
        Read: "I read the file.",
        Edit: "I change the file.",
        Run: "I run a command.",
        ReadSkill: "I read the skill.",
        CallTool: "I look up what is known.",
    }
    return texts[type(step)]


def _render_react(step: Step, workdir: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the calls of a step with a shell alone."""
    if isinstance(step, Search):
        yield "bash", {"command": "ls"}
    elif isinstance(step, Read):
        yield "bash", {"command": f"sed -n '1,400p' {shlex.quote(_place(step.path, workdir, step.is_absolute))}"}
    elif isinstance(step, Edit):
        yield "bash", {"command": _write_command(step.change, _place(step.change.path, workdir, step.is_absolute))}
    elif isinstance(step, Run):
        yield "bash", {"command": step.line}
    elif isinstance(step, ReadSkill):
        yield "skill", {"name": step.name}
    elif isinstance(step, CallTool):
        yield step.name, step.arguments


def _render_claude_code(step: Step, workdir: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the calls of a step with tools for files."""
    if isinstance(step, Search):
        yield "Glob", {"pattern": "**/*"}
    elif isinstance(step, Plan):
        yield "TodoWrite", {"todos": [{"content": text, "status": "pending"} for text in step.steps]}
    elif isinstance(step, Read):
        yield "Read", {"file_path": _place(step.path, workdir, step.is_absolute)}
    elif isinstance(step, Edit):
        yield _render_edit(step, _place(step.change.path, workdir, step.is_absolute))
    elif isinstance(step, Run):
        yield "Bash", {"command": step.line}
    elif isinstance(step, ReadSkill):
        yield "Skill", {"skill": step.name}
    elif isinstance(step, CallTool):
        yield f"mcp__project__{step.name}", step.arguments


def _render_edit(step: Edit, path: str) -> tuple[str, Mapping[str, Any]]:
    change = step.change
    if change.after is None:
        return "Bash", {"command": f"rm {shlex.quote(path)}"}
    if change.before is None:
        return "Write", {"file_path": path, "content": _decode(change.after)}
    return "Edit", {"file_path": path, "old_string": _decode(change.before), "new_string": _decode(change.after)}


def _write_command(change: ChangedFile, path: str) -> str:
    """Return the command that writes a file: as a whole, since a shell has no other way that fits every text."""
    if change.after is None:
        return f"rm {shlex.quote(path)}"
    text = _decode(change.after)
    # A line of the text must not end the heredoc.
    end = _HEREDOC_END
    while end in text:
        end += "_"
    return f"cat > {shlex.quote(path)} <<'{end}'\n{text if text.endswith(chr(10)) else text + chr(10)}{end}"


def _place(path: str, workdir: str, is_absolute: bool) -> str:
    return f"{workdir}/{path}" if is_absolute else path


def _decode(content: bytes) -> str:
    return content.decode(errors="replace")


_RENDERERS: Mapping[str, Callable[[Step, str], Iterator[tuple[str, Mapping[str, Any]]]]] = {
    "react": _render_react,
    "claude-code": _render_claude_code,
}


def insert_step(script: Script, at: int, step: Step, turn: int = 1) -> Script:
    """Return the script with a further step at a place of a turn."""
    turns = list(script.turns)
    steps = list(turns[turn - 1].steps)
    steps.insert(at, step)
    turns[turn - 1] = replace(turns[turn - 1], steps=steps)
    return replace(script, turns=turns)
