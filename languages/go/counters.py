"""Counters of work in test files of Go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from tree_sitter import Node

from core.templates import make_environment
from languages.base import read_packaged_file
from languages.parsing import iterate_tree
from languages.work import Insertion, WorkCounters, get_text, wrap

_TEMPLATES = make_environment(partial(read_packaged_file, "languages.go"))
_TEST = re.compile(r"(Test|Benchmark)(?![a-z])\w*")
_BENCHMARK = re.compile(rb"^func (Benchmark(?![a-z])\w*)\(\w+ \*testing\.B\)", re.MULTILINE)
_SIZED = {
    b"strings.Repeat": "mergemillString",
    b"strings.Join": "mergemillString",
    b"bytes.Repeat": "mergemillBytes",
}


def _find_insertions(root: Node) -> Iterator[Insertion]:
    for node in iterate_tree(root):
        parent = node.parent
        if node.type == "block":
            yield Insertion(node.start_byte + 1, _start_test(parent) + " mergemillCount(1); ")
        elif node.type == "call_expression" and (sized := _SIZED.get(get_text(node.child_by_field_name("function")))):
            yield from wrap(node, sized)
        elif node.type in ("short_var_declaration", "var_declaration") and parent is not None:
            names = [get_text(name).decode() for name in _find_names(node)]
            if parent.type in ("statement_list", "block") and names:
                yield Insertion(node.end_byte, f"; if mergemillOn {{ mergemillSize({', '.join(names)}) }}")


def _find_names(declaration: Node) -> list[Node]:
    """Return the variables that a declaration gives a value, without the blank one."""
    if declaration.type == "short_var_declaration":
        left = declaration.child_by_field_name("left")
        names = left.named_children if left is not None else []
    else:
        specs = [spec for spec in iterate_tree(declaration) if spec.type == "var_spec"]
        names = [
            name for spec in specs if spec.child_by_field_name("value") for name in spec.children_by_field_name("name")
        ]
    return [name for name in names if name.type == "identifier" and name.text != b"_"]


def _start_test(function: Node | None) -> str:
    """Return the statement that writes the work when a test ends; empty for other functions."""
    if function is None or function.type != "function_declaration":
        return ""
    match = _TEST.fullmatch(get_text(function.child_by_field_name("name")).decode())
    parameter = re.match(rb"\(\s*(\w+)\s+\*testing\.[TB]\s*\)", get_text(function.child_by_field_name("parameters")))
    if not match or parameter is None:
        return ""
    name = parameter[1].decode()
    return " defer mergemillWrite();" if name == "_" else f" {name}.Cleanup(mergemillWrite);"


def _build_helper(root: Node) -> tuple[str, bytes]:
    clause = next((child for child in root.named_children if child.type == "package_clause"), None)
    package = get_text(clause.named_children[0]).decode() if clause is not None else "main"
    text = _TEMPLATES.get_template("work.go.j2").render(package=package)
    return f"mergemill_work_{package.removesuffix('_test')}{len(package)}_test.go", text.encode()


def list_benchmarks(source: bytes) -> list[str]:
    """Return the names of the benchmarks in a test file."""
    return [name.decode() for name in _BENCHMARK.findall(source)]


COUNTERS = WorkCounters(find_insertions=_find_insertions, build_helper=_build_helper)
