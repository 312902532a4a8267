"""Write the facts that the tests demand and a statement lacks, without a model: messages, interfaces, names and values.

Only texts that the tests contain and heads of definitions that they use are written. A detail that a statement leaves
open otherwise is not added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from taskdb.records.verdicts import Finding, Interface
from verifiers.judge.case import JudgeCase
from verifiers.judge.completion.checks import find_unnamed
from verifiers.judge.completion.expectations import Expectation, read_expectation
from verifiers.judge.completion.interfaces import find_definition_with_parameter, find_interfaces
from verifiers.judge.rules.messages import find_demanded_messages
from verifiers.judge.rules.names import MissingName, find_missing_names
from verifiers.judge.words import has_name, join_name_parts

HEADING = "## Requirements\n\nThese details are checked as they are written here:\n"
_EXAMPLE = ", for example; parts of it depend on the input"
_COMPARISONS = {
    "read": "must read",
    "contain": "must contain",
    "match": "must match the regular expression",
    "match-wildcards": "must match the pattern with wildcards",
}
_TICKS = re.compile(r"`+")


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """Facts that the tests demand and a statement lacks.

    Attributes:
        messages: list items for messages.
        names: list items for interfaces and other names.
        values: list items for values that the gold patch writes literally.
        interfaces: those that `names` states.
        texts: the texts of `messages`, as the tests contain them.
    """

    messages: tuple[str, ...]
    names: tuple[str, ...]
    values: tuple[str, ...]
    interfaces: tuple[Interface, ...]
    texts: tuple[str, ...]

    def render(self, *, with_values: bool) -> str:
        """Return the section that is appended to the statement."""
        items = [*self.messages, *self.names, *(self.values if with_values else ())]
        return f"{HEADING}\n" + "\n".join(items)


def find_requirements(case: JudgeCase, findings: Sequence[Finding]) -> Requirements:
    """Return the facts that the tests of a case demand and its statement lacks.

    Args:
        case: the statement, and both patches.
        findings: findings of the rules, for this statement.
    """
    expectations = [read_expectation(case, message) for message in find_demanded_messages(case)]
    texts = tuple(expectation.text for expectation in expectations)
    messages = tuple(dict.fromkeys(map(_format_message, expectations)))
    interfaces = [interface for interface in find_interfaces(case) if find_unnamed(interface, case.statement)]
    names = [interface.format_item() for interface in interfaces]
    for missing in find_missing_names(case):
        if has_name(join_name_parts([case.statement, *messages, *names]), missing.name):
            continue
        definition = find_definition_with_parameter(case, missing.name) if missing.kind == "parameter" else None
        if definition:
            interfaces.append(definition)
        names.append(definition.format_item() if definition else _format_name(case, missing))
    return Requirements(
        messages=messages,
        names=tuple(names),
        values=tuple(_format_values(case, findings, "\n".join([*texts, *names]))),
        interfaces=tuple(interfaces),
        texts=texts,
    )


def _format_message(expected: Expectation) -> str:
    subject = expected.subject[:1].upper() + expected.subject[1:]
    example = _EXAMPLE if expected.is_example else ""
    return f"- {subject} {_COMPARISONS[expected.comparison]} {_format_text(expected.text, after=f'{example}.')}"


def _format_name(case: JudgeCase, missing: MissingName) -> str:
    if missing.kind == "module":
        path = next(
            file.path
            for file in case.source_files
            if file.is_new and f"/{file.path}".rpartition("/")[2].startswith(f"{missing.name}.")
        )
        return f"- The module `{path}`."
    return f"- The {missing.kind} `{missing.name}`."


def _format_values(case: JudgeCase, findings: Sequence[Finding], stated: str) -> Iterator[str]:
    """Yield the items of values that the gold patch writes literally; others may follow from the statement."""
    written = {token.text: token for _, token in case.gold_tokens if token.category in ("string", "number")}
    for finding in findings:
        token = written.get(finding.quote) if finding.rule == "value-not-stated" else None
        if token and token.value not in stated:
            kind = "text" if token.category == "string" else "number"
            yield f"- The {kind} {_format_text(token.value, after='.')}"


def _format_text(text: str, *, after: str) -> str:
    """Return a text as code in Markdown, in a block where it has several lines, followed by `after` on its line."""
    longest = max((len(match[0]) for match in _TICKS.finditer(text)), default=0)
    if "\n" in text:
        fence = "`" * max(3, longest + 1)
        block = "\n".join(f"  {line}".rstrip() for line in [fence, *text.strip("\n").split("\n"), fence])
        end = ", with a line break at its end" if text.endswith("\n") else ""
        return f"this text{end}{after.rstrip('.')}:\n\n{block}"
    fence = "`" * (longest + 1) if longest != 1 else "``"
    padding = " " if longest else ""
    return f"{fence}{padding}{text}{padding}{fence}{after}"
