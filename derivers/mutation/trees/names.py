"""Which names a function's parameters and local variables have, as far as grammars tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tree_sitter import Node

from derivers.mutation.trees.source import BLOCKS, FUNCTIONS, NAMES, Source, everything

DECLARATIONS = frozenset({
    "short_var_declaration", "variable_declarator", "let_declaration", "init_declarator", "assignment",
    "assignment_expression", "var_spec",
})  # fmt: skip
LOOKING = (b"eval", b"binding", b"compact", b"extract", b"$$", b"get_defined_vars", b"local_variables", b"macro_rules")
"""Words of functions that may see the names of local variables."""
_WRITTEN = ("left", "name", "pattern", "declarator", "key", "field", "property", "label", "method", "function", "type")


class Parameter(NamedTuple):
    """A parameter: its name, its type as it is written, and the bytes of its declaration."""

    name: str
    kind: str
    start: int
    end: int


def parameters(at: Source, function: Node) -> list[Parameter]:
    """A function's parameters, in order; none that is taken apart."""
    listed = function.child_by_field_name("parameters")
    declarator = function.child_by_field_name("declarator")
    while listed is None and declarator is not None:
        listed, declarator = declarator.child_by_field_name("parameters"), declarator.child_by_field_name("declarator")
    return [one for child in listed.named_children for one in _named(at, child)] if listed is not None else []


def _named(at: Source, node: Node) -> Iterator[Parameter]:
    kind = at.word(node.child_by_field_name("type"))
    names = [node] if node.type in NAMES else node.children_by_field_name("name")
    for key in ("pattern", "left", "declarator"):
        names = names or [one for one in [node.child_by_field_name(key)] if one is not None]
    for name in names:
        inner, marks = name, ""
        while inner.type not in NAMES and len(inner.named_children) == 1:  # `*name`, `&name`, `name[]`
            inner, marks = inner.named_children[0], marks + inner.type
        if inner.type in NAMES:
            yield Parameter(at.word(inner), kind + marks, node.start_byte, node.end_byte)


def is_read(node: Node) -> bool:
    """Whether a name stands for a value, not for a place to write to, a key or a function."""
    parent = node.parent
    if parent is None or parent.type in NAMES or parent.type.endswith(("parameter", "parameters", "pattern")):
        return False
    if any(parent.child_by_field_name(key) == node for key in _WRITTEN):
        return "binary" in parent.type and parent.child_by_field_name("left") == node
    return parent.type not in ("literal_element", "labeled_statement", "keyed_element", "expression_list") or (
        parent.type == "expression_list" and _is_value(parent)
    )


def _is_value(node: Node) -> bool:
    return node.parent is not None and node.parent.child_by_field_name("left") != node


def local_names(at: Source, function: Node) -> Iterator[tuple[str, list[Node]]]:
    """Local variables of a function, with all places that name them: those of which no other text speaks.

    A local is declared at the top level of the body, by one name, and named there first.
    """
    body = function.child_by_field_name("body")
    if body is None or any(word in at.text(function) for word in LOOKING):
        return
    taken = {one.name for one in parameters(at, function)}
    nodes = list(everything(function))
    for node in nodes:
        if (name := _declared(at, node, body)) is None or at.word(name) in taken:
            continue
        taken.add(at.word(name))
        places = [one for one in nodes if one.type in NAMES and at.text(one) == at.text(name)]
        keyed = any(one.parent is not None and one.parent.type in ("literal_element", "key") for one in places)
        if not keyed and places[0] == name and not _outside(function, at, name):
            yield at.word(name), places


def _declared(at: Source, node: Node, body: Node) -> Node | None:
    """The one name that a statement right in the body declares."""
    if node.type not in DECLARATIONS:
        return None
    above = node.parent
    while above is not None and above.type in ("lexical_declaration", "declaration", "expression_statement",
                                               "local_variable_declaration", "variable_declaration",
                                               "statement_list", "var_declaration"):  # fmt: skip
        above = above.parent
    keys = ("left", "name", "pattern", "declarator")
    name = next((one for key in keys if (one := node.child_by_field_name(key))), None)
    if name is not None and name.type == "expression_list" and len(name.named_children) == 1:
        name = name.named_children[0]
    inside = above is not None and above == body and above.type in BLOCKS
    if name is None or name.type not in NAMES or not inside:
        return None
    return name if at.grammar.name != "ruby" or node.type == "assignment" else None


def _outside(function: Node, at: Source, name: Node) -> bool:
    """Whether the function is inside another one that names the same: then it may be that one's."""
    one = function.parent
    while one is not None:
        if one.type in FUNCTIONS:
            return any(
                n.type in NAMES and at.text(n) == at.text(name) and not _within(n, function) for n in everything(one)
            )
        one = one.parent
    return False


def _within(node: Node, around: Node) -> bool:
    return around.start_byte <= node.start_byte and node.end_byte <= around.end_byte
