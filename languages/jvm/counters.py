"""Counters of work in test files of Java."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tree_sitter import Node

from core.templates import make_environment
from languages.base import read_packaged_file
from languages.parsing import iterate_tree
from languages.work import Insertion, WorkCounters, get_text, wrap

_TEMPLATES = make_environment(partial(read_packaged_file, "languages.jvm"))
_SIZED = frozenset((b"repeat", b"nCopies", b"join"))


def _find_insertions(root: Node) -> Iterator[Insertion]:
    for node in iterate_tree(root):
        if node.type == "block":
            yield Insertion(node.start_byte + 1, " MergemillWork.count(); ")
        elif node.type == "array_creation_expression" or (
            node.type == "method_invocation" and get_text(node.child_by_field_name("name")) in _SIZED
        ):
            yield from wrap(node, "MergemillWork.size")
        elif node.type == "local_variable_declaration" and node.parent is not None and node.parent.type == "block":
            names = [
                get_text(child.child_by_field_name("name")).decode()
                for child in node.children_by_field_name("declarator")
                if child.child_by_field_name("value") is not None
            ]
            calls = "".join(f" MergemillWork.size((Object) {name});" for name in names)
            yield Insertion(node.end_byte, f" if (MergemillWork.ON) {{{calls} }}")


def _build_helper(root: Node) -> tuple[str, bytes]:
    clause = next((child for child in root.named_children if child.type == "package_declaration"), None)
    package = get_text(clause.named_children[-1]).decode() if clause is not None else ""
    return "MergemillWork.java", _TEMPLATES.get_template("work.java.j2").render(package=package).encode()


COUNTERS = WorkCounters(find_insertions=_find_insertions, build_helper=_build_helper)
