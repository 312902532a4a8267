"""Actions of an agent: the texts and calls of its recorded answers as one list, whatever scaffold it has.

`TOOLS` maps the tools of all scaffolds; tools of the same name do the same everywhere. A line of Bash is an action for
each of its commands, and one for each file that the command reads or changes.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from evaluation.instructions.effects import EffectKind, list_effects, list_inline_commands, list_patch_effects
from evaluation.instructions.shell import ShellCommand, join_path, parse_line

MAX_UNKNOWN_SHARE = 0.05
"""Share of calls of unknown tools above which the table is out of date for a scaffold, and nothing is decided."""


class ActionKind(StrEnum):
    """Kind of an action."""

    SAY = "say"
    """Text of an answer."""
    THINK = "think"
    """Reasoning, which no user sees."""
    READ = "read"
    SEARCH = "search"
    WRITE = "write"
    EDIT = "edit"
    REMOVE = "remove"
    RUN = "run"
    """A command of a shell."""
    PLAN = "plan"
    """The list of steps of the scaffold is written."""
    SKILL = "skill"
    """A skill is read."""
    ASK = "ask"
    END = "end"
    """The scaffold's own tool that ends the work."""
    GUIDANCE = "guidance"
    """A tool that instructions brought."""
    OTHER = "other"


CHANGES = frozenset((ActionKind.WRITE, ActionKind.EDIT, ActionKind.REMOVE))
"""Kinds of actions that change a file."""


@dataclass(frozen=True, kw_only=True)
class ModelAnswer:
    """An answer of the model, in OpenAI's form."""

    exchange: int
    """Number of the recorded exchange."""
    turn: int = 1
    """Turn of the user that it belongs to, from 1."""
    message: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class AgentAction:
    """An action."""

    kind: ActionKind
    exchange: int
    turn: int
    call: int
    """Place of the call in its answer, from 0; -1 for texts. Actions of one call are of the same line of Bash."""
    tool: str = ""
    """Name of the tool; empty for texts."""
    path: str = ""
    """File, relative to the repository, or absolute outside of it; empty where there is none or it is not known."""
    raw_path: str = ""
    """The path as the agent wrote it."""
    text: str = ""
    """Text of an answer, line of a command, or content that is written."""
    command: ShellCommand | None = None
    """Command of a RUN."""
    n_listed: int = 1
    """Commands of the line that a RUN is part of, pipelines as one."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the call."""

    @property
    def quote(self) -> str:
        """A line that shows the action, at most 200 characters."""
        shown = self.text or self.path or json.dumps(self.arguments, ensure_ascii=False)
        return " ".join(f"{self.tool} {shown}".split())[:200]


@dataclass(frozen=True, kw_only=True)
class ToolMapping:
    """Use that a tool has: the kind of its calls, and the arguments with path, command and content."""

    kind: ActionKind
    path: Sequence[str] = ()
    text: Sequence[str] = ()


_PATHS = ("file_path", "filePath", "absolute_path", "path", "notebook_path", "dir_path", "relative_path")
_COMMANDS = ("command", "cmd", "script")
_READ = ToolMapping(kind=ActionKind.READ, path=_PATHS)
_SEARCH = ToolMapping(kind=ActionKind.SEARCH, path=("path", "dir_path", "dir"), text=("pattern", "query"))
_WRITE = ToolMapping(kind=ActionKind.WRITE, path=_PATHS, text=("content", "file_text", "contents"))
_EDIT = ToolMapping(
    kind=ActionKind.EDIT, path=_PATHS, text=("new_string", "newString", "new_str", "new_source", "edits", "content")
)
_RUN = ToolMapping(kind=ActionKind.RUN, text=_COMMANDS)
_PATCH = ToolMapping(kind=ActionKind.EDIT, text=("input", "patch", "patchText", "diff"))
_PLAN = ToolMapping(kind=ActionKind.PLAN, text=("todos", "plan", "task_list", "subject", "explanation"))
_SKILL = ToolMapping(kind=ActionKind.SKILL, text=("skill", "name", "command"))
_ASK = ToolMapping(kind=ActionKind.ASK, text=("question", "questions"))
_END = ToolMapping(kind=ActionKind.END, text=("message",))
_IGNORED = ToolMapping(kind=ActionKind.THINK, text=("thought", "prompt", "description"))
"""Calls that neither see nor change the files themselves: thoughts, modes, sub-agents, whose own calls are recorded."""

TOOLS: Mapping[str, ToolMapping] = {
    **dict.fromkeys(
        (
            "bash",
            "shell",
            "shell_command",
            "exec_command",
            "local_shell",
            "run_shell_command",
            "terminal",
            "execute_bash",
            "container.exec",
        ),
        _RUN,
    ),
    # typed into a shell
    "write_stdin": ToolMapping(kind=ActionKind.RUN, text=("chars",)),
    "bash_command": ToolMapping(kind=ActionKind.RUN, text=("keystrokes",)),
    **dict.fromkeys(("read", "read_file", "notebookread", "view_image", "read_mcp_resource"), _READ),
    "read_many_files": ToolMapping(kind=ActionKind.READ, path=("paths",)),
    **dict.fromkeys(
        (
            "glob",
            "grep",
            "grep_search",
            "search_file_content",
            "list",
            "ls",
            "list_directory",
            "list_dir",
            "grep_files",
        ),
        _SEARCH,
    ),
    **dict.fromkeys(("write", "write_file"), _WRITE),
    **dict.fromkeys(("edit", "multiedit", "replace", "notebookedit", "edit_file"), _EDIT),
    **dict.fromkeys(("apply_patch", "patch"), _PATCH),
    **dict.fromkeys(
        ("todowrite", "todo_write", "update_plan", "task_tracker", "taskcreate", "taskupdate", "exitplanmode"), _PLAN
    ),
    **dict.fromkeys(("skill", "read_skill", "invoke_skill"), _SKILL),
    **dict.fromkeys(("question", "ask_user_question", "askuserquestion", "request_user_input"), _ASK),
    **dict.fromkeys(("submit", "finish", "mark_task_complete"), _END),
    **dict.fromkeys(
        (
            "think",
            "task",
            "agent",
            "enterplanmode",
            "exit_plan_mode",
            "todoread",
            "tasklist",
            "taskget",
            "taskoutput",
            "taskstop",
            "bashoutput",
            "killshell",
            "killbash",
            "toolsearch",
            "spawn_agent",
            "wait",
            "send_input",
            "close_agent",
            "list_mcp_resources",
            "sleep",
        ),
        _IGNORED,
    ),
    "save_memory": ToolMapping(kind=ActionKind.OTHER, text=("fact",)),
}
"""Name of a tool, in lower case -> its use."""
_EDITORS = frozenset(("file_editor", "str_replace_editor", "str_replace_based_edit_tool"))
"""Tools whose argument `command` decides the kind of a call."""
_EDITOR_USES: Mapping[str, ToolMapping] = {
    "view": _READ,
    "create": _WRITE,
    "str_replace": _EDIT,
    "insert": _EDIT,
    "undo_edit": _EDIT,
}
_EFFECT_KINDS: Mapping[EffectKind, ActionKind] = {kind: ActionKind(kind.value) for kind in EffectKind}
_MCP = re.compile(r"mcp__.+__")


@dataclass(frozen=True, kw_only=True)
class ActionLog:
    """All actions of a rollout, in their order."""

    actions: Sequence[AgentAction]
    n_calls: int
    n_unknown: int
    """Calls of tools that are in no table."""

    @property
    def is_readable(self) -> bool:
        """Whether the tables know the scaffold's tools."""
        return self.n_unknown <= MAX_UNKNOWN_SHARE * self.n_calls


def read_actions(answers: Iterable[ModelAnswer], *, workdir: str = "", own_tools: Iterable[str] = ()) -> ActionLog:
    """Return the actions of recorded answers.

    Args:
        answers: answers in their order.
        workdir: directory of the repository in the container, absolute.
        own_tools: names of the tools that instructions brought.
    """
    actions: list[AgentAction] = []
    n_calls = n_unknown = 0
    guidance = frozenset(own_tools)
    for answer in answers:
        # A model writes before it calls, in whatever order a dialect sends both.
        actions += _list_texts(answer)
        for place, call in enumerate(answer.message.get("tool_calls") or ()):
            made = list(_list_call_actions(answer, place, call, guidance))
            n_calls += 1
            n_unknown += any(action.kind is ActionKind.OTHER and not _is_known(action.tool) for action in made)
            actions += made
    return ActionLog(
        actions=[_relate(action, workdir.rstrip("/")) for action in actions], n_calls=n_calls, n_unknown=n_unknown
    )


def list_action_texts(action: AgentAction) -> Iterator[str]:
    """Yield all that the agent wrote in an action: its text, or each argument of its call."""
    if action.arguments:
        yield from _flatten(action.arguments)
    elif action.text:
        yield action.text


def _flatten(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _flatten(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _flatten(inner)
    elif isinstance(value, str):
        yield value


def is_own_tool(tool: str, own: str) -> bool:
    """Return whether a called tool is one that instructions brought, which programs give the name of its server.

    Args:
        tool: name as it was called, such as `mcp__project__notes` or `project_notes`.
        own: name of the tool itself.
    """
    return tool == own or tool.endswith(f"_{own}")


def _is_known(tool: str) -> bool:
    return _strip_server(tool) in TOOLS


def _strip_server(tool: str) -> str:
    """Return the name of a tool without that of its server, in lower case."""
    return _MCP.sub("", tool).lower()


def _list_texts(answer: ModelAnswer) -> Iterator[AgentAction]:
    for kind, name in ((ActionKind.THINK, "reasoning_content"), (ActionKind.SAY, "content")):
        content = answer.message.get(name)
        if isinstance(content, list):
            parts = (part.get("text") for part in content if isinstance(part, Mapping))
            content = "\n".join(part for part in parts if isinstance(part, str))
        if isinstance(content, str) and content.strip():
            yield AgentAction(kind=kind, exchange=answer.exchange, turn=answer.turn, call=-1, text=content)


def _list_call_actions(
    answer: ModelAnswer, place: int, call: Mapping[str, Any], guidance: frozenset[str]
) -> Iterator[AgentAction]:
    """Yield the actions of a call."""
    function = call.get("function") or {}
    tool = str(function.get("name") or "")
    arguments = _parse_arguments(function.get("arguments"))
    action = AgentAction(
        kind=ActionKind.OTHER, exchange=answer.exchange, turn=answer.turn, call=place, tool=tool, arguments=arguments
    )
    name = _strip_server(tool)
    # Programs put the name of a server before that of its tool, each in its own way.
    if any(is_own_tool(tool, own) for own in guidance):
        yield replace(action, kind=ActionKind.GUIDANCE)
        return
    use = _EDITOR_USES.get(str(arguments.get("command"))) if name in _EDITORS else TOOLS.get(name)
    if use is None:
        yield action
        return
    text = _get_argument(arguments, use.text)
    if use.kind is ActionKind.RUN:
        # Some scaffolds start each command in a folder that the call names.
        folder = str(arguments.get("workdir") or arguments.get("directory") or arguments.get("cwd") or "")
        yield from _list_line_actions(action, _unwrap_list(text), folder)
    elif use is _PATCH:
        for effect in list_patch_effects(text):
            kind = _EFFECT_KINDS[effect.kind]
            yield replace(action, kind=kind, path=effect.path, raw_path=effect.path, text=effect.text)
    else:
        paths = arguments.get("paths") if "paths" in use.path else None
        for path in paths if isinstance(paths, list) else [_get_argument(arguments, use.path)]:
            yield replace(action, kind=use.kind, path=str(path), raw_path=str(path), text=text)


def _parse_arguments(arguments: object) -> Mapping[str, Any]:
    """Return the arguments of a call; those of a tool that takes a text under `input`."""
    if isinstance(arguments, Mapping):
        return arguments
    try:
        parsed = json.loads(str(arguments or "{}"))
    except ValueError:
        return {"input": str(arguments)}
    return parsed if isinstance(parsed, Mapping) else {"input": str(arguments)}


def _get_argument(arguments: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first of some arguments that there is, as text."""
    value = next((arguments[name] for name in names if arguments.get(name)), "")
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return json.dumps(value) if names is _COMMANDS else "\n".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _unwrap_list(text: str) -> str:
    """Return the line of a command that is given as a list of words: `["bash", "-lc", LINE]`."""
    if not text.startswith("["):
        return text
    try:
        words = json.loads(text)
    except ValueError:
        return text
    if not isinstance(words, list) or not words:
        return text
    is_script = len(words) == 3 and re.fullmatch(r"-[a-z]*c", str(words[1])) is not None
    return str(words[2]) if is_script else " ".join(_quote(str(word)) for word in words)


def _quote(word: str) -> str:
    return word if re.fullmatch(r"[\w@%+=:,./-]+", word) else "'" + word.replace("'", "'\"'\"'") + "'"


def _list_line_actions(action: AgentAction, line: str, folder: str) -> Iterator[AgentAction]:
    """Yield the actions of a line of Bash: for each command a RUN, then its effects on files."""
    parsed = parse_line(line)
    for outer in parsed.commands:
        for command in (outer, *list_inline_commands(outer)):
            placed = replace(command, folder=join_path(folder, command.folder)) if folder else command
            yield replace(
                action, kind=ActionKind.RUN, text=command.line, command=placed, n_listed=parsed.n_listed, path=""
            )
            for effect in list_effects(placed):
                raw = next((word for word in command.words if effect.path and effect.path.endswith(word)), effect.path)
                yield replace(
                    action,
                    kind=_EFFECT_KINDS[effect.kind],
                    path=effect.path,
                    raw_path=raw,
                    text=effect.text or command.line,
                    command=placed,
                )


def _relate(action: AgentAction, workdir: str) -> AgentAction:
    """Return the action with a path that is relative to the repository."""
    path = posixpath.normpath(action.path) if action.path else ""
    if workdir and (path == workdir or path.startswith(f"{workdir}/")):
        path = path[len(workdir) + 1 :]
    path = "" if path == "." else path
    # Most actions have no path, and a copy of each would take as long as reading its line.
    return action if path == action.path else replace(action, path=path)
