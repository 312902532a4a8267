"""Commands of a line of Bash, as they would be run: by the grammar, through `sh -c`, wrappers, aliases and heredocs.

Nothing is run. Variables that the line itself sets are resolved; all others stay in the words as they are written.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

_PARSER = Parser(Language(tree_sitter_bash.language()))
SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))
MAX_DEPTH = 8
"""Shells that a line may start within each other; deeper ones are not read."""
_ASSIGNMENT = re.compile(r"\w[\w-]*=")
_DURATION = re.compile(r"[\d.]+[smhd]?")
_WRAPPER_OPTIONS: Mapping[str, frozenset[str]] = {
    "sudo": frozenset(("-u", "-g", "-h", "-p", "-C", "--user", "--group")),
    "doas": frozenset(("-u",)),
    "env": frozenset(("-u", "-C", "-S", "--unset", "--chdir")),
    "timeout": frozenset(("-k", "-s", "--kill-after", "--signal")),
    "nice": frozenset(("-n", "--adjustment")),
    "ionice": frozenset(("-c", "-n", "-p")),
    "stdbuf": frozenset(("-i", "-o", "-e")),
    "xargs": frozenset(("-I", "-n", "-P", "-L", "-d", "-a", "-s", "-E")),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "time": frozenset(("-f", "-o")),
    "command": frozenset(),
    "builtin": frozenset(),
    "exec": frozenset(("-a",)),
}
"""Program that runs another -> those of its options that have a value."""
_GIT_OPTIONS = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"))
"""Options before the command of git that have a value."""
_SCOPES = frozenset(("subshell", "command_substitution", "process_substitution"))
_WORDS = frozenset(
    (
        "word",
        "string",
        "raw_string",
        "ansi_c_string",
        "translated_string",
        "concatenation",
        "number",
        "simple_expansion",
        "expansion",
        "command_substitution",
        "process_substitution",
        "arithmetic_expansion",
        "brace_expression",
    )
)
_HEREDOC_PARTS = frozenset(("heredoc_start", "heredoc_body", "heredoc_end"))


@dataclass(frozen=True, kw_only=True)
class ShellCommand:
    """A simple command."""

    words: tuple[str, ...]
    """Program and arguments, without the wrappers and, for git, without options before its command."""
    line: str
    """Text as it is written."""
    folder: str
    """Working directory, relative to that of the line; absolute where an absolute path was given."""
    wrappers: tuple[str, ...] = ()
    """Programs that run it, the outermost first: `sudo`, `timeout`."""
    stdin: str = ""
    """Text that a heredoc or a here-string gives it."""
    inputs: tuple[str, ...] = ()
    """Files that it is redirected from."""
    outputs: tuple[str, ...] = ()
    """Files that its output is redirected to."""
    is_background: bool = False

    @cached_property
    def program(self) -> str:
        """Name of the program without its folder; empty where only files are redirected."""
        return posixpath.basename(self.words[0]) if self.words else ""

    @cached_property
    def text(self) -> str:
        """The words, with blanks between them."""
        return " ".join((self.program, *self.words[1:]))


@dataclass
class _Scope:
    """State of a shell."""

    folder: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    depth: int = 0

    def copy(self) -> _Scope:
        """Return the scope of a subshell."""
        return replace(self, variables=dict(self.variables), aliases=dict(self.aliases))


@dataclass(frozen=True, kw_only=True)
class ParsedLine:
    """A line of Bash."""

    commands: tuple[ShellCommand, ...]
    """In the order in which they stand."""
    n_listed: int
    """Commands that `;`, `&&`, `||` or line ends separate; the stages of a pipeline count as one."""


def parse_line(text: str) -> ParsedLine:
    """Return the commands of a line, which may be a script."""
    commands: list[ShellCommand] = []
    root = _PARSER.parse(text.encode(errors="replace")).root_node
    _Walker(_Scope(), commands).walk(root)
    return ParsedLine(commands=tuple(commands), n_listed=_count_listed(root))


def _count_listed(node: Node) -> int:
    if node.type in {"command", "pipeline", "declaration_command", "variable_assignment", "test_command"}:
        return 1
    is_heredoc = node.type == "heredoc_redirect"  # a pipeline that goes on behind its mark is the same
    return sum(_count_listed(child) for child in node.named_children if not (is_heredoc and child.type == "pipeline"))


def _read(text: str, scope: _Scope) -> list[ShellCommand]:
    commands: list[ShellCommand] = []
    if scope.depth <= MAX_DEPTH:
        _Walker(scope, commands).walk(_PARSER.parse(text.encode(errors="replace")).root_node)
    return commands


@dataclass
class _Walker:
    """Appends the commands of a syntax tree."""

    scope: _Scope
    commands: list[ShellCommand]

    def walk(self, node: Node) -> None:
        """Append the commands of a node."""
        if node.type == "command":
            self._add_command(node)
        elif node.type == "redirected_statement":
            self._add_redirected(node)
        elif node.type == "variable_assignment":
            self._assign(node)
        elif node.type in _SCOPES:
            inner = _Walker(self.scope.copy(), self.commands)
            for child in node.named_children:
                inner.walk(child)
        else:
            for child in node.children:
                before = len(self.commands)
                if child.is_named:
                    self.walk(child)
                if child.next_sibling is not None and child.next_sibling.type == "&":
                    self.commands[before:] = [replace(made, is_background=True) for made in self.commands[before:]]

    def _assign(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None:
            self.scope.variables[_decode(name)] = self._resolve(value) if value is not None else ""
        if value is not None:
            self._walk_substitutions(value)

    def _add_redirected(self, node: Node) -> None:
        """Append the commands of a statement, the last with the files and texts that it is redirected from and to."""
        redirects = [child for child in node.named_children if child.type.endswith("_redirect")]
        body = [child for child in node.named_children if child not in redirects]
        before = len(self.commands)
        for child in body:
            self.walk(child)
        if len(self.commands) == before:
            self.commands.append(ShellCommand(words=(), line=_decode(node), folder=self.scope.folder))
        last = len(self.commands) - 1
        # The grammar gives a list of commands the redirection of its last one.
        for redirect in redirects:
            self._redirect(last, redirect)

    def _redirect(self, place: int, node: Node) -> None:
        command = self.commands[place]
        if node.type == "heredoc_redirect":
            body = next((_decode(child) for child in node.named_children if child.type == "heredoc_body"), "")
            self._give_text(place, body)
            for child in node.named_children:
                if child.type.endswith("_redirect"):
                    self._redirect(place, child)
                elif child.type not in _HEREDOC_PARTS:
                    self.walk(child)
        elif node.type == "herestring_redirect":
            self._give_text(place, "".join(self._resolve(child) for child in node.named_children))
        else:
            files = tuple(self._resolve(child) for child in node.named_children if child.type in _WORDS)
            is_input = any(child.type in {"<", "<&"} for child in node.children)
            names = tuple(name for name in files if not name.isdecimal())  # 2>&1
            inputs, outputs = (names, ()) if is_input else ((), names)
            self.commands[place] = replace(
                command, inputs=(*command.inputs, *inputs), outputs=(*command.outputs, *outputs)
            )

    def _give_text(self, place: int, text: str) -> None:
        """Give a command its standard input, which a shell runs."""
        command = replace(self.commands[place], stdin=text)
        self.commands[place] = command
        if command.program in SHELLS and not any(not word.startswith("-") for word in command.words[1:]):
            self._read_nested(text, command.wrappers)

    def _add_command(self, node: Node) -> None:
        words: list[str] = []
        redirects = []
        for child in node.named_children:
            if child.type == "command_name":
                words += self._split(child.named_children[0]) if child.named_children else [_decode(child)]
            elif child.type in _WORDS:
                words += self._split(child)
            elif child.type.endswith("_redirect"):
                redirects.append(child)
        before = len(self.commands)
        if words:
            self._add_words(words, _decode(node))
        # Redirections belong to the command itself, which stands before the commands that it runs.
        own = before if len(self.commands) > before else None
        for child in node.named_children:
            self._walk_substitutions(child)
        for redirect in redirects if own is not None else ():
            self._redirect(own or 0, redirect)

    def _walk_substitutions(self, node: Node) -> None:
        """Append the commands whose output is part of a word."""
        if node.type in _SCOPES:
            self.walk(node)
            return
        for child in node.named_children:
            self._walk_substitutions(child)

    def _add_words(self, words: Sequence[str], line: str) -> None:
        """Append a command and the commands that it runs itself."""
        words = self._replace_alias(list(words))
        inner, wrappers = unwrap(words)
        if inner and wrappers:
            inner = self._replace_alias(inner)
        folder = self.scope.folder
        if inner and posixpath.basename(inner[0]) == "git":
            inner, subfolder = _read_git(inner)
            folder = join_path(folder, subfolder)
        command = ShellCommand(words=tuple(inner), line=line, folder=folder, wrappers=tuple(wrappers))
        self.commands.append(command)
        self._change_scope(command.program, inner[1:])
        for script in _list_scripts(command.program, inner[1:]):
            self._read_nested(script, command.wrappers)
        if command.program == "find":
            for nested in _list_find_commands(inner[1:]):
                self._add_words(nested, line)

    def _change_scope(self, program: str, arguments: Sequence[str]) -> None:
        """Keep the folder, variables and aliases that a built-in command sets."""
        if program in {"cd", "pushd"}:
            places = [word for word in arguments if not word.startswith("-")]
            self.scope.folder = join_path(self.scope.folder, places[0]) if places else self.scope.folder
        pairs = [word.partition("=") for word in arguments if _ASSIGNMENT.match(word)]
        if program == "alias":
            self.scope.aliases |= {name: value for name, _, value in pairs}
        elif program in {"export", "declare", "local", "readonly"}:
            self.scope.variables |= {name: value for name, _, value in pairs}

    def _read_nested(self, text: str, wrappers: tuple[str, ...]) -> None:
        scope = self.scope.copy()
        scope.depth += 1
        self.commands += [replace(command, wrappers=(*wrappers, *command.wrappers)) for command in _read(text, scope)]

    def _replace_alias(self, words: list[str]) -> list[str]:
        alias = self.scope.aliases.get(words[0]) if words else None
        return [*_split_words(alias), *words[1:]] if alias else words

    def _split(self, node: Node) -> list[str]:
        """Return the words that a node is: an expansion without quotes may be several."""
        text = self._resolve(node)
        is_split = node.type in {"simple_expansion", "expansion"} and " " in text
        return text.split() if is_split else [text]

    def _resolve(self, node: Node) -> str:  # noqa: PLR0911 - a table of node types
        """Return the text of a word without quotes."""
        text = _decode(node)
        if node.type == "raw_string":
            return text[1:-1]
        if node.type == "ansi_c_string":
            return _decode_escapes(text[2:-1])
        if node.type in {"string", "translated_string"}:
            return self._join_parts(node, quoted=True)
        if node.type in {"concatenation", "command_name"}:
            return "".join(self._resolve(child) for child in node.named_children)
        if node.type in {"simple_expansion", "expansion"}:
            names = [_decode(child) for child in node.named_children if child.type == "variable_name"]
            is_plain = len(node.named_children) == 1
            return self.scope.variables.get(names[0], text) if names and is_plain else text
        if node.type == "word":
            return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
        return text

    def _join_parts(self, node: Node, *, quoted: bool) -> str:
        """Return the text of a string in double quotes; text between its parts, such as blanks, is kept."""
        source, start = node.text or b"", node.start_byte
        at, parts = 1 if quoted else 0, []
        for child in node.named_children:
            if child.type in {"simple_expansion", "expansion", "command_substitution"}:
                parts.append(_unescape(source[at : child.start_byte - start]))
                parts.append(self._resolve(child))
                at = child.end_byte - start
        parts.append(_unescape(source[at : len(source) - 1]))
        return "".join(parts)


def unwrap(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of the command that programs such as `sudo` and `timeout` run, and the names of these."""
    rest, wrappers = list(words), []
    while rest:
        while rest and _ASSIGNMENT.match(rest[0]):
            rest = rest[1:]
        name = posixpath.basename(rest[0]) if rest else ""
        if name not in _WRAPPER_OPTIONS:
            break
        inner = _skip_options(rest[1:], _WRAPPER_OPTIONS[name])
        if name == "timeout" and inner and _DURATION.fullmatch(inner[0]):
            inner = inner[1:]
        while name == "env" and inner and _ASSIGNMENT.match(inner[0]):
            inner = inner[1:]
        if not inner:
            break
        wrappers.append(name)
        rest = inner
    return rest, wrappers


def join_path(folder: str, path: str) -> str:
    """Return a path below a folder, normalised; the path itself where it is absolute."""
    if not path:
        return folder
    joined = posixpath.normpath(posixpath.join(folder, path))
    return "" if joined == "." else joined


def _skip_options(words: Sequence[str], with_value: frozenset[str]) -> list[str]:
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        takes_value = rest[0] in with_value
        is_end = rest[0] == "--"
        rest = rest[2:] if takes_value else rest[1:]
        if is_end:
            break
    return rest


def _read_git(words: Sequence[str]) -> tuple[list[str], str]:
    """Return a command of git without the options before it, aliases of `-c` resolved, and the folder of `-C`."""
    rest, folder, aliases = list(words[1:]), "", dict[str, str]()
    while rest and rest[0].startswith("-"):
        if rest[0] in _GIT_OPTIONS and len(rest) > 1:
            if rest[0] == "-C":
                folder = join_path(folder, rest[1])
            elif rest[0] == "-c" and rest[1].startswith("alias."):
                name, _, value = rest[1].removeprefix("alias.").partition("=")
                aliases[name] = value
            rest = rest[2:]
        else:
            rest = rest[1:]
    if rest and rest[0] in aliases:
        rest = [*_split_words(aliases[rest[0]]), *rest[1:]]
    return ["git", *rest], folder


def _list_scripts(program: str, arguments: Sequence[str]) -> list[str]:
    """Return the script that `eval` or a shell runs; its option may be in a cluster such as -lc."""
    if program == "eval":
        return [" ".join(arguments)]
    if program not in SHELLS:
        return []
    for place, word in enumerate(arguments[:-1]):
        if re.fullmatch(r"-[a-z]*c", word):
            return [arguments[place + 1]]
        if not word.startswith("-"):
            break
    return []


def _list_find_commands(arguments: Sequence[str]) -> Iterator[list[str]]:
    """Yield the commands that find runs on files."""
    words = list(arguments)
    for place, word in enumerate(words):
        if word in {"-exec", "-execdir", "-ok"}:
            ends = [at for at in range(place, len(words)) if words[at] in {";", "+"}]
            yield words[place + 1 : ends[0] if ends else len(words)]


def _split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _decode(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _decode_escapes(text: str) -> str:
    return text.encode("latin-1", "backslashreplace").decode("unicode_escape", "replace")


def _unescape(text: bytes) -> str:
    return re.sub(r'\\(["\\$`])', r"\1", text.decode(errors="replace").replace("\\\n", ""))
