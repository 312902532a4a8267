"""What a script of package.json runs in the end: simple commands, through `npm run`, wrappers and chains."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch

DEPTH = 6
"""How far scripts may call each other."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_MANAGERS = frozenset({"npm", "yarn", "pnpm", "bun"})
_INSTALLER_WORDS = frozenset(
    (  # noqa: SIM905 - one word a line would hide the list
        "install i ci add remove exec dlx link pack publish audit version config cache why set import dedupe up "
        "upgrade npm workspace workspaces plugin init create outdated info list ls rebuild prune"
    ).split()
)
_ELSEWHERE = frozenset(
    (  # noqa: SIM905 - one word a line would hide the list
        "-r --recursive --workspaces -ws --filter -F --workspace -w --prefix -C --dir --cwd"
    ).split()
)
"""Flags by which a package manager runs scripts of other packages."""
_RUN_ALL = frozenset({"npm-run-all", "npm-run-all2", "run-s", "run-p", "run-z"})
_COVERAGE = frozenset(
    (  # noqa: SIM905 - one word a line would hide the list
        "--reporter -r --require --include -n --exclude -x --temp-dir --temp-directory -t --report-dir --reports-dir "
        "-o --cwd -e --lines --branches --functions --statements --config -c"
    ).split()
)
_WRAPPERS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("cross-env", "cross-env-shell", "time", "xvfb-run", "retry", "nice", "shx"), frozenset()),
    "env": frozenset({"-u"}),
    "npx": frozenset({"-p", "--package"}),
    "nyc": _COVERAGE,
    "c8": _COVERAGE,
    "dotenv": frozenset({"-e"}),
    "nodemon": frozenset({"-w", "--watch", "-e", "--ext", "-x", "--exec"}),
}
"""Commands that run the command behind them -> their options that take a word."""


@dataclass(frozen=True, kw_only=True)
class Simple:
    """One command: its words, and the variables set for it."""

    words: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    script: str = ""
    """Name of the script it stands in."""


def expand(line: str, scripts: Mapping[str, str], *, script: str = "", depth: int = 0) -> Iterator[Simple]:
    """The simple commands of a shell line in their order, calls of other scripts replaced by what these run."""
    for words in _split(line):
        yield from _simple(words, scripts, script, depth)


def run_script(name: str, scripts: Mapping[str, str], *, depth: int = 0) -> Iterator[Simple]:
    """What `npm run NAME` runs, its `pre` script first."""
    for one in (f"pre{name}", name):
        if one in scripts and depth < DEPTH:
            yield from expand(scripts[one], scripts, script=one, depth=depth + 1)


def called(words: list[str]) -> tuple[str, list[str]] | None:
    """(script, further arguments) of a package manager's call such as `npm run X -- --y`; None of all others."""
    if not words or words[0] not in _MANAGERS or _ELSEWHERE & set(words[1:]):
        return None
    rest = [word for word in words[1:] if word not in ("--silent", "-s", "--if-present")]
    named = rest[:1] in (["run"], ["run-script"])
    rest = rest[1:] if named else rest
    if not rest or rest[0].startswith("-") or (rest[0] in _INSTALLER_WORDS and not named):
        return None
    name = "test" if rest[0] in ("t", "tst") else rest[0]
    return (name, _arguments(rest[1:])) if named or words[0] != "npm" or name in ("test", "start") else None


def _arguments(rest: list[str]) -> list[str]:
    """What a call gives to its script; flags of the package manager itself are left out."""
    return [word for word in rest if word not in ("--", "--if-present", "--silent", "-s")]


def _simple(words: list[str], scripts: Mapping[str, str], script: str, depth: int) -> Iterator[Simple]:
    env, words = _unwrapped(words)
    if not words:
        return
    if depth < DEPTH and (names := _listed(words, scripts)) is not None:
        for name in names:
            yield from (_with(one, env, []) for one in run_script(name, scripts, depth=depth))
        return
    call = called(words)
    if call and call[0] in scripts and depth < DEPTH:
        inner = list(run_script(call[0], scripts, depth=depth))
        for at, one in enumerate(inner):
            yield _with(one, env, call[1] if at == len(inner) - 1 else [])
    elif call and words[0] != "npm" and call[0] not in scripts:
        yield from _simple([call[0], *call[1]], scripts, script, depth + 1) if depth < DEPTH else ()
    else:
        yield Simple(words=tuple(words), env=tuple(env), script=script)


def _with(one: Simple, env: list[tuple[str, str]], arguments: list[str]) -> Simple:
    return Simple(words=(*one.words, *arguments), env=(*env, *one.env), script=one.script)


def _listed(words: list[str], scripts: Mapping[str, str]) -> list[str] | None:
    """The scripts that npm-run-all and its kin run; None of other commands."""
    if words[0] not in _RUN_ALL:
        return None
    names = [word for word in words[1:] if not word.startswith("-")]
    found: list[str] = []
    for name in names:
        pattern = name.replace("**", "*")
        found += [script for script in scripts if script == name or ("*" in name and fnmatch(script, pattern))]
    return found


def _unwrapped(words: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """(variables, command) without wrappers around it."""
    env: list[tuple[str, str]] = []
    while words:
        word = words[0]
        if _ASSIGNMENT.fullmatch(word):
            env.append((word.partition("=")[0], word.partition("=")[2]))
            words = words[1:]
        elif word in _WRAPPERS or (word == "istanbul" and words[1:2] == ["cover"]):
            words = _behind(words[1 + (word == "istanbul") :], _WRAPPERS.get(word, frozenset({"--report", "--dir"})))
        elif word.startswith(("./node_modules/.bin/", "node_modules/.bin/")):
            words = [word.rpartition("/")[2], *words[1:]]
        elif word == "_mocha":
            words = ["mocha", *words[1:]]
        else:
            break
    return env, [word for word in words if word != "--"] if words[:1] != ["node"] else words


def _behind(words: list[str], with_value: frozenset[str]) -> list[str]:
    """The command behind a wrapper's options."""
    at = 0
    while at < len(words) and (words[at].startswith("-") or _ASSIGNMENT.fullmatch(words[at])):
        if _ASSIGNMENT.fullmatch(words[at]):
            break
        if words[at] == "--":
            return words[at + 1 :]
        at += 2 if words[at] in with_value else 1
    return words[at:]


_OPERATORS = frozenset({"&&", "||", ";", "|", "&", "(", ")"})


def _split(line: str) -> Iterator[list[str]]:
    """The words of each simple command; redirections are left out. What cannot be read is split at blanks."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        tokens = line.split()
    held: list[str] = []
    skip = False
    for word in tokens:
        if skip:
            skip = False
        elif word in _OPERATORS or word == "\n":
            if held:
                yield held
            held = []
        elif word and set(word) <= set("<>&"):
            skip = True
            if held and held[-1].isdigit():
                held.pop()
        else:
            held.append(word)
    if held:
        yield held
