"""Instrumentation of test files in Go, Rust and Java: blocks that are executed, and sizes of data, are added up.

The counters work only in the process that counts (`guest/harness/workload/timed_rounds.py`); elsewhere they cost
a single comparison.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from derivers.criterion import has_criterion_main, list_benchmarks, list_group_functions
from derivers.statements import render_template
from languages.parsing import create_parser
from mutation.grammars import find_grammar
from mutation.syntax import iterate_tree

_GO_TEST = re.compile(r"(Test|Benchmark)(?![a-z])\w*")
_GO_SIZED = {
    b"strings.Repeat": "mergemillString",
    b"strings.Join": "mergemillString",
    b"bytes.Repeat": "mergemillBytes",
}
_JAVA_SIZED = frozenset((b"repeat", b"nCopies", b"join"))
_RUST = "crate::mergemill_work"
_RUST_SIZED_COLLECTION = re.compile(rb"::\s*<\s*(Vec|String)\b")
_RUST_SIZED_TYPE = re.compile(rb"(Vec\s*<|String$)")


@dataclass(frozen=True, order=True)
class Insertion:
    """Text at a byte of a file."""

    position: int
    text: str


def add_counters(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the test files with counters, and the files that define these; other languages' files are left out."""
    found: dict[str, bytes] = {}
    for path, source in files.items():
        grammar = find_grammar(path)
        if grammar is None or grammar.name not in _INSTRUMENTS:
            continue
        root = create_parser(grammar.syntax).parse(source).root_node
        find_insertions, build_helper = _INSTRUMENTS[grammar.name]
        name, text = build_helper(root)
        changed = _insert(source, sorted(find_insertions(root)))
        found[path] = changed + text if name is None else changed
        if name is not None:
            found[posixpath.join(posixpath.dirname(path), name)] = text
    return found


def _insert(source: bytes, insertions: list[Insertion]) -> bytes:
    parts, last = [], 0
    for one in insertions:
        parts += [source[last : one.position], one.text.encode()]
        last = one.position
    return b"".join([*parts, source[last:]])


def _wrap(node: Node, function: str) -> Iterator[Insertion]:
    """Yield the insertions that put an expression into a call."""
    yield Insertion(node.start_byte, f"{function}(")
    yield Insertion(node.end_byte, ")")


def _get_text(node: Node | None) -> bytes:
    return (node.text or b"") if node is not None else b""


# ------------------------------------------------------------------------------------------------------------------ Go


def _find_go_insertions(root: Node) -> Iterator[Insertion]:
    for node in iterate_tree(root):
        parent = node.parent
        if node.type == "block":
            yield Insertion(node.start_byte + 1, _start_go_test(parent) + " mergemillCount(1); ")
        elif node.type == "call_expression" and (
            sized := _GO_SIZED.get(_get_text(node.child_by_field_name("function")))
        ):
            yield from _wrap(node, sized)
        elif node.type in ("short_var_declaration", "var_declaration") and parent is not None:
            names = [_get_text(one).decode() for one in _find_go_names(node)]
            if parent.type in ("statement_list", "block") and names:
                yield Insertion(node.end_byte, f"; if mergemillOn {{ mergemillSize({', '.join(names)}) }}")


def _find_go_names(declaration: Node) -> list[Node]:
    """Return the variables that a declaration gives a value, without the blank."""
    if declaration.type == "short_var_declaration":
        left = declaration.child_by_field_name("left")
        names = left.named_children if left is not None else []
    else:
        specs = [one for one in iterate_tree(declaration) if one.type == "var_spec"]
        names = [
            name for one in specs if one.child_by_field_name("value") for name in one.children_by_field_name("name")
        ]
    return [one for one in names if one.type == "identifier" and one.text != b"_"]


def _start_go_test(function: Node | None) -> str:
    """Return the statement that writes the work when a test ends; empty for other functions."""
    if function is None or function.type != "function_declaration":
        return ""
    match = _GO_TEST.fullmatch(_get_text(function.child_by_field_name("name")).decode())
    parameter = re.match(rb"\(\s*(\w+)\s+\*testing\.[TB]\s*\)", _get_text(function.child_by_field_name("parameters")))
    if not match or parameter is None:
        return ""
    name = parameter[1].decode()
    return " defer mergemillWrite();" if name == "_" else f" {name}.Cleanup(mergemillWrite);"


def _build_go_helper(root: Node) -> tuple[str, bytes]:
    clause = next((one for one in root.named_children if one.type == "package_clause"), None)
    package = _get_text(clause.named_children[0]).decode() if clause is not None else "main"
    return f"mergemill_work_{package.removesuffix('_test')}{len(package)}_test.go", render_template(
        "counters/go_work.go.j2", package=package
    ).encode()


# ---------------------------------------------------------------------------------------------------------------- Rust


def _find_rust_insertions(root: Node) -> Iterator[Insertion]:
    is_criterion = has_criterion_main(_get_text(root))
    restarting = list_group_functions(root) if is_criterion else set()
    for node in iterate_tree(root):
        if node.type == "block" and not _is_constant(node):
            guard = f" let _mergemill_work = {_RUST}::Write;" if _is_rust_test(node.parent) else ""
            if node.parent is not None and _get_text(node.parent.child_by_field_name("name")).decode() in restarting:
                guard = f" {_RUST}::restart();"
            yield Insertion(node.start_byte + 1, f"{guard} {_RUST}::count(1); ")
        elif _has_rust_size(node) and not _is_constant(node):
            yield from _wrap(node, f"{_RUST}::size")
    for benchmark in list_benchmarks(root) if is_criterion else ():
        loop = f"for _ in 0..{_RUST}::runs() {{ {_RUST}::count(1); "
        yield Insertion(benchmark.body.start_byte, f"{{ let _mergemill_work = {_RUST}::Write; {loop}")
        yield Insertion(benchmark.body.end_byte, "; } }")


def _is_constant(node: Node) -> bool:
    """Return whether a node is evaluated by the compiler, or must be the first of its block."""
    place: Node | None = node
    while place is not None:
        if place.type in ("const_item", "static_item", "const_block", "attribute_item"):
            return True
        if place.type == "function_item" and re.match(rb"[^({]*\bconst\b", _get_text(place)):
            return True
        place = place.parent
    return bool(node.named_children) and node.named_children[0].type == "inner_attribute_item"


def _is_rust_test(function: Node | None) -> bool:
    place = function.prev_named_sibling if function is not None and function.type == "function_item" else None
    while place is not None and place.type in ("attribute_item", "line_comment", "block_comment"):
        if place.type == "attribute_item" and re.search(rb"\btest\b", _get_text(place)):
            return True
        place = place.prev_named_sibling
    return False


def _has_rust_size(node: Node) -> bool:
    """Return whether an expression is a vector or string whose size is given as a number, or collected."""
    if node.type == "macro_invocation":
        return _get_text(node.child_by_field_name("macro")) == b"vec" and b";" in _get_text(node)
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    if function is None:
        return False
    if function.type == "generic_function":
        return b"collect" in _get_text(function) and _RUST_SIZED_COLLECTION.search(_get_text(function)) is not None
    field = _get_text(function.child_by_field_name("field")) if function.type == "field_expression" else b""
    return field == b"repeat" or (field == b"collect" and _is_declared_with_size(node))


def _is_declared_with_size(value: Node) -> bool:
    """Return whether an expression is the value of a variable whose declared type is a vector or string."""
    place = value.parent
    if place is None or place.type != "let_declaration" or place.child_by_field_name("value") != value:
        return False
    return _RUST_SIZED_TYPE.match(_get_text(place.child_by_field_name("type"))) is not None


def _build_rust_helper(_root: Node) -> tuple[None, bytes]:
    return None, render_template("counters/rust_work.rs.j2").encode()


# ---------------------------------------------------------------------------------------------------------------- Java


def _find_java_insertions(root: Node) -> Iterator[Insertion]:
    for node in iterate_tree(root):
        if node.type == "block":
            yield Insertion(node.start_byte + 1, " MergemillWork.count(); ")
        elif node.type == "array_creation_expression" or (
            node.type == "method_invocation" and _get_text(node.child_by_field_name("name")) in _JAVA_SIZED
        ):
            yield from _wrap(node, "MergemillWork.size")
        elif node.type == "local_variable_declaration" and node.parent is not None and node.parent.type == "block":
            names = [
                _get_text(one.child_by_field_name("name")).decode()
                for one in node.children_by_field_name("declarator")
                if one.child_by_field_name("value") is not None
            ]
            calls = "".join(f" MergemillWork.size((Object) {name});" for name in names)
            yield Insertion(node.end_byte, f" if (MergemillWork.ON) {{{calls} }}")


def _build_java_helper(root: Node) -> tuple[str, bytes]:
    clause = next((one for one in root.named_children if one.type == "package_declaration"), None)
    package = _get_text(clause.named_children[-1]).decode() if clause is not None else ""
    return "MergemillWork.java", render_template("counters/java_work.java.j2", package=package).encode()


_INSTRUMENTS: Mapping[str, tuple[Callable[[Node], Iterator[Insertion]], Callable[[Node], tuple[str | None, bytes]]]] = {
    "go": (_find_go_insertions, _build_go_helper),
    "rust": (_find_rust_insertions, _build_rust_helper),
    "java": (_find_java_insertions, _build_java_helper),
}
"""Language -> what is inserted into a test file, and (name or None for its end, text) of what defines that."""
