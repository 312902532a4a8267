"""Expansion of package.json scripts to simple commands, through `npm run`, wrappers and chains."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

DEPTH = 6
"""Maximum nesting of script calls."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_MANAGERS = frozenset({"npm", "yarn", "pnpm", "bun"})
_INSTALLER_WORDS = frozenset(
    (  # noqa: SIM905 - one word per line would take thirty lines
        "install i ci add remove exec dlx link pack publish audit version config cache why set import dedupe up "
        "upgrade npm workspace workspaces plugin init create outdated info list ls rebuild prune"
    ).split()
)
_OTHER_FOLDER = frozenset(
    (  # noqa: SIM905 - one word per line would take ten lines
        "-r --recursive --workspaces -ws --filter -F --workspace -w --prefix -C --dir --cwd"
    ).split()
)
"""Package manager flags that run scripts of other packages."""
_RUN_ALL = frozenset({"npm-run-all", "npm-run-all2", "run-s", "run-p", "run-z"})
_COVERAGE = frozenset(
    (  # noqa: SIM905 - one word per line would take thirty lines
        "--reporter -r --require --include -n --exclude -x --temp-dir --temp-directory -t --report-dir --reports-dir "
        "-o --cwd -e --lines --branches --functions --statements --config -c"
    ).split()
)
_WRAPPERS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("cross-env", "cross-env-shell", "time", "xvfb-run", "retry", "nice", "shx"), frozenset()),
    "env": frozenset({"-u"}),
    "npx": frozenset({"-p", "--package"}),
    "bunx": frozenset({"-p", "--package"}),
    "nyc": _COVERAGE,
    "c8": _COVERAGE,
    "dotenv": frozenset({"-e"}),
    "nodemon": frozenset({"-w", "--watch", "-e", "--ext", "-x", "--exec"}),
}
"""Commands that run the command after them -> their options with a value."""
_ISTANBUL = frozenset({"--config", "--root", "-x", "--dir", "--print", "--report", "--post-require-hook"})
"""Options of `istanbul cover` with a value."""


@dataclass(frozen=True, kw_only=True)
class SimpleCommand:
    """A command: its words and environment variables."""

    words: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    script: str = ""
    """Name of the script that contains it."""


def expand_scripts(
    line: str, scripts: Mapping[str, str], *, script: str = "", depth: int = 0
) -> Iterator[SimpleCommand]:
    """Yield the simple commands of a shell line in order, calls of other scripts expanded."""
    for words in _split_commands(line):
        yield from _expand_simple(words, scripts, script, depth)


def expand_script(name: str, scripts: Mapping[str, str], *, depth: int = 0) -> Iterator[SimpleCommand]:
    """Yield the commands of `npm run NAME`, its `pre` script first."""
    for script_name in (f"pre{name}", name):
        if script_name in scripts and depth < DEPTH:
            yield from expand_scripts(scripts[script_name], scripts, script=script_name, depth=depth + 1)


def parse_script_call(words: list[str]) -> tuple[str, list[str]] | None:
    """Return (script, arguments) of a package manager call such as `npm run X -- --y`; None for other commands."""
    if not words or words[0] not in _MANAGERS or _OTHER_FOLDER & set(words[1:]):
        return None
    rest = [word for word in words[1:] if word not in ("--silent", "-s", "--if-present")]
    is_run = rest[:1] in (["run"], ["run-script"])
    # `bun test` starts bun's own runner; only `bun run test` starts the script.
    if words[0] == "bun" and rest[:1] == ["test"]:
        return None
    rest = rest[1:] if is_run else rest
    if not rest or rest[0].startswith("-") or (rest[0] in _INSTALLER_WORDS and not is_run):
        return None
    name = "test" if rest[0] in ("t", "tst") else rest[0]
    return (name, _script_arguments(rest[1:])) if is_run or words[0] != "npm" or name in ("test", "start") else None


def _script_arguments(rest: list[str]) -> list[str]:
    """Return the arguments for the script, without flags of the package manager."""
    return [word for word in rest if word not in ("--", "--if-present", "--silent", "-s")]


def read_option_values(argv: Sequence[str], flags: Sequence[str]) -> Iterator[str]:
    """Yield the values of options, including several values of an option."""
    is_value = False
    for word in argv:
        name, equals, value = word.partition("=")
        if word.startswith("-"):
            is_value = name in flags and not equals
            if name in flags and equals:
                yield value
        elif is_value:
            yield word


def _expand_simple(words: list[str], scripts: Mapping[str, str], script: str, depth: int) -> Iterator[SimpleCommand]:
    env, words = _strip_wrappers(words)
    if not words:
        return
    if depth < DEPTH and (names := _list_run_all_scripts(words, scripts)) is not None:
        for name in names:
            yield from (_add_arguments(command, env, []) for command in expand_script(name, scripts, depth=depth))
        return
    call = parse_script_call(words)
    if call and call[0] in scripts and depth < DEPTH:
        inner = list(expand_script(call[0], scripts, depth=depth))
        for position, command in enumerate(inner):
            yield _add_arguments(command, env, call[1] if position == len(inner) - 1 else [])
    elif call and words[0] != "npm" and call[0] not in scripts:
        yield from _expand_simple([call[0], *call[1]], scripts, script, depth + 1) if depth < DEPTH else ()
    else:
        yield SimpleCommand(words=tuple(words), env=tuple(env), script=script)


def _add_arguments(command: SimpleCommand, env: list[tuple[str, str]], arguments: list[str]) -> SimpleCommand:
    return SimpleCommand(words=(*command.words, *arguments), env=(*env, *command.env), script=command.script)


def _list_run_all_scripts(words: list[str], scripts: Mapping[str, str]) -> list[str] | None:
    """Return the scripts that npm-run-all and similar tools run; None for other commands."""
    if words[0] not in _RUN_ALL:
        return None
    names = [word for word in words[1:] if not word.startswith("-")]
    matches: list[str] = []
    for name in names:
        pattern = name.replace("**", "*")
        matches += [script for script in scripts if script == name or ("*" in name and fnmatch(script, pattern))]
    return matches


def _strip_wrappers(words: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return (variables, command) without wrappers."""
    env: list[tuple[str, str]] = []
    while words:
        word = words[0]
        if _ASSIGNMENT.fullmatch(word):
            env.append((word.partition("=")[0], word.partition("=")[2]))
            words = words[1:]
        elif word in _WRAPPERS:
            words = _skip_wrapper_options(words[1:], _WRAPPERS[word])
        elif word == "istanbul" and words[1:2] == ["cover"]:
            words = _read_istanbul_command(words[2:])
        elif word.startswith(("./node_modules/.bin/", "node_modules/.bin/")):
            words = [word.rpartition("/")[2], *words[1:]]
        elif word == "_mocha":
            words = ["mocha", *words[1:]]
        else:
            break
    return env, [word for word in words if word != "--"] if words[:1] != ["node"] else words


def _read_istanbul_command(words: list[str]) -> list[str]:
    """Return the command that `istanbul cover` runs: every option before `--` is its own, wherever it stands."""
    end = words.index("--") if "--" in words else len(words)
    command: list[str] = []
    is_value = False
    for word in words[:end]:
        if not is_value and not word.startswith("-"):
            command.append(word)
        is_value = not is_value and word in _ISTANBUL
    return [*command, *words[end + 1 :]]


def _skip_wrapper_options(words: list[str], with_value: frozenset[str]) -> list[str]:
    """Return the command after a wrapper's options."""
    position = 0
    while position < len(words) and (words[position].startswith("-") or _ASSIGNMENT.fullmatch(words[position])):
        if _ASSIGNMENT.fullmatch(words[position]):
            break
        if words[position] == "--":
            return words[position + 1 :]
        position += 2 if words[position] in with_value else 1
    return words[position:]


_OPERATORS = frozenset({"&&", "||", ";", "|", "&", "(", ")"})


def _split_commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each simple command without redirections; invalid quoting is split at whitespace."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        tokens = line.split()
    command: list[str] = []
    is_target = False
    for word in tokens:
        if is_target:
            is_target = False
        elif word in _OPERATORS or word == "\n":
            if command:
                yield command
            command = []
        elif word and set(word) <= set("<>&"):
            is_target = True
            if command and command[-1].isdigit():
                command.pop()
        else:
            command.append(word)
    if command:
        yield command
