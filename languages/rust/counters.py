"""Counters of work in tests and benchmarks of Rust."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from languages.base import read_packaged_file
from languages.parsing import iterate_tree
from languages.rust.criterion import has_criterion_main, list_benchmarks, list_group_functions
from languages.work import Insertion, WorkCounters, get_text, wrap

_MODULE = "crate::mergemill_work"
_SIZED_COLLECTION = re.compile(rb"::\s*<\s*(Vec|String)\b")
_SIZED_TYPE = re.compile(rb"(Vec\s*<|String$)")


def _find_insertions(root: Node) -> Iterator[Insertion]:
    is_criterion = has_criterion_main(get_text(root))
    restarting = list_group_functions(root) if is_criterion else set()
    for node in iterate_tree(root):
        if node.type == "block" and not _is_constant(node):
            guard = f" let _mergemill_work = {_MODULE}::Write;" if _is_test(node.parent) else ""
            if node.parent is not None and get_text(node.parent.child_by_field_name("name")).decode() in restarting:
                guard = f" {_MODULE}::restart();"
            yield Insertion(node.start_byte + 1, f"{guard} {_MODULE}::count(1); ")
        elif _has_size(node) and not _is_constant(node):
            yield from wrap(node, f"{_MODULE}::size")
    for benchmark in list_benchmarks(root) if is_criterion else ():
        loop = f"for _ in 0..{_MODULE}::runs() {{ {_MODULE}::count(1); "
        yield Insertion(benchmark.body.start_byte, f"{{ let _mergemill_work = {_MODULE}::Write; {loop}")
        yield Insertion(benchmark.body.end_byte, "; } }")


def _is_constant(node: Node) -> bool:
    """Return whether a node is evaluated by the compiler, or must be the first one of its block."""
    place: Node | None = node
    while place is not None:
        if place.type in ("const_item", "static_item", "const_block", "attribute_item"):
            return True
        if place.type == "function_item" and re.match(rb"[^({]*\bconst\b", get_text(place)):
            return True
        place = place.parent
    return bool(node.named_children) and node.named_children[0].type == "inner_attribute_item"


def _is_test(function: Node | None) -> bool:
    place = function.prev_named_sibling if function is not None and function.type == "function_item" else None
    while place is not None and place.type in ("attribute_item", "line_comment", "block_comment"):
        if place.type == "attribute_item" and re.search(rb"\btest\b", get_text(place)):
            return True
        place = place.prev_named_sibling
    return False


def _has_size(node: Node) -> bool:
    """Return whether an expression is a vector or string whose size is given as a number, or collected."""
    if node.type == "macro_invocation":
        return get_text(node.child_by_field_name("macro")) == b"vec" and b";" in get_text(node)
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    if function is None:
        return False
    if function.type == "generic_function":
        return b"collect" in get_text(function) and _SIZED_COLLECTION.search(get_text(function)) is not None
    field = get_text(function.child_by_field_name("field")) if function.type == "field_expression" else b""
    return field == b"repeat" or (field == b"collect" and _is_declared_with_size(node))


def _is_declared_with_size(value: Node) -> bool:
    """Return whether an expression is the value of a variable whose declared type is a vector or string."""
    place = value.parent
    if place is None or place.type != "let_declaration" or place.child_by_field_name("value") != value:
        return False
    return _SIZED_TYPE.match(get_text(place.child_by_field_name("type"))) is not None


def _build_helper(_root: Node) -> tuple[None, bytes]:
    return None, read_packaged_file("languages.rust", "work.rs.j2").encode()


COUNTERS = WorkCounters(find_insertions=_find_insertions, build_helper=_build_helper)
