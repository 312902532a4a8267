"""Effects of commands on files: which they read, search, write, edit and remove, as far as their words show it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evaluation.instructions.shell import ShellCommand, join_path, parse_line

UNKNOWN_PATH = "?"
"""Path of a file that a program computes."""


class EffectKind(StrEnum):
    """Effect of a command or tool on a file."""

    READ = "read"
    SEARCH = "search"
    """It is looked for, or in it; without a path, in the whole tree."""
    WRITE = "write"
    """A whole file is written, or appended to."""
    EDIT = "edit"
    """A part is changed."""
    REMOVE = "remove"


@dataclass(frozen=True, kw_only=True)
class FileEffect:
    """An effect on a file. `path`: relative to the directory in which the command is run, or absolute."""

    kind: EffectKind
    path: str
    text: str = ""
    """Text that is written, where it is known."""


_READERS = frozenset(
    (
        "cat",
        "head",
        "tail",
        "less",
        "more",
        "nl",
        "bat",
        "batcat",
        "tac",
        "od",
        "xxd",
        "hexdump",
        "strings",
        "wc",
        "cut",
    )
)
_SEARCHERS = frozenset(("grep", "egrep", "fgrep", "rg", "ag", "ack"))
_LISTERS = frozenset(("ls", "find", "fd", "tree", "locate", "du"))
_OPTIONS_WITH_VALUE: Mapping[str, frozenset[str]] = {
    "head": frozenset(("-n", "-c")),
    "tail": frozenset(("-n", "-c")),
    "cut": frozenset(("-d", "-f", "-c", "-b")),
    "nl": frozenset(("-b", "-w", "-s")),
    "grep": frozenset(("-A", "-B", "-C", "-m", "-e", "-f", "--include", "--exclude")),
    "rg": frozenset(("-A", "-B", "-C", "-m", "-e", "-g", "-t", "-T")),
    "touch": frozenset(("-d", "-r", "-t")),
    "mkdir": frozenset(("-m",)),
    "install": frozenset(("-m", "-o", "-g", "-t")),
    "truncate": frozenset(("-s", "-r")),
    "patch": frozenset(("-p", "-d", "-i", "-o")),
}
_NO_FILES = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "-"))
_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_PATCHED = re.compile(r"^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
_SECTION = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)
"""Heading of a file in a patch of the tool `apply_patch`."""
_NODE_WRITE = re.compile(r"(?:writeFile|appendFile|createWriteStream)(?:Sync)?\(\s*['\"`]([^'\"`]+)")
_OPEN_MODES = frozenset("wax+")
_PATH_WRITES = frozenset(("write_text", "write_bytes", "touch"))
_PATH_READS = frozenset(("read_text", "read_bytes"))


def list_effects(command: ShellCommand) -> list[FileEffect]:
    """Return the effects of a command, by the words of well-known programs and by its redirections."""
    folder, program = command.folder, command.program
    effects = [
        FileEffect(kind=EffectKind.READ, path=join_path(folder, path))
        for path in command.inputs
        if path not in _NO_FILES
    ]
    effects += [
        FileEffect(kind=effect.kind, path=_place(folder, effect.path), text=effect.text)
        for effect in _list_own_effects(program, command)
        if effect.path not in _NO_FILES
    ]
    # The text is known where the line itself has it; that of other programs is not.
    text = command.stdin or (" ".join(command.words[1:]) if program in {"echo", "printf"} else "")
    effects += [
        FileEffect(kind=EffectKind.WRITE, path=join_path(folder, path), text=text)
        for path in command.outputs
        if path not in _NO_FILES
    ]
    return effects


def list_patch_effects(patch: str) -> list[FileEffect]:
    """Return the effects of a patch, unified or of the tool `apply_patch`."""
    kinds = {"Add": EffectKind.WRITE, "Update": EffectKind.EDIT, "Delete": EffectKind.REMOVE}
    sections = [
        FileEffect(kind=kinds[match[1]], path=join_path("", match[2]), text=patch) for match in _SECTION.finditer(patch)
    ]
    return sections or [
        FileEffect(kind=EffectKind.EDIT, path=join_path("", match[1]), text=patch)
        for match in _PATCHED.finditer(patch)
        if match[1] != "/dev/null"
    ]


def _place(folder: str, path: str) -> str:
    return path if path in {UNKNOWN_PATH, ""} else join_path(folder, path)


def _list_own_effects(program: str, command: ShellCommand) -> Iterator[FileEffect]:  # noqa: C901, PLR0912 - a table
    words = command.words[1:]
    files = _list_operands(program, words)
    # Options are not looked at but where they turn a reader into an editor.
    if program in _READERS:
        yield from _make(EffectKind.READ, files)
    elif program in _SEARCHERS:
        has_pattern = any(re.match(r"-e|--regexp|-f|--file", word) for word in words)
        yield from _make(EffectKind.SEARCH, files if has_pattern else files[1:] or [""])
    elif program in _LISTERS:
        yield from _make(EffectKind.REMOVE if "-delete" in words else EffectKind.SEARCH, files[:1] or [""])
    elif program in {"sed", "perl", "ruby"}:
        yield from _list_stream_edits(program, words)
    elif program in {"awk", "gawk", "mawk"}:
        yield from _make(EffectKind.READ, files[1:])
    elif program == "tee" or program in {"touch", "truncate", "mkdir", "mkfifo"}:
        yield from _make(EffectKind.WRITE, files)
    elif program in {"cp", "install", "ln", "rsync"}:
        yield from _make(EffectKind.READ, files[:-1])
        yield from _make(EffectKind.WRITE, files[-1:])
    elif program == "mv":
        yield from _make(EffectKind.REMOVE, files[:-1])
        yield from _make(EffectKind.WRITE, files[-1:])
    elif program in {"rm", "rmdir", "unlink", "shred"}:
        yield from _make(EffectKind.REMOVE, files)
    elif program == "dd":
        yield from _make(EffectKind.WRITE, [word[3:] for word in words if word.startswith("of=")])
    elif program in {"patch", "apply_patch"}:
        yield from list_patch_effects(command.stdin or "\n".join(words)) or _make(EffectKind.EDIT, [UNKNOWN_PATH])
    elif program == "git":
        yield from _list_git_effects(words, command.stdin)
    elif program in {"ed", "ex", "vi", "vim"}:
        yield from _make(EffectKind.EDIT, files)
    elif _PYTHON.fullmatch(program):
        effects = list_python_effects(_find_code(words, "-c") or ("" if files else command.stdin))
        # The order of a program's calls is not known; what is read and written in one is read first.
        yield from sorted(effects, key=lambda effect: effect.kind is not EffectKind.READ)
    elif program == "node":
        code = _find_code(words, "-e") or ("" if files else command.stdin)
        yield from _make(EffectKind.WRITE, [match[1] for match in _NODE_WRITE.finditer(code)])


def _make(kind: EffectKind, paths: Sequence[str]) -> Iterator[FileEffect]:
    yield from (FileEffect(kind=kind, path=path) for path in paths)


def _list_operands(program: str, words: Sequence[str]) -> list[str]:
    """Return the words that are neither options nor values of options."""
    with_value = _OPTIONS_WITH_VALUE.get({"egrep": "grep", "fgrep": "grep"}.get(program, program), frozenset())
    operands, is_value, is_ended = [], False, False
    for word in words:
        if is_value:
            is_value = False
        elif word == "--":
            is_ended = True
        elif not is_ended and word.startswith("-") and len(word) > 1:
            is_value = word in with_value
        else:
            operands.append(word)
    return operands


def _list_stream_edits(program: str, words: Sequence[str]) -> Iterator[FileEffect]:
    """Yield the effects of sed, and of perl and ruby with a program on the command line."""
    is_edit = any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in words)
    has_script = any(re.match(r"-[a-zA-Z]*e|--expression|-f", word) for word in words)
    operands, skips = [], False
    for word in words:
        if skips:
            skips = False
        elif word.startswith("-") and len(word) > 1:
            skips = re.fullmatch(r"-[a-zA-Z]*[ef]|--expression|--file", word) is not None
        else:
            operands.append(word)
    if program != "sed" and not has_script:
        return  # a script of its own
    yield from _make(EffectKind.EDIT if is_edit else EffectKind.READ, operands if has_script else operands[1:])


def _list_git_effects(words: Sequence[str], stdin: str) -> Iterator[FileEffect]:
    name, rest = (words[0], words[1:]) if words else ("", ())
    files = [word for word in rest if not word.startswith("-")]
    behind = list(rest[rest.index("--") + 1 :]) if "--" in rest else []
    if name in {"apply", "am"}:
        yield from list_patch_effects(stdin) or _make(EffectKind.EDIT, [UNKNOWN_PATH])
    elif name == "rm":
        yield from _make(EffectKind.REMOVE, files)
    elif name == "mv":
        yield from _make(EffectKind.REMOVE, files[:-1])
        yield from _make(EffectKind.WRITE, files[-1:])
    elif name == "restore" or (name == "checkout" and behind):
        yield from _make(EffectKind.WRITE, behind or files)
    elif name == "grep":
        yield from _make(EffectKind.SEARCH, behind or [""])
    elif name == "ls-files":
        yield from _make(EffectKind.SEARCH, [""])
    elif name == "show":
        yield from _make(EffectKind.READ, [word.partition(":")[2] for word in files if ":" in word])


def _find_code(words: Sequence[str], option: str) -> str:
    """Return the program that stands behind an option of an interpreter; empty for none."""
    return next((words[at + 1] for at, word in enumerate(words[:-1]) if word == option), "")


def list_python_effects(code: str) -> Iterator[FileEffect]:
    """Yield the effects of a Python program, those of the commands that it runs included."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    # Names are those of the whole program: the last value counts, as order is not followed.
    names = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _list_call_effects(node, names)


def _list_call_effects(call: ast.Call, names: Mapping[str, ast.expr]) -> Iterator[FileEffect]:
    function = ast.unparse(call.func)
    method = function.rpartition(".")[2]
    first = call.args[0] if call.args else None
    if function in {"open", "io.open", "codecs.open"} or (method == "open" and isinstance(call.func, ast.Attribute)):
        is_method = function not in {"open", "io.open", "codecs.open"}
        path = call.func.value if is_method and isinstance(call.func, ast.Attribute) else first
        modes = [*call.args[0 if is_method else 1 :], *(word.value for word in call.keywords if word.arg == "mode")]
        mode = _get_text(modes[0], names) if modes else "r"
        yield FileEffect(
            kind=EffectKind.WRITE if _OPEN_MODES & set(mode) else EffectKind.READ, path=_find_path(path, names)
        )
    elif method in _PATH_WRITES | _PATH_READS and isinstance(call.func, ast.Attribute):
        text = _get_text(first, names) if method == "write_text" else ""
        kind = EffectKind.WRITE if method in _PATH_WRITES else EffectKind.READ
        written = "" if text == UNKNOWN_PATH else text
        yield FileEffect(kind=kind, path=_find_path(call.func.value, names), text=written)
    elif function in {"os.remove", "os.unlink", "os.rmdir", "shutil.rmtree"} or method == "unlink":
        is_method = method == "unlink" and first is None and isinstance(call.func, ast.Attribute)
        removed = call.func.value if is_method and isinstance(call.func, ast.Attribute) else first
        yield FileEffect(kind=EffectKind.REMOVE, path=_find_path(removed, names))
    elif function in {"os.rename", "os.replace", "shutil.move", "shutil.copy", "shutil.copyfile", "shutil.copytree"}:
        yield FileEffect(kind=EffectKind.WRITE, path=_find_path(call.args[1] if len(call.args) > 1 else None, names))
    else:
        for command in list_python_commands(call):
            yield from list_effects(command)


def list_python_commands(call: ast.Call) -> tuple[ShellCommand, ...]:
    """Return the commands that a call of a Python program runs: `os.system`, `subprocess`."""
    function = ast.unparse(call.func)
    first = call.args[0] if call.args else None
    if not (function in {"os.system", "os.popen"} or function.startswith("subprocess.")) or first is None:
        return ()
    if isinstance(first, ast.List | ast.Tuple):
        words = tuple(_get_text(word, {}) for word in first.elts)
        return (ShellCommand(words=words, line=" ".join(words), folder=""),)
    text = _get_text(first, {})
    return () if text == UNKNOWN_PATH else parse_line(text).commands


def list_inline_commands(command: ShellCommand) -> list[ShellCommand]:
    """Return the commands that the Python program on a command's line, or in its heredoc, runs."""
    if not _PYTHON.fullmatch(command.program):
        return []
    words = command.words[1:]
    code = _find_code(words, "-c") or ("" if _list_operands(command.program, words) else command.stdin)
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [made for node in ast.walk(tree) if isinstance(node, ast.Call) for made in list_python_commands(node)]


def _find_path(node: ast.expr | None, names: Mapping[str, ast.expr]) -> str:
    """Return the path that an expression is: a text, a name for it, or a path object made of it."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in {"Path", "PurePath"} and node.args:
        return _find_path(node.args[0], names)
    if isinstance(node, ast.Name) and node.id in names and not isinstance(names[node.id], ast.Name):
        return _find_path(names[node.id], names)
    return _get_text(node, names)


def _get_text(node: ast.expr | None, names: Mapping[str, ast.expr]) -> str:
    """Return the text of a constant or of a name for it; UNKNOWN_PATH for others."""
    if isinstance(node, ast.Name):
        node = names.get(node.id)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else UNKNOWN_PATH
