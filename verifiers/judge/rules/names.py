"""Names that the gold patch defines and the tests use, but the statement does not contain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from taskdb.records.verdicts import Finding, QuoteSource
from verifiers.judge.case import AddedToken, JudgeCase
from verifiers.judge.tokens import CodeToken, tokenize
from verifiers.judge.words import has_name, join_name_parts

MIN_NAME_LENGTH = 3
"""Minimum length of a name in characters."""
MAX_FINDINGS = 5
"""Maximum number of findings per task."""
_DEFINING = {
    "def": "function",
    "func": "function",
    "fn": "function",
    "fun": "function",
    "function": "function",
    "sub": "function",
    "class": "class",
    "struct": "class",
    "interface": "class",
    "enum": "class",
    "trait": "class",
    "type": "type",
    "record": "class",
    "module": "module",
    "macro_rules": "macro",
}
_BINDING = frozenset({"let", "var", "const", "val", "for", "mut", "as", "in", "my", "auto"})
_SELF = frozenset({"self", "this", "cls"})
_IMPORTS = re.compile(r"\s*(?:#\s*)?(?:import|from|use|using|require|include|load|mod)\b|.*\brequire\w*[( ]")
_STRING_KINDS = frozenset({"option", "key", "parameter", "attribute", "module"})
_NO_INTERFACE = frozenset({"args", "kwargs", "argv", "self", "cls", "mod", "index", "main"})
_OPTION = re.compile(r"--?[A-Za-z][\w-]*")
_PLAIN = re.compile(r"[A-Za-z_][\w.-]*")


@dataclass(frozen=True, slots=True)
class MissingName:
    """A name that the tests use and the gold patch defines, absent from the statement and the old tree.

    Attributes:
        name: the name.
        kind: the thing that it names, such as `parameter`.
        line: the line of the tests that uses it.
    """

    name: str
    kind: str
    line: str


def find_unstated_names(case: JudgeCase) -> Iterator[Finding]:
    """Find names that the tests use and the gold patch defines, absent from the statement and the old tree."""
    for missing in find_missing_names(case)[:MAX_FINDINGS]:
        used = f"the tests use the {missing.kind} {missing.name}"
        detail = f"{used}, which the gold patch adds and the statement does not name"
        yield Finding(rule="name-not-stated", quote=missing.line, detail=detail, quote_source=QuoteSource.TESTS)


def find_missing_names(case: JudgeCase) -> list[MissingName]:
    """Return the names that the tests use and the gold patch defines, absent from the statement and the old tree."""
    defined = dict(_find_new_names(case))
    if not defined:
        return []
    bound_names = _find_bound_names([added.token for added in case.test_tokens])
    stated = join_name_parts([case.statement])
    used: dict[str, MissingName] = {}
    for added in case.test_tokens:
        name = _match_name(added, defined)
        if name and name not in bound_names and name not in used and not has_name(stated, name):
            used[name] = MissingName(name, defined[name], added.line.strip())
    for name in case.find_in_base_tree(list(used)):
        del used[name]
    return list(used.values())


def _match_name(added: AddedToken, defined: Mapping[str, str]) -> str:
    """Return the defined name that a token refers to; a string refers to an option, key or keyword, not to code.

    A module counts only on an import line.
    """
    token = added.token
    kind = defined.get(token.text, "")
    if not kind or (kind == "module" and not _IMPORTS.match(added.line)):
        return ""
    return token.text if token.category == "name" or (token.category == "string" and kind in _STRING_KINDS) else ""


def _find_new_names(case: JudgeCase) -> Iterator[tuple[str, str]]:
    """Yield (name, kind) of definitions in the gold patch that the patches' context does not contain."""
    for file in case.source_files:
        stem = PurePosixPath(file.path).stem
        if file.is_new and len(stem) >= MIN_NAME_LENGTH and stem not in _NO_INTERFACE:
            yield stem, "module"
        for hunk in file.hunks:
            for name, kind in find_definitions(tokenize("\n".join(hunk.get_lines("+")), file.path)):
                if (
                    len(name) >= MIN_NAME_LENGTH
                    and name not in case.old_names | _NO_INTERFACE
                    and not _is_known_option(name, case.old_text)
                ):
                    yield name, kind


def _is_known_option(name: str, shown: str) -> bool:
    return name.startswith("-") and name in shown


def find_definitions(tokens: Sequence[CodeToken]) -> Iterator[tuple[str, str]]:
    """Yield (name, kind) of non-local definitions in a program text, as far as tokens show."""
    depth, in_head = 0, False
    for at, token in enumerate(tokens):
        kind = ""
        if token.category == "mark":
            depth += (token.text in "([{") - (token.text in ")]}")
            in_head = in_head and depth > 0
        elif token.category == "string":
            kind = _classify_string(token, _token_text(tokens, at + 1))
        elif kind := _DEFINING.get(_token_text(tokens, at - 1), ""):
            in_head = _token_text(tokens, at + 1) in {"(", "<", "["}
            depth = 0 if in_head else depth
        elif token.category == "name":
            kind = _classify_name(tokens, at, in_head=in_head)
        if kind:
            yield token.text, kind


def _classify_string(token: CodeToken, after: str) -> str:
    """Return the kind of definition that a string is: an option, a key of a table, or empty."""
    if _OPTION.fullmatch(token.text):
        return "option"
    return "key" if after in {":", "=>"} and _PLAIN.fullmatch(token.text) else ""


def _classify_name(tokens: Sequence[CodeToken], at: int, *, in_head: bool) -> str:
    """Return the kind of definition that a name is here: parameter, attribute, constant, or empty."""
    before, after = _token_text(tokens, at - 1), _token_text(tokens, at + 1)
    if in_head and before in {"(", ",", "*", ":"} and after in {"=", ",", ")", ":"}:
        return "parameter"
    if before == "." and after == "=" and _token_text(tokens, at - 2) in _SELF:
        return "attribute"
    return "constant" if after == "=" and tokens[at].text.isupper() else ""


def _find_bound_names(tokens: Sequence[CodeToken]) -> set[str]:
    """Return the names that the tests define themselves."""
    names = set()
    for at, token in enumerate(tokens):
        if token.category != "name":
            continue
        before, after = _token_text(tokens, at - 1), _token_text(tokens, at + 1)
        first = at == 0 or tokens[at - 1].line < token.line
        if before in _BINDING or before in _DEFINING or (first and after in {"=", ":=", ","}):
            names.add(token.text)
    return names | {name for name, kind in find_definitions(tokens) if kind == "parameter"}


def _token_text(tokens: Sequence[CodeToken], at: int) -> str:
    return tokens[at].text if 0 <= at < len(tokens) and tokens[at].category != "string" else ""
