"""What the tests call that the gold patch brings: its name, and its signature as the patch has it.

Read off added lines by their heads, in any language that has a word for a definition, a visibility before it, or an
arrow behind it. What has none of these (C, C++) is left to the rules about names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from taskdb.verdicts import Interface
from verifiers.judge.case import Case
from verifiers.judge.diffs import FileDiff
from verifiers.statement import squeezed

_WORD = r"(?:def|func|fn|fun|function|sub|class|struct|interface|trait|enum|record)\*?"
_SEEN = r"(?:public|protected|internal|static|final|abstract|override|async|export|default|pub(?:\([\w:]+\))?)"
_HEADS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"^[ \t]*(?P<head>(?:{_SEEN}\s+)*{_WORD}\s+(?:\([^)\n]*\)\s*)?(?P<name>[^\W\d]\w*[?!]?))",
        rf"^[ \t]*(?P<head>(?:{_SEEN}\s+)+[\w<>\[\],.? ]+?\s(?P<name>[^\W\d]\w*))(?=\s*\()",
        r"^[ \t]*(?P<head>(?:export\s+)?(?:const|let|var)\s+(?P<name>[^\W\d]\w*)\s*=\s*(?:async\s*)?)(?=\([^\n]*=>)",
    )
)
_TYPES = re.compile(r"[ \t]*(?:<[^()\n]*>)?(?=\()")
"""Parameters that are types, between a name and its brackets."""
_REST = re.compile(r"[^\n{;]*")
_BODY = re.compile(r"=>| = | do$")
_PYTHON = (".py", ".pyi")
_PYTHON_BODY = re.compile(r":(?:\s|$)")
_OPEN, _CLOSED = "([{<", ")]}>"
_OWN = frozenset({"self", "cls", "this", "args", "kwargs"})
_TYPE_FIRST = (".java", ".cs", ".groovy", ".php")


def interfaces(case: Case) -> tuple[Interface, ...]:
    """What the tests name, the gold patch defines, and the patches' context does not know; each name once."""
    asked = {one.token.text for one in case.asked if one.token.sort == "name"}
    asked -= {one.name for one in _all_defined(case.test_files)} | case.shown_names
    found: dict[str, Interface] = {}
    for one in _all_defined(case.gold_files):
        if one.name in asked and not one.name.startswith("__"):
            found.setdefault(one.name, one)
    return tuple(found.values())


def _all_defined(files: Sequence[FileDiff]) -> Iterator[Interface]:
    for file in files:
        for hunk in file.hunks:
            yield from _defined("\n".join(hunk.side("+")), file.path)


def _defined(text: str, path: str) -> Iterator[Interface]:
    for pattern in _HEADS:
        for head in pattern.finditer(text):
            listed = _listed(text, head.end())
            rest = _REST.match(text, head.end() + len(listed))
            said = text[head.start("head") : head.end()] + listed + _without_body(rest[0] if rest else "", path)
            yield Interface(
                name=head["name"], signature=squeezed(said).rstrip(" :<("), path=path,
                parameters=() if path.endswith(_PYTHON) and "class " in head["head"] else tuple(_names(listed, path)),
            )  # fmt: skip


def _listed(text: str, at: int) -> str:
    """What stands in brackets there: `(...)`, types and line ends in it included; empty when there are none."""
    types = _TYPES.match(text, at)
    start = types.end() if types else at
    depth = 0
    for end in range(start, len(text)):
        depth += (text[end] == "(") - (text[end] == ")")
        if depth == 0:
            return text[at : end + 1] if end > start else ""
    return ""


def _without_body(rest: str, path: str) -> str:
    """What follows the parameters, such as the type of the result, up to where the body begins."""
    end = _BODY.search(rest)
    rest = rest[: end.start()] if end else rest
    end = _PYTHON_BODY.search(rest) if path.endswith(_PYTHON) else None
    return rest[: end.start()] if end else rest


def _names(listed: str, path: str) -> Iterator[str]:
    """Names of parameters, in any order of name and type."""
    for part in _parts(listed[listed.find("(") + 1 : -1]):
        if part.strip().startswith("{"):  # taken apart where it is taken in
            yield from _names(f"({part.strip()[1:].partition('}')[0]})", path)
            continue
        words = re.findall(r"[^\W\d]\w*", part.partition("=")[0].partition(":")[0])
        words = [word for word in words if word not in ("mut", "final", "ref", "out", "const", "params")]
        name = (words[-1] if path.endswith(_TYPE_FIRST) else words[0]) if words else ""
        if name and name not in _OWN and not name.startswith("_"):
            yield name


def _parts(listed: str) -> Iterator[str]:
    """What commas part, those in brackets aside."""
    depth, start = 0, 0
    for at, letter in enumerate(listed):
        arrow = letter == ">" and listed[at - 1 : at] in ("-", "=")
        depth += (letter in _OPEN) - (letter in _CLOSED and not arrow)
        if letter == "," and depth == 0:
            yield listed[start:at]
            start = at + 1
    yield listed[start:]
