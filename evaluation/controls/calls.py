"""Calls in test files, and tests and helpers with their assertions switched off."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from tree_sitter import Node

from evaluation.controls.blocks import TestBlock, TestFile, find_blocks
from guest.controls.texts import Edit, copy_block, draw_name, join_instances

ARGUMENTS = re.compile(r"arguments$|argument_list$|token_tree$|list_expression$")
"""Node types of the arguments of a call."""


def is_call(file: TestFile, node: Node) -> bool:
    """Return whether a node is a call."""
    return bool(re.search(file.sites.call_nodes, node.type)) and not ARGUMENTS.search(node.type)


def read_head(file: TestFile, call: Node) -> str:
    """Return the text of a call before its arguments."""
    arguments = next((child for child in call.named_children if ARGUMENTS.search(child.type)), None)
    end = arguments.start_byte if arguments is not None else call.end_byte
    return file.source[call.start_byte : end].decode(errors="replace").strip().rstrip("(!").strip()[-200:]


def list_arguments(call: Node) -> list[Node]:
    """Return the arguments of a call, comments and keyword arguments included."""
    return next((child.named_children for child in call.named_children if ARGUMENTS.search(child.type)), [])


def read_called_name(head: str) -> str:
    """Return the name of the function that a call calls, from the text before its arguments."""
    return re.split(r"[.:>]", head)[-1]


@dataclass(frozen=True, kw_only=True)
class SilentHelpers:
    """Copies of a file's helpers that assert nothing, for tests with their assertions switched off.

    `names`: name of a helper -> name of its copy. `edits`: put each copy after its helper.
    """

    names: Mapping[str, str]
    edits: Sequence[Edit]

    @classmethod
    def copy(cls, file: TestFile, random: Random) -> SilentHelpers:
        """Return copies of the helpers that assert something, or call one that does.

        Those that a test or another helper defines for itself are copied with it, and those with a decorator, which
        may register them, are not copied.
        """
        outer = (*find_blocks(file), *file.helpers.values())
        helpers = {
            name: helper
            for name, helper in file.helpers.items()
            if not _is_decorated(helper) and not any(other.contains(helper) for other in outer)
        }
        asserting = {name for name, helper in helpers.items() if silence_assertions(file, helper)}
        calls = {name: _list_called_names(file, helper) for name, helper in helpers.items()}
        while added := {name for name in helpers.keys() - asserting if not asserting.isdisjoint(calls[name])}:
            asserting |= added
        names = {name: draw_name(name, random) for name in sorted(asserting)}
        edits = [_copy_helper(file, helpers[name], new, names) for name, new in names.items()]
        return cls(names=names, edits=edits)


def _is_decorated(helper: TestBlock) -> bool:
    return helper.node.parent is not None and helper.node.parent.type == "decorated_definition"


def _list_called_names(file: TestFile, helper: TestBlock) -> set[str]:
    names, todo = set(), [helper.node]
    while todo:
        node = todo.pop()
        todo += node.named_children
        if is_call(file, node):
            names.add(read_called_name(read_head(file, node)))
    return names


def _copy_helper(file: TestFile, helper: TestBlock, new: str, names: Mapping[str, str]) -> Edit:
    """Return the edit that puts a copy that asserts nothing after a helper."""
    span, name_span = [helper.start, helper.end], list(helper.name_span or ())
    silent = copy_block(file.source, span, name_span, new, silence_assertions(file, helper, names))
    return [helper.end, helper.end, join_instances(file.source, helper.start, ["", silent])]


def silence_assertions(file: TestFile, block: TestBlock, helpers: Mapping[str, str] | None = None) -> list[Edit]:
    """Return the edits with which a test or helper computes the same and asserts nothing.

    Args:
        file: file of the test or helper.
        block: the test or helper.
        helpers: name of a helper that asserts -> name of its copy that does not.
    """
    edits: list[Edit] = []
    todo = [block.node]
    while todo:
        node = todo.pop()
        todo += node.named_children
        if keyword := file.sites.silent_keywords.get(node.type):
            old, new = keyword
            edits.append([node.start_byte, node.start_byte + len(old.encode()), new])
        elif is_call(file, node) and node.named_children:
            edits += _silence_call(file, node, helpers or {})
    return edits


def guard_against_crashes(file: TestFile, block: TestBlock) -> list[Edit]:
    """Return the edits with which a crash of a test fails it alone; none where the language needs none."""
    parameters, guard = file.sites.crash_guard
    edits: list[Edit] = []
    todo = [block.node] if guard else []
    while todo:
        node = todo.pop()
        todo += node.named_children
        head, body = node.child_by_field_name("parameters"), node.child_by_field_name("body")
        if head is not None and body is not None and (match := re.fullmatch(parameters, file.read(head))):
            edits.append([body.start_byte + 1, body.start_byte + 1, match.expand(guard)])
    return edits


def _silence_call(file: TestFile, call: Node, helpers: Mapping[str, str]) -> list[Edit]:
    """Return the edits of a call that is an assertion, or a helper that asserts: of the text before its arguments."""
    callee = call.named_children[0]
    head = file.read(callee)
    name = read_called_name(head)
    if name in helpers:
        return [[callee.end_byte - len(name.encode()), callee.end_byte, helpers[name]]]
    for pattern, new in file.sites.silent_calls:
        if re.search(pattern, head):
            return [[callee.start_byte, callee.end_byte, re.sub(pattern, new, head)], *_put_in_parentheses(file, call)]
    return []


def _put_in_parentheses(file: TestFile, call: Node) -> list[Edit]:
    """Return the edits that put the arguments of a call in parentheses, if there are arguments without them."""
    arguments = next((child for child in call.named_children if child.type == "list_expression"), None)
    between = file.source[call.named_children[0].end_byte : arguments.start_byte if arguments else call.end_byte]
    if arguments is None or between.strip():
        return []
    end = call.named_children[0].end_byte
    return [[end, arguments.start_byte, "("], [arguments.end_byte, arguments.end_byte, ")"]]
