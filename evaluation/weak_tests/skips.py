"""Tests that are skipped where a package or program is missing, by the text of their file.

A skip counts where its condition looks for a package, or has a name that an import which may fail has bound. Its scope
is the function, class or titled call around it, else the whole file; a skip in a helper or fixture belongs to the
functions that name it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from evaluation.weak_tests.source import ParsedFile
from taskdb.records import TestId

_TRIES = re.compile(r"^(try|begin)")
_DECORATORS = re.compile(r"^(decorator|annotation|marker_annotation|attribute|attribute_item)$")
_ASSIGNMENTS = re.compile(r"assignment|variable_declarat|short_var_declaration|var_spec|let_declaration")
_CONDITIONS = re.compile(r"^(if|unless)(_|$)|conditional|ternary")
_RETURNS = re.compile(r"[{:]?\s*return(\s+(None|nil|null|undefined|true|false|0|\(\)))?\s*;?\s*(end|})?")
_COMPARES = re.compile(r"\bis\b|\bnot\b|[!=]=|!")
MAX_STATEMENT = 300
"""Characters of a statement that may hold the condition of a skip at its end, as in Perl and Ruby."""


def find_skipping_tests(file: ParsedFile, tests: Collection[TestId]) -> dict[TestId, str]:
    """Return test -> the place and text of what skips it without a package, for the tests of a file that have any."""
    skips: dict[TestId, str] = {}
    for site in _SkipFinder(file).iterate_sites():
        for test in _select_tests(file, site, tests):
            skips.setdefault(test, site.quote)
    return skips


@dataclass(frozen=True, kw_only=True)
class SkipSite:
    """Something that skips tests. `scope`: names of the definitions around it."""

    scope: tuple[str, ...]
    quote: str


def _select_tests(file: ParsedFile, site: SkipSite, tests: Collection[TestId]) -> list[TestId]:
    names = {test: test.partition("::")[2].partition("[")[0] for test in tests}
    inside = [test for test, name in names.items() if all(_has_word(name, part) for part in site.scope)]
    if inside or not site.scope:
        return inside
    helper = site.scope[-1]
    users = [
        name for name, texts in file.functions.items() if name != helper and any(_has_word(t, helper) for t in texts)
    ]
    return [test for test, name in names.items() if any(_has_word(name, user) for user in users)]


def _has_word(text: str, word: str) -> bool:
    # Go writes the spaces of a subtest's title as underscores.
    pattern = r"[\s_]+".join(re.escape(part) for part in re.split(r"[\s_]+", word))
    return re.search(rf"(?<!\w){pattern}(?!\w)", text) is not None


def _matches(pattern: str, text: str) -> bool:
    return bool(pattern) and re.search(pattern, text) is not None


@dataclass(frozen=True)
class _SkipFinder:
    """The skips of a file."""

    file: ParsedFile

    def iterate_sites(self) -> Iterator[SkipSite]:
        """Yield what skips tests without a package, in the order of the text."""
        words = self.file.words
        for node in self.file.nodes:
            if self._is_site(node):
                yield SkipSite(scope=self.file.find_scope(node), quote=self.file.quote(node))
            elif _ASSIGNMENTS.search(node.type) and self._binds_mark(node):
                names = self._list_bound(node)
                if any(_matches(words.file_marks, name) for name in names):
                    yield SkipSite(scope=self.file.find_scope(node), quote=self.file.quote(node))

    def _is_site(self, node: Node) -> bool:
        if _DECORATORS.search(node.type):
            text = self.file.read(node)
            return self._is_skip(text) or self._names_any(text, self.marks)
        if re.search(self.file.sites.call_nodes, node.type):
            return self._is_skipping_call(node)
        return _CONDITIONS.search(node.type) is not None and self._returns_early(node)

    def _is_skipping_call(self, node: Node) -> bool:
        if self._is_part_of_decorator_or_mark(node):
            return False
        callee = self.file.read(node).partition("(")[0].split("\n", 1)[0]
        if self._names_any(callee, self.marks):
            return True
        if _matches(self.file.words.always, self.file.read(node).split("\n", 1)[0]):
            return True
        return _matches(self.file.words.skips, callee) and self._is_conditional(self._read_condition(node))

    def _is_part_of_decorator_or_mark(self, node: Node) -> bool:
        return any(
            _DECORATORS.search(around.type) or (_ASSIGNMENTS.search(around.type) and self._binds_mark(around))
            for around in self.file.iterate_ancestors(node)
        )

    def _is_skip(self, text: str) -> bool:
        words = self.file.words
        return _matches(words.always, text) or (_matches(words.skips, text) and self._is_conditional(text))

    def _is_conditional(self, text: str) -> bool:
        words = self.file.words
        return _matches(words.lookups, text) or _matches(words.missing, text) or self._names_any(text, self.optional)

    def _read_condition(self, node: Node) -> str:
        """Return the texts that decide whether a call is reached: its own arguments, and the conditions around it."""
        parts = [self.file.read(node).partition("(")[2]]
        for around in self.file.iterate_ancestors(node):
            is_try = _TRIES.search(around.type) and _matches(self.file.words.missing, self.file.read(around))
            is_short = around.type.endswith("statement") and around.end_byte - around.start_byte < MAX_STATEMENT
            if _CONDITIONS.search(around.type):
                parts += [self._read_until(around, node), self._read_before(around)]
            if is_try or is_short:
                parts.append(self.file.read(around))
        return "\n".join(parts)

    def _read_until(self, node: Node, end: Node) -> str:
        """Return the text of a node up to another inside of it."""
        return self.file.source[node.start_byte : end.start_byte].decode(errors="replace")

    def _read_before(self, node: Node) -> str:
        """Return the text of the statement directly above a node, whose result a condition may test."""
        before = node.prev_named_sibling
        is_near = before is not None and before.end_point.row + 1 == node.start_point.row
        return self.file.read(before) if before is not None and is_near else ""

    def _returns_early(self, node: Node) -> bool:
        """Return whether a condition of a function that looks for a package does nothing but return."""
        body = node.child_by_field_name("consequence") or node.child_by_field_name("body")
        condition = node.child_by_field_name("condition")
        if body is None or condition is None or self.file.find_function(node) is None:
            return False
        is_return = _RETURNS.fullmatch(self.file.read(body).strip()) is not None
        text = f"{self._read_before(node)}\n{self._read_until(node, body)}"
        return is_return and self._is_conditional(text)

    # --- names -------------------------------------------------------------------------------------------------------

    @cached_property
    def optional(self) -> frozenset[str]:
        """Names outside of functions whose value depends on whether a package or program is there."""
        names: set[str] = set()
        for node in self.file.nodes:
            if not (_TRIES.search(node.type) or _ASSIGNMENTS.search(node.type)) or self.file.find_function(node):
                continue
            text = self.file.read(node)
            if _TRIES.search(node.type):
                names.update(self._list_bound(node) if _matches(self.file.words.missing, text) else ())
            else:
                is_test = _COMPARES.search(text) is not None and self._names_any(text, names)
                if _matches(self.file.words.lookups, text) or is_test:
                    names.update(self._list_bound(node))
        return frozenset(names)

    @cached_property
    def marks(self) -> frozenset[str]:
        """Names outside of functions of decorators, and of functions that define tests, that skip."""
        names: set[str] = set()
        for node in self.file.nodes:
            if _ASSIGNMENTS.search(node.type) and self._binds_mark(node):
                names.update(self._list_bound(node))
        return frozenset(names)

    def _binds_mark(self, node: Node) -> bool:
        text = self.file.read(node).partition("=")[2]
        # A module that is imported or skips its file is a value, and no decorator.
        is_value = _matches(self.file.words.always, text)
        return self.file.find_function(node) is None and not is_value and self._is_skip(text)

    def _list_bound(self, node: Node) -> list[str]:
        names: list[str] = []
        for match in re.finditer(self.file.words.bindings, self.file.read(node), re.MULTILINE):
            listed = next(filter(None, match.groups()), "")
            names += [part.split()[-1].strip("()") for part in listed.split(",") if part.split()]
        return [name for name in names if re.fullmatch(r"[\w$]+", name) and name not in ("_", "err", "None")]

    def _names_any(self, text: str, names: Collection[str]) -> bool:
        return any(_has_word(text, name) for name in names)


def group_by_file(tests: Collection[TestId]) -> Mapping[str, list[TestId]]:
    """Return file -> its tests."""
    files: dict[str, list[TestId]] = {}
    for test in tests:
        files.setdefault(test.partition("::")[0], []).append(test)
    return files
