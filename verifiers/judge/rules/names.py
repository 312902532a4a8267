"""Names: what the gold patch defines, the tests use, and nobody was told of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from taskdb.verdicts import Finding, Place
from verifiers.judge.case import Asked, Case
from verifiers.judge.tokens import Token, tokens_of
from verifiers.judge.words import joined, says

SHORTEST = 3
"""Letters of a name that says anything."""
MOST = 5
"""So many are told of one task."""
_DEFINING = {
    "def": "function", "func": "function", "fn": "function", "fun": "function", "function": "function",
    "sub": "function", "class": "class", "struct": "class", "interface": "class", "enum": "class", "trait": "class",
    "type": "type", "record": "class", "module": "module", "macro_rules": "macro",
}  # fmt: skip
_BINDING = frozenset({"let", "var", "const", "val", "for", "mut", "as", "in", "my", "auto"})
_SELF = frozenset({"self", "this", "cls"})
_IMPORTS = re.compile(r"\s*(?:#\s*)?(?:import|from|use|using|require|include|load|mod)\b|.*\brequire\w*[( ]")
_SAID_IN_TEXT = frozenset({"option", "key", "parameter", "attribute", "module"})
_NO_INTERFACE = frozenset({"args", "kwargs", "argv", "self", "cls", "mod", "index", "main"})
_OPTION = re.compile(r"--?[A-Za-z][\w-]*")
_PLAIN = re.compile(r"[A-Za-z_][\w.-]*")


def name_not_stated(case: Case) -> Iterator[Finding]:
    """The tests use a name that the gold patch defines; neither the statement nor the old tree has it."""
    defined = dict(_defined(case))
    if not defined:
        return
    own = _bound([one.token for one in case.asked])
    told = joined([case.statement])
    used: dict[str, tuple[str, str]] = {}
    for one in case.asked:
        name = _used(one, defined)
        if name and name not in own and name not in used and not says(told, name):
            used[name] = (one.line.strip(), defined[name])
    for name in case.mentions(list(used)):
        del used[name]
    for name, (line, what) in list(used.items())[:MOST]:
        detail = f"the tests use the {what} {name}, which the gold patch brings and the statement does not name"
        yield Finding(rule="name-not-stated", quote=line, detail=detail, place=Place.TESTS)


def _used(asked: Asked, defined: Mapping[str, str]) -> str:
    """The defined name that a token stands for; a string stands for an option, a key or a keyword, not for code.

    A module is meant only where something is imported.
    """
    token = asked.token
    what = defined.get(token.text, "")
    if not what or (what == "module" and not _IMPORTS.match(asked.line)):
        return ""
    return token.text if token.sort == "name" or (token.sort == "string" and what in _SAID_IN_TEXT) else ""


def _defined(case: Case) -> Iterator[tuple[str, str]]:
    """(name, what it is) of what the gold patch defines and the patches' context does not know."""
    for file in case.source_files:
        stem = PurePosixPath(file.path).stem
        if file.is_new and len(stem) >= SHORTEST and stem not in _NO_INTERFACE:
            yield stem, "module"
        for hunk in file.hunks:
            for name, what in definitions(tokens_of("\n".join(hunk.side("+")), file.path)):
                if (
                    len(name) >= SHORTEST
                    and name not in case.shown_names | _NO_INTERFACE
                    and not _in_options(name, case.shown)
                ):
                    yield name, what


def _in_options(name: str, shown: str) -> bool:
    return name.startswith("-") and name in shown


def definitions(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """(name, what it is) of all that some program text defines for others: no local names, as far as can be seen."""
    depth, in_head = 0, False
    for at, token in enumerate(tokens):
        what = ""
        if token.sort == "mark":
            depth += (token.text in "([{") - (token.text in ")]}")
            in_head = in_head and depth > 0
        elif token.sort == "string":
            what = _said(token, _text(tokens, at + 1))
        elif what := _DEFINING.get(_text(tokens, at - 1), ""):
            in_head = _text(tokens, at + 1) in {"(", "<", "["}
            depth = 0 if in_head else depth
        elif token.sort == "name":
            what = _named(tokens, at, in_head=in_head)
        if what:
            yield token.text, what


def _said(token: Token, after: str) -> str:
    """What a string defines, if it does: an option, or a key of a table."""
    if _OPTION.fullmatch(token.text):
        return "option"
    return "key" if after in {":", "=>"} and _PLAIN.fullmatch(token.text) else ""


def _named(tokens: Sequence[Token], at: int, *, in_head: bool) -> str:
    """What a name is, if it is defined here: a parameter, an attribute or a constant."""
    before, after = _text(tokens, at - 1), _text(tokens, at + 1)
    if in_head and before in {"(", ",", "*", ":"} and after in {"=", ",", ")", ":"}:
        return "parameter"
    if before == "." and after == "=" and _text(tokens, at - 2) in _SELF:
        return "attribute"
    return "constant" if after == "=" and tokens[at].text.isupper() else ""


def _bound(tokens: Sequence[Token]) -> set[str]:
    """Names that the tests give to something themselves."""
    found = set()
    for at, token in enumerate(tokens):
        if token.sort != "name":
            continue
        before, after = _text(tokens, at - 1), _text(tokens, at + 1)
        first = at == 0 or tokens[at - 1].line < token.line
        if before in _BINDING or before in _DEFINING or (first and after in {"=", ":=", ","}):
            found.add(token.text)
    return found | {name for name, what in definitions(tokens) if what == "parameter"}


def _text(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text if 0 <= at < len(tokens) and tokens[at].sort != "string" else ""
