"""Calls in test files, and tests with their assertions switched off."""

from __future__ import annotations

import re

from tree_sitter import Node

from evaluation.controls.blocks import TestBlock, TestFile
from guest.controls.texts import Edit

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


def silence_assertions(file: TestFile, block: TestBlock) -> list[Edit]:
    """Return the edits with which a test computes the same and asserts nothing."""
    edits: list[Edit] = []
    todo = [block.node]
    while todo:
        node = todo.pop()
        todo += node.named_children
        if keyword := file.sites.silent_keywords.get(node.type):
            old, new = keyword
            edits.append([node.start_byte, node.start_byte + len(old.encode()), new])
        elif is_call(file, node) and node.named_children:
            callee = node.named_children[0]
            head = file.read(callee)
            for pattern, new in file.sites.silent_calls:
                if re.search(pattern, head):
                    edits.append([callee.start_byte, callee.end_byte, re.sub(pattern, new, head)])
                    break
    return edits
