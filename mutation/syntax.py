"""Node types that the grammars of many languages share, and lookups in a syntax tree."""

from __future__ import annotations

from collections.abc import Collection

from tree_sitter import Node

from languages.parsing import iterate_tree

FUNCTIONS = frozenset(
    {
        "function_declaration",
        "function_definition",
        "function_item",
        "method_declaration",
        "method_definition",
        "method",
        "singleton_method",
        "arrow_function",
        "function_expression",
        "func_literal",
        "constructor_declaration",
        "generator_function_declaration",
        "anonymous_function_creation_expression",
        "anonymous_function",
        "closure_expression",
        "lambda_expression",
        "function",
        "lambda",
        "block_argument",
    }
)
IFS = frozenset({"if_statement", "if_expression", "if"})
WHILES = frozenset({"while_statement", "while_expression", "while"})
FORS = frozenset(
    {
        "for_statement",
        "for_in_statement",
        "for_range_loop",
        "for_expression",
        "enhanced_for_statement",
        "foreach_statement",
        "for",
    }
)
LOOPS = FORS | WHILES | {"do_statement", "loop_expression", "until"}
TERNARIES = frozenset({"ternary_expression", "conditional_expression", "conditional"})
CONDITIONALS = (
    IFS
    | WHILES
    | TERNARIES
    | {
        "do_statement",
        "unless",
        "elsif",
        "elif_clause",
        "if_modifier",
        "unless_modifier",
        "for_clause",
        "for_statement",
        "else_if_clause",
        "if_clause",
        "assert_statement",
    }
)
SWITCHES = frozenset(
    {
        "switch_statement",
        "switch_expression",
        "expression_switch_statement",
        "type_switch_statement",
        "select_statement",
        "match_expression",
        "case",
    }
)
BLOCKS = frozenset(
    {
        "block",
        "statement_list",
        "statement_block",
        "compound_statement",
        "body_statement",
        "then",
        "else",
        "block_body",
        "do_block",
        "do",
        "begin",
    }
)
CALLS = frozenset(
    {
        "call_expression",
        "method_invocation",
        "call",
        "function_call_expression",
        "member_call_expression",
        "scoped_call_expression",
        "nullsafe_member_call_expression",
    }
)
ARGUMENT_LISTS = frozenset({"argument_list", "arguments"})
RETURNS = frozenset({"return_statement", "return_expression", "return"})
THROWS = frozenset({"throw_statement", "throw_expression", "raise_statement"})
CONTINUES_AND_BREAKS = frozenset(
    {"continue_statement", "continue_expression", "break_statement", "break_expression", "next", "break"}
)
EXITS = RETURNS | THROWS | CONTINUES_AND_BREAKS
"""Statements after which the next is not executed."""
MEMBERS = frozenset(
    {
        "selector_expression",
        "index_expression",
        "member_expression",
        "subscript_expression",
        "field_expression",
        "field_access",
        "array_access",
        "instance_variable",
        "element_reference",
        "member_access_expression",
        "class_variable",
        "attribute",
        "subscript",
    }
)
INDEXED = frozenset(
    {
        "index_expression",
        "subscript_expression",
        "array_access",
        "element_reference",
        "slice_expression",
        "subscript",
    }
)
STRINGS = frozenset({"string", "string_literal", "interpreted_string_literal", "encapsed_string", "template_string"})
COLLECTIONS = frozenset({"list", "list_comprehension", "tuple", "concatenated_string"})
NAMES = frozenset({"identifier", "variable_name"})
UNARIES = frozenset({"unary_operator", "unary_expression", "unary", "unary_op_expression"})

_STRING_NODES = STRINGS | {"concatenated_string"}


def find_enclosing(node: Node, kinds: Collection[str]) -> Node | None:
    """Return the nearest ancestor of any of these types."""
    ancestor = node.parent
    while ancestor is not None and ancestor.type not in kinds:
        ancestor = ancestor.parent
    return ancestor


def find_function(node: Node) -> Node | None:
    """Return the nearest enclosing function."""
    return find_enclosing(node, FUNCTIONS)


def list_statements(block: Node | None) -> list[Node]:
    """Return the statements of a block, without comments."""
    return [child for child in block.named_children if not is_comment(child)] if block is not None else []


def is_comment(node: Node) -> bool:
    """Return whether a node is a comment."""
    return "comment" in node.type


def is_docstring(node: Node) -> bool:
    """Return whether a statement is a string and nothing else, as docstrings and directives are."""
    children = node.named_children
    return node.type == "expression_statement" and len(children) == 1 and children[0].type in _STRING_NODES


def find_condition(node: Node) -> Node | None:
    """Return the condition of a statement or expression, without parentheses; None where it declares a name."""
    if node.type not in CONDITIONALS:
        return None
    condition = node.child_by_field_name("condition") or _find_positional_condition(node)
    if condition is not None and condition.type in ("parenthesized_expression", "condition_clause"):
        condition = condition.named_children[0] if len(condition.named_children) == 1 else None
    # A condition that declares a name, such as `if let`, cannot be negated.
    if condition is None or any("let_c" in child.type or "declar" in child.type for child in iterate_tree(condition)):
        return None
    return None if condition.type.startswith("assignment") or condition.has_error else condition


def _find_positional_condition(node: Node) -> Node | None:
    """Return the condition where the grammar gives it no field name: `a if c else b`, `if c`, `assert c` of Python."""
    children = [child for child in node.named_children if not is_comment(child)]
    if node.type == "conditional_expression" and len(children) == 3:
        return children[1]
    return children[0] if node.type in ("if_clause", "assert_statement") and children else None


def find_callee(node: Node) -> Node | None:
    """Return the last name of the function that a call calls; None where it has no name."""
    if node.type not in CALLS:
        return None
    target = next((child for key in ("function", "method", "name") if (child := node.child_by_field_name(key))), None)
    while target is not None and target.named_children and target.type not in NAMES:
        # The result of a call is called here, which has no name.
        if target.type in CALLS | ARGUMENT_LISTS:
            return None
        target = target.named_children[-1]
    return target


def is_index(node: Node) -> bool:
    """Return whether an expression is an index or a bound of a slice."""
    parent = node.parent
    if parent is not None and parent.type in UNARIES:
        node, parent = parent, parent.parent
    if parent is None:
        return False
    if parent.type in ("subscript_argument_list", "slice"):
        return True
    return parent.type in INDEXED and parent.start_byte != node.start_byte


def is_default(node: Node) -> bool:
    """Return whether an expression is the default value of a parameter."""
    parent = node.parent
    if parent is not None and parent.type in UNARIES:
        parent = parent.parent
    return parent is not None and parent.type in (
        "assignment_pattern",
        "optional_parameter",
        "required_parameter",
        "simple_parameter",
        "keyword_parameter",
        "optional_parameter_declaration",
        "default_parameter",
        "typed_default_parameter",
    )


def split_comparison(node: Node) -> tuple[Node, Node, Node] | None:
    """Return left side, operator and right side of a binary expression; None for chains and other nodes."""
    if node.type == "comparison_operator":
        operators, sides = node.children_by_field_name("operators"), node.named_children
        return (sides[0], operators[0], sides[1]) if len(operators) == 1 and len(sides) == 2 else None
    left, operator = node.child_by_field_name("left"), node.child_by_field_name("operator")
    right = node.child_by_field_name("right")
    return (left, operator, right) if left and operator and right else None


def list_operators(node: Node) -> list[Node]:
    """Return the operators of an expression: several for a chained comparison of Python."""
    if node.type == "comparison_operator":
        return node.children_by_field_name("operators")
    operator = node.child_by_field_name("operator")
    if operator is None and node.type in ("inc_statement", "dec_statement", "update_expression"):
        operator = next((child for child in node.children if not child.is_named), None)
    return [operator] if operator is not None else []
