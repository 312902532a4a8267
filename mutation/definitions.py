"""Definitions of a file by its syntax tree: functions, classes and types that are not inside a function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from languages.parsing import create_parser
from mutation.grammars import find_grammar
from mutation.syntax import FUNCTIONS

_NAMED_FUNCTIONS = FUNCTIONS - {"arrow_function", "function_expression", "func_literal", "lambda", "lambda_expression"}
_TYPES = frozenset(
    {
        "class_definition",
        "class_declaration",
        "abstract_class_declaration",
        "class",
        "class_specifier",
        "struct_specifier",
        "struct_item",
        "enum_item",
        "trait_item",
        "impl_item",
        "type_spec",
        "interface_declaration",
        "enum_declaration",
        "record_declaration",
        "trait_declaration",
        "type_alias_declaration",
        "module",
        "mod_item",
    }
)
_ANNOTATIONS = frozenset({"type", "type_annotation"})
"""Types of parameters in languages that do not check them when a program runs."""
_ASSIGNED = frozenset({"arrow_function", "function_expression", "generator_function"})
_FUNCTION_FIELDS = {
    "variable_declarator": ("name", "value"),
    "assignment_expression": ("left", "right"),
    "pair": ("key", "value"),
    "field_definition": ("property", "value"),
    "public_field_definition": ("name", "value"),
}
"""Node that may assign a function -> its fields for the name and for the function."""
_ASSIGNMENTS = _FUNCTION_FIELDS.keys() - {"variable_declarator"}


@dataclass(frozen=True, slots=True)
class CodeDefinition:
    """A definition: its name, qualified by the classes around it, and its text."""

    name: str
    text: str
    first_line: int
    """1-based."""

    @property
    def last_line(self) -> int:
        """1-based."""
        return self.first_line + self.text.count("\n")

    @property
    def last_name(self) -> str:
        """The name without those of classes."""
        return self.name.rpartition(".")[2]

    @property
    def body(self) -> list[str]:
        """The lines without the first, stripped and without empty lines."""
        return [line for line in map(str.strip, self.text.splitlines()[1:]) if line]


def iterate_definitions(path: str, source: bytes) -> Iterator[CodeDefinition]:
    """Yield the definitions of a file; none where no grammar knows its language. Several may have the same name."""
    grammar = find_grammar(path)
    if grammar is None:
        return
    for name, node in iterate_definition_nodes(create_parser(grammar.syntax).parse(source).root_node):
        if node.type not in _ASSIGNMENTS and node.type != "impl_item":
            text = source[node.start_byte : node.end_byte].decode(errors="replace")
            yield CodeDefinition(name, text, node.start_point[0] + 1)


def iterate_definition_nodes(root: Node) -> Iterator[tuple[str, Node]]:
    """Yield qualified name and node of the definitions of a file that are not inside a function.

    Besides those of `iterate_definitions` these are blocks of methods (`impl`), and functions that are assigned to a
    property, a field or a key of an object.
    """
    todo: list[tuple[str, Node]] = [("", root)]
    while todo:
        prefix, node = todo.pop()
        for child in node.named_children:
            name = _find_name(child)
            is_type = child.type in _TYPES
            if name and (is_type or child.type in _NAMED_FUNCTIONS or child.type in _FUNCTION_FIELDS):
                yield prefix + name, child
                if is_type:
                    todo.append((f"{prefix}{name}.", child))
            elif child.type not in FUNCTIONS:
                todo.append((prefix, child))


def list_definitions(path: str, source: bytes) -> dict[str, CodeDefinition]:
    """Return qualified name -> definition of a file, of equal names one; empty where no grammar knows its language."""
    return {definition.name: definition for definition in iterate_definitions(path, source)}


def get_function(definition: Node) -> Node | None:
    """Return the function that a node of a definition defines; None where it defines a type."""
    if definition.type in FUNCTIONS:
        return definition
    fields = _FUNCTION_FIELDS.get(definition.type)
    return definition.child_by_field_name(fields[1]) if fields else None


def list_parameters(path: str, source: bytes) -> dict[str, list[tuple[str, ...]]]:
    """Return the words of the parameters of a file's functions, without annotations that have no effect when it runs.

    Args:
        path: path of the file, by which the grammar is found.
        source: content of the file.

    Returns:
        Qualified name -> parameters of each function of that name; functions without a list of them are left out.
    """
    grammar = find_grammar(path)
    parameters: dict[str, list[tuple[str, ...]]] = {}
    if grammar is not None:
        for name, node in iterate_definition_nodes(create_parser(grammar.syntax).parse(source).root_node):
            function = get_function(node)
            if function is not None and (listed := _find_parameters(function)) is not None:
                parameters.setdefault(name, []).append(tuple(_iterate_words(listed)))
    return parameters


def _find_parameters(node: Node) -> Node | None:
    """Return the parameters of a function, which some grammars have below its declarator."""
    todo = [node]
    while todo:
        for child in todo:
            if (parameters := child.child_by_field_name("parameters")) is not None:
                return parameters
        todo = [inner for child in todo for inner in child.named_children]
    return None


def _iterate_words(node: Node) -> Iterator[str]:
    if node.type in _ANNOTATIONS or node.type == ":":
        return
    if not node.children:
        yield (node.text or b"").decode(errors="replace")
    for child in node.children:
        yield from _iterate_words(child)


def find_enclosing_definition(path: str, source: bytes, line: int) -> str:
    """Return the qualified name of the innermost definition that contains a line (1-based); empty for none."""
    innermost = find_innermost(iterate_definitions(path, source), line)
    return innermost.name if innermost else ""


def find_innermost(definitions: Iterable[CodeDefinition], line: int) -> CodeDefinition | None:
    """Return the innermost of a file's definitions that contains a line (1-based); None where none does."""
    around = (definition for definition in definitions if definition.first_line <= line <= definition.last_line)
    return max(around, key=lambda definition: definition.first_line, default=None)


def _find_name(node: Node) -> str:
    """Return the name that a node defines; empty where it defines none."""
    named = node.child_by_field_name("name")
    if fields := _FUNCTION_FIELDS.get(node.type):
        value = node.child_by_field_name(fields[1])
        if value is None or value.type not in _ASSIGNED:
            return ""
        named = node.child_by_field_name(fields[0])
        named = named.child_by_field_name("property") or named if named is not None else None
    if named is None and node.type == "impl_item":
        named = node.child_by_field_name("type")
    if named is None and node.type == "function_definition":  # of C: the name is inside of the declarator
        named = node.child_by_field_name("declarator")
        while named is not None and (inner := named.child_by_field_name("declarator")) is not None:
            named = inner
    text = named.text.decode(errors="replace") if named is not None and named.text else ""
    if named is not None and named.type == "qualified_identifier":  # of a method that C++ defines outside its class
        text = text.replace("::", ".")
    return text if re.fullmatch(r"[\w$]+(\.[\w$]+)*", text) else ""
