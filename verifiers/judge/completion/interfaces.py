"""Find the interfaces that the tests call and the gold patch adds: name and signature as written in the patch.

They are parsed from the heads of added definitions, in languages with a keyword or visibility before the name, or an
arrow after it. Definitions without these (C, C++) are covered by the rules for names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from core.quotes import normalize_whitespace
from languages.registry import find_signatures
from languages.signatures import SignatureSyntax
from taskdb.records.verdicts import Interface
from verifiers.judge.case import JudgeCase
from verifiers.judge.diffs import FileDiff

_TYPES = re.compile(r"[ \t]*(?:<[^()\n]*>)?(?=\()")
"""Type parameters between a name and its brackets."""
_LINE_END = re.compile(r"[^\n{;]*")
_OPEN, _CLOSE = "([{<", ")]}>"
_IMPLICIT_PARAMETERS = frozenset({"self", "cls", "this", "args", "kwargs"})


def find_interfaces(case: JudgeCase) -> tuple[Interface, ...]:
    """Return definitions of the gold patch that the tests name and the patches' context does not; each name once."""
    used_names = {added.token.text for added in case.test_tokens if added.token.category == "name"}
    used_names -= {definition.name for definition in _parse_files(case.test_files)} | case.old_names
    interfaces: dict[str, Interface] = {}
    for definition in _parse_files(case.gold_files):
        if definition.name in used_names and not definition.name.startswith("__"):
            interfaces.setdefault(definition.name, definition)
    return tuple(interfaces.values())


def find_definition_with_parameter(case: JudgeCase, name: str) -> Interface | None:
    """Return the first definition of the gold patch that has a parameter of this name."""
    return next((file for file in _parse_files(case.source_files) if name in file.parameters), None)


def _parse_files(files: Sequence[FileDiff]) -> Iterator[Interface]:
    for file in files:
        for hunk in file.hunks:
            yield from _parse_definitions("\n".join(hunk.get_lines("+")), file.path)


def _parse_definitions(text: str, path: str) -> Iterator[Interface]:
    syntax = find_signatures(path)
    for pattern in syntax.heads:
        for head in re.finditer(pattern, text, re.MULTILINE):
            parameter_list = _cut_parameters(text, head.end())
            line_end = _LINE_END.match(text, head.end() + len(parameter_list))
            signature_text = (
                text[head.start("head") : head.end()]
                + parameter_list
                + _strip_body(line_end[0] if line_end else "", syntax)
            )
            yield Interface(
                name=head["name"],
                signature=normalize_whitespace(signature_text).rstrip(" :<("),
                path=path,
                parameters=()
                if not syntax.have_classes_parameters and "class " in head["head"]
                else tuple(_parse_parameter_names(parameter_list, syntax)),
            )


def _cut_parameters(text: str, at: int) -> str:
    """Return the parameter list at a position, with type parameters and line breaks; empty if there is none."""
    types = _TYPES.match(text, at)
    start = types.end() if types else at
    depth = 0
    for end in range(start, len(text)):
        depth += (text[end] == "(") - (text[end] == ")")
        if depth == 0:
            return text[at : end + 1] if end > start else ""
    return ""


def _strip_body(line_end: str, syntax: SignatureSyntax) -> str:
    """Return the text after the parameters, such as the return type, up to the body."""
    for pattern in syntax.bodies:
        if end := re.search(pattern, line_end):
            line_end = line_end[: end.start()]
    return line_end


def _parse_parameter_names(parameter_list: str, syntax: SignatureSyntax) -> Iterator[str]:
    """Yield the names of parameters, whether the type is before or after the name."""
    for part in _split_parameters(parameter_list[parameter_list.find("(") + 1 : -1]):
        if part.strip().startswith("{"):  # destructured parameter
            yield from _parse_parameter_names(f"({part.strip()[1:].partition('}')[0]})", syntax)
            continue
        words = re.findall(r"[^\W\d]\w*", part.partition("=")[0].partition(":")[0])
        words = [word for word in words if word not in ("mut", "final", "ref", "out", "const", "params")]
        name = (words[-1] if syntax.are_types_first else words[0]) if words else ""
        if name and name not in _IMPLICIT_PARAMETERS and not name.startswith("_"):
            yield name


def _split_parameters(parameter_list: str) -> Iterator[str]:
    """Split a parameter list at its commas, except inside brackets."""
    depth, start = 0, 0
    for at, letter in enumerate(parameter_list):
        arrow = letter == ">" and parameter_list[at - 1 : at] in ("-", "=")
        depth += (letter in _OPEN) - (letter in _CLOSE and not arrow)
        if letter == "," and depth == 0:
            yield parameter_list[start:at]
            start = at + 1
    yield parameter_list[start:]
