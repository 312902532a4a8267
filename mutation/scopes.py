"""Parameters and local variables of functions, as far as syntax alone determines them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tree_sitter import Node

from languages.parsing import iterate_tree
from mutation.source_file import SourceFile
from mutation.syntax import BLOCKS, FUNCTIONS, NAMES, find_callee, find_enclosing, find_function

DECLARATIONS = frozenset(
    {
        "short_var_declaration",
        "variable_declarator",
        "let_declaration",
        "init_declarator",
        "assignment",
        "assignment_expression",
        "var_spec",
    }
)
INTROSPECTION = (
    b"eval",
    b"binding",
    b"compact",
    b"extract",
    b"$$",
    b"get_defined_vars",
    b"local_variables",
    b"macro_rules",
)
"""Words of functions that may read the names of local variables."""
PYTHON_INTROSPECTION = frozenset(
    {"locals", "vars", "eval", "exec", "dir", "globals", "_getframe", "currentframe", "query"}
)
"""The same for Python, as names of called functions."""
_WRITTEN_FIELDS = ("left", "name", "pattern", "declarator", "field", "property", "label", "method", "type", "attribute")
_FUNCTION_FIELDS = ("function", "key")
_DECLARATION_PARENTS = frozenset(
    {
        "lexical_declaration",
        "declaration",
        "expression_statement",
        "local_variable_declaration",
        "variable_declaration",
        "statement_list",
        "var_declaration",
    }
)
_NO_VALUE_PARENTS = frozenset(
    {
        "literal_element",
        "labeled_statement",
        "keyed_element",
        "as_pattern_target",
        "global_statement",
        "nonlocal_statement",
        "delete_statement",
    }
)


class Parameter(NamedTuple):
    """A parameter: its name, its type as written, and the bytes of its declaration."""

    name: str
    type: str
    start: int
    end: int


# ------------------------------------------------------------------------------------------------------- parameters


def list_parameters(file: SourceFile, function: Node) -> list[Parameter]:
    """Return a function's parameters in order, without receivers (`self`, `cls`), variadic and destructured ones."""
    listed = function.child_by_field_name("parameters")
    declarator = function.child_by_field_name("declarator")
    while listed is None and declarator is not None:
        listed, declarator = declarator.child_by_field_name("parameters"), declarator.child_by_field_name("declarator")
    if listed is None:
        return []
    parameters = [parameter for child in listed.named_children for parameter in _read_parameter(file, child)]
    if file.grammar.name == "python" and parameters and parameters[0].name in ("self", "cls"):
        return parameters[1:]
    return parameters


def _read_parameter(file: SourceFile, node: Node) -> Iterator[Parameter]:
    declared_type = file.get_text(node.child_by_field_name("type"))
    names = [node] if node.type in NAMES else node.children_by_field_name("name")
    for key in ("pattern", "left", "declarator"):
        names = names or [child for child in [node.child_by_field_name(key)] if child is not None]
    if node.type == "typed_parameter":
        names = names or [child for child in node.named_children[:1] if child.type in NAMES]
    for name in names:
        inner, marks = name, ""
        # Marks around a name belong to its type, as in `*name`, `&name` and `name[]`.
        while inner.type not in NAMES and len(inner.named_children) == 1:
            inner, marks = inner.named_children[0], marks + inner.type
        if inner.type in NAMES:
            compared_type = declared_type + marks if file.grammar.typed_parameters else ""
            yield Parameter(file.get_text(inner), compared_type, node.start_byte, node.end_byte)


def is_read(file: SourceFile, node: Node) -> bool:
    """Return whether a name is read, rather than assigned, declared, or used as a key or, but in Python, a function."""
    parent = node.parent
    if parent is None or parent.type in NAMES:
        return False
    if parent.type.endswith(("parameter", "parameters", "pattern", "pattern_list")):
        return False
    if parent.child_by_field_name("left") == node and ("binary" in parent.type or parent.type == "boolean_operator"):
        return True
    excluded = _WRITTEN_FIELDS if file.grammar.name == "python" else _WRITTEN_FIELDS + _FUNCTION_FIELDS
    if any(parent.child_by_field_name(key) == node for key in excluded):
        return False
    if parent.type == "expression_list":
        return parent.parent is not None and parent.parent.child_by_field_name("left") != parent
    return parent.type not in _NO_VALUE_PARENTS


# -------------------------------------------------------------------------------------------------- local variables


def find_locals(file: SourceFile, function: Node) -> Iterator[tuple[str, list[Node]]]:
    """Yield the local variables of a function that can be renamed, each with all nodes that name it."""
    find = _find_python_locals if file.grammar.name == "python" else _find_block_locals
    yield from find(file, function)


def _find_block_locals(file: SourceFile, function: Node) -> Iterator[tuple[str, list[Node]]]:
    """Yield variables that are declared at the top level of the body, by a single name, and used nowhere before."""
    body = function.child_by_field_name("body")
    if body is None or any(word in file.get_bytes(function) for word in INTROSPECTION):
        return
    seen = {parameter.name for parameter in list_parameters(file, function)}
    nodes = list(iterate_tree(function))
    for node in nodes:
        name = _find_declared_name(file, node, body)
        if name is None or file.get_text(name) in seen:
            continue
        seen.add(file.get_text(name))
        uses = [use for use in nodes if use.type in NAMES and file.get_bytes(use) == file.get_bytes(name)]
        is_key = any(use.parent is not None and use.parent.type in ("literal_element", "key") for use in uses)
        # A use before the declaration belongs to another variable of the same name.
        if not is_key and uses[0] == name and not _is_used_outside(file, function, name):
            yield file.get_text(name), uses


def _find_declared_name(file: SourceFile, node: Node, body: Node) -> Node | None:
    """Return the one name that a statement at the top level of the body declares."""
    if node.type not in DECLARATIONS or (file.grammar.name == "ruby" and node.type != "assignment"):
        return None
    ancestor = node.parent
    while ancestor is not None and ancestor.type in _DECLARATION_PARENTS:
        ancestor = ancestor.parent
    if ancestor is None or ancestor != body or ancestor.type not in BLOCKS:
        return None
    keys = ("left", "name", "pattern", "declarator")
    name = next((child for key in keys if (child := node.child_by_field_name(key))), None)
    if name is not None and name.type == "expression_list" and len(name.named_children) == 1:
        name = name.named_children[0]
    return name if name is not None and name.type in NAMES else None


def _is_used_outside(file: SourceFile, function: Node, name: Node) -> bool:
    """Return whether an enclosing function uses the same name: then it may be the same variable."""
    enclosing = find_enclosing(function, FUNCTIONS)
    if enclosing is None:
        return False
    return any(
        node.type in NAMES and file.get_bytes(node) == file.get_bytes(name) and not _is_within(node, function)
        for node in iterate_tree(enclosing)
    )


def _is_within(node: Node, other: Node) -> bool:
    return other.start_byte <= node.start_byte and node.end_byte <= other.end_byte


def _find_python_locals(file: SourceFile, function: Node) -> Iterator[tuple[str, list[Node]]]:
    """Yield names that only assignments and loops of an outermost function bind.

    Excluded are names that have another role anywhere in the function: parameters, attributes, keywords, imports,
    global names, and names that a nested scope binds.
    """
    nodes = list(iterate_tree(function))
    calls = {file.get_text(find_callee(node)) for node in nodes}
    # Nested functions share variables with the function around them, and introspection reads names at run time.
    if find_function(function) is not None or function.type == "lambda" or calls & PYTHON_INTROSPECTION:
        return
    excluded = {name for node in nodes for name in _list_excluded_names(file, function, node)}
    bound = dict.fromkeys(
        name for node in nodes for target in _list_targets(node) for name in _list_target_names(file, target)
    )
    for name in bound:
        if name not in excluded and not name.startswith("_"):
            yield name, [node for node in nodes if node.type == "identifier" and file.get_text(node) == name]


def _list_targets(node: Node) -> list[Node]:
    """Return the targets that a statement or expression of Python assigns to."""
    if node.type in ("assignment", "for_statement"):
        return node.children_by_field_name("left")
    return node.children_by_field_name("name") if node.type == "named_expression" else []


def _list_target_names(file: SourceFile, target: Node) -> list[str]:
    """Return the names that a target binds; attributes and items bind none."""
    if target.type == "identifier":
        return [file.get_text(target)]
    if target.type in ("pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern"):
        return [name for child in target.named_children for name in _list_target_names(file, child)]
    return []


def _list_excluded_names(file: SourceFile, function: Node, node: Node) -> list[str]:
    """Return the names to which a node gives another role than that of a local variable of the function."""
    kind = node.type
    if kind == "attribute":
        return [file.get_text(node.child_by_field_name("attribute"))]
    if kind == "keyword_argument":
        return [file.get_text(node.child_by_field_name("name"))]
    # `f"{name=}"` prints the name of the variable, so a new name would change the text.
    is_debug_format = kind == "interpolation" and any(child.type == "=" for child in node.children)
    if kind in ("parameters", "lambda_parameters"):
        return [name for child in node.named_children for name in _list_parameter_names(file, child)]
    if is_debug_format or kind in (
        "global_statement",
        "nonlocal_statement",
        "import_statement",
        "import_from_statement",
        "match_statement",
    ):
        return _list_names(file, node)
    if node != function and kind in ("function_definition", "class_definition", "lambda"):
        own = [file.get_text(node.child_by_field_name("name"))]
        assignments = (child for child in iterate_tree(node) if child.type == "assignment")
        targets = (target for child in assignments for target in _list_targets(child))
        return own + [name for target in targets for name in _list_names(file, target)]
    return []


def _list_parameter_names(file: SourceFile, parameter: Node) -> list[str]:
    """Return the names that a parameter of Python declares, variadic parameters included."""
    name = parameter.child_by_field_name("name") or parameter
    if parameter.type in ("typed_parameter", "list_splat_pattern", "dictionary_splat_pattern"):
        return [
            parameter_name
            for child in parameter.named_children[:1]
            for parameter_name in _list_parameter_names(file, child)
        ]
    return [file.get_text(name)] if name.type == "identifier" else []


def _list_names(file: SourceFile, node: Node) -> list[str]:
    return [file.get_text(child) for child in iterate_tree(node) if child.type == "identifier"]
