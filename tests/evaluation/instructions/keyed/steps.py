"""Conversations as steps, and the answers of a model that makes these steps with the tools of a scaffold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.samplers.scripted_model import Call, Turn

WORKDIR = "/testbed"
SKILL, TOOL = "change-checklist", "project_notes"
SKILL_FILE = f"/opt/mergemill/agent/skills/{SKILL}/SKILL.md"


@dataclass(frozen=True)
class Operation:
    """A call, whatever the tool for it is called. `kind`: name of the function below that makes it."""

    kind: str
    arguments: Mapping[str, Any]


def look(path: str = ".") -> Operation:
    return Operation("look", {"path": path})


def read(path: str) -> Operation:
    return Operation("read", {"path": path})


def edit(path: str, old: str, new: str) -> Operation:
    return Operation("edit", {"path": path, "old": old, "new": new})


def write(path: str, text: str) -> Operation:
    return Operation("write", {"path": path, "text": text})


def run(line: str) -> Operation:
    return Operation("run", {"line": line})


def plan(*steps: str) -> Operation:
    return Operation("plan", {"steps": steps})


def read_skill() -> Operation:
    return Operation("skill", {})


def ask_notes(topic: str, reason: str | None = None) -> Operation:
    return Operation("notes", {"topic": topic} | ({} if reason is None else {"reason": reason}))


@dataclass(frozen=True)
class Step:
    """An answer of the model: a text, and calls. One without calls ends a turn."""

    name: str
    text: str
    operations: tuple[Operation, ...] = ()


def step(name: str, text: str, *operations: Operation) -> Step:
    return Step(name, text, operations)


@dataclass(frozen=True)
class Draft:
    """The steps of a conversation. Each function returns another draft."""

    steps: tuple[Step, ...]

    def drop(self, *names: str) -> Draft:
        """Leave out steps."""
        for name in names:
            self.find(name)
        return Draft(tuple(item for item in self.steps if item.name not in names))

    def swap(self, name: str, text: str | None = None, *operations: Operation) -> Draft:
        """Give a step another text, where one is given, and other calls, where any are given."""
        place = self.find(name)
        old = self.steps[place]
        new = replace(old, text=old.text if text is None else text, operations=operations or old.operations)
        return Draft((*self.steps[:place], new, *self.steps[place + 1 :]))

    def before(self, name: str, *steps: Step) -> Draft:
        """Insert steps before another."""
        place = self.find(name)
        return Draft((*self.steps[:place], *steps, *self.steps[place:]))

    def move(self, name: str, before: str) -> Draft:
        """Put a step before another."""
        return self.drop(name).before(before, self.steps[self.find(name)])

    def find(self, name: str) -> int:
        """Return the place of a step."""
        (place,) = [place for place, item in enumerate(self.steps) if item.name == name]
        return place


def draft(*steps: Step) -> Draft:
    return Draft(steps)


def render(steps: Draft, scaffold: str) -> list[Turn]:
    """Return the answers of a model that makes the steps with the tools of a scaffold."""
    answers = []
    for item in steps.steps:
        calls = [call for operation in item.operations for call in _RENDERERS[scaffold](operation)]
        text = "\n\n".join(filter(None, (item.text, *(_write_plan(part, scaffold) for part in item.operations))))
        if not item.operations and scaffold == "react":
            calls = [Call("submit", {})]
        answers.append(Turn(text=text, calls=tuple(calls)))
    return answers


def _write_plan(operation: Operation, scaffold: str) -> str:
    """Return a plan as text, where a scaffold has no tool for it."""
    if operation.kind != "plan" or scaffold == "opencode":
        return ""
    return "\n".join(f"{number}. {text}" for number, text in enumerate(operation.arguments["steps"], 1))


def _place(path: str) -> str:
    return path if path.startswith("/") else f"{WORKDIR}/{path}"


def _render_react(operation: Operation) -> list[Call]:
    given = operation.arguments
    if operation.kind == "skill":
        return [Call("skill", {"name": SKILL})]
    if operation.kind == "notes":
        return [Call(TOOL, dict(given))]
    if operation.kind == "edit":
        change = f"path.write_text(path.read_text().replace({given['old']!r}, {given['new']!r}))"
        program = f"from pathlib import Path\npath = Path({given['path']!r})\n{change}\n"
        return [Call("bash", {"command": f"python3 - <<'END'\n{program}END"})]
    line = _write_line(operation)
    return [Call("bash", {"command": line})] if line else []


def _write_line(operation: Operation) -> str:
    """Return the line of a shell that makes a step; empty for none."""
    given = operation.arguments
    if operation.kind == "look":
        return f"ls {given['path']}"
    if operation.kind == "read":
        return f"sed -n '1,120p' {given['path']}"
    if operation.kind == "write":
        return f"cat > {given['path']} <<'END'\n{given['text']}END"
    return str(given.get("line", ""))


def _render_codex(operation: Operation) -> list[Call]:
    given = operation.arguments
    if operation.kind == "skill":
        return [Call("exec_command", {"cmd": f"cat {SKILL_FILE}"})]
    if operation.kind == "notes":
        return [Call(f"mcp__project__{TOOL}", dict(given))]
    if operation.kind == "edit":
        lines = [f"-{line}" for line in given["old"].splitlines()] + [f"+{line}" for line in given["new"].splitlines()]
        body = "\n".join(["*** Begin Patch", f"*** Update File: {given['path']}", "@@", *lines, "*** End Patch"])
        return [Call("exec_command", {"cmd": f"apply_patch <<'END'\n{body}\nEND"})]
    line = _write_line(operation)
    return [Call("exec_command", {"cmd": line})] if line else []


def _render_claude_code(operation: Operation) -> list[Call]:
    given = operation.arguments
    made: Mapping[str, Callable[[], Call]] = {
        "skill": lambda: Call("Skill", {"skill": SKILL}),
        "notes": lambda: Call(f"mcp__project__{TOOL}", dict(given)),
        "edit": lambda: Call(
            "Edit", {"file_path": _place(given["path"]), "old_string": given["old"], "new_string": given["new"]}
        ),
        "write": lambda: Call("Write", {"file_path": _place(given["path"]), "content": given["text"]}),
        "read": lambda: Call("Read", {"file_path": _place(given["path"])}),
    }
    if operation.kind in made:
        return [made[operation.kind]()]
    line = _write_line(operation)
    return [Call("Bash", {"command": line})] if line else []


def _render_opencode(operation: Operation) -> list[Call]:
    given = operation.arguments
    made: Mapping[str, Callable[[], Call]] = {
        "skill": lambda: Call("skill", {"name": SKILL}),
        "notes": lambda: Call(f"project_{TOOL}", dict(given)),
        "edit": lambda: Call(
            "edit", {"filePath": _place(given["path"]), "oldString": given["old"], "newString": given["new"]}
        ),
        "write": lambda: Call("write", {"filePath": _place(given["path"]), "content": given["text"]}),
        "read": lambda: Call("read", {"filePath": _place(given["path"])}),
        "look": lambda: Call("glob", {"pattern": "**/*.py"}),
        "plan": lambda: Call("todowrite", {"todos": _list_todos(given["steps"])}),
        "run": lambda: Call("bash", {"command": given["line"]}),
    }
    return [made[operation.kind]()]


def _list_todos(steps: Sequence[str]) -> list[dict[str, str]]:
    return [{"content": text, "status": "pending", "priority": "medium"} for text in steps]


def _render_qwen_code(operation: Operation) -> list[Call]:
    given = operation.arguments
    made: Mapping[str, Callable[[], Call]] = {
        "skill": lambda: Call("skill", {"skill": SKILL}),
        "notes": lambda: Call(f"mcp__project__{TOOL}", dict(given)),
        "edit": lambda: Call(
            "edit", {"file_path": _place(given["path"]), "old_string": given["old"], "new_string": given["new"]}
        ),
        "write": lambda: Call("write_file", {"file_path": _place(given["path"]), "content": given["text"]}),
        "read": lambda: Call("read_file", {"file_path": _place(given["path"])}),
        "look": lambda: Call("glob", {"pattern": "**/*.py"}),
        "run": lambda: Call("run_shell_command", {"command": given["line"], "is_background": False}),
    }
    return [made[operation.kind]()] if operation.kind in made else []


_RENDERERS: Mapping[str, Callable[[Operation], list[Call]]] = {
    "react": _render_react,
    "claude-code": _render_claude_code,
    "codex": _render_codex,
    "opencode": _render_opencode,
    "qwen-code": _render_qwen_code,
}
