"""A file as tree-sitter reads it, and the shapes that the grammars of many languages share."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

from tree_sitter import Node, Parser, Query, QueryCursor

from derivers.mutation.change import Found, Operator, Part
from derivers.mutation.trees.grammars import Grammar, parser_of

FUNCTIONS = frozenset({
    "function_declaration", "function_definition", "function_item", "method_declaration", "method_definition",
    "method", "singleton_method", "arrow_function", "function_expression", "func_literal", "constructor_declaration",
    "generator_function_declaration", "anonymous_function_creation_expression", "anonymous_function",
    "closure_expression", "lambda_expression", "function", "lambda", "block_argument",
})  # fmt: skip
IFS = frozenset({"if_statement", "if_expression", "if"})
CONDITIONAL = IFS | frozenset({
    "while_statement", "while_expression", "while", "do_statement", "unless", "elsif", "if_modifier",
    "unless_modifier", "ternary_expression", "conditional_expression", "conditional", "for_clause", "for_statement",
    "else_if_clause",
})  # fmt: skip
LOOPS = frozenset({
    "for_statement", "for_in_statement", "for_range_loop", "while_statement", "while_expression", "do_statement",
    "loop_expression", "for_expression", "enhanced_for_statement", "foreach_statement", "while", "until", "for",
})  # fmt: skip
SWITCHES = frozenset({
    "switch_statement", "switch_expression", "expression_switch_statement", "type_switch_statement",
    "select_statement", "match_expression", "case",
})  # fmt: skip
BLOCKS = frozenset({
    "block", "statement_list", "statement_block", "compound_statement", "body_statement", "then", "else", "block_body",
    "do_block", "do", "begin",
})  # fmt: skip
CALLS = frozenset({
    "call_expression", "method_invocation", "call", "function_call_expression", "member_call_expression",
    "scoped_call_expression", "nullsafe_member_call_expression",
})  # fmt: skip
RETURNS = frozenset({"return_statement", "return_expression", "return"})
LEAVING = RETURNS | frozenset({
    "throw_statement", "throw_expression", "continue_statement", "continue_expression", "break_statement",
    "break_expression", "next", "break",
})  # fmt: skip
MEMBERS = frozenset({
    "selector_expression", "index_expression", "member_expression", "subscript_expression", "field_expression",
    "field_access", "array_access", "instance_variable", "element_reference", "member_access_expression",
    "class_variable",
})  # fmt: skip
STRINGS = frozenset({"string", "string_literal", "interpreted_string_literal", "encapsed_string", "template_string"})
NAMES = frozenset({"identifier", "variable_name"})
_SKIPPED = ("import", "package", "preproc", "use_", "attribute", "annotation", "decorator", "marker_annotation")
_TYPES = ("_type", "type_arguments", "type_parameters", "type_annotation", "type_identifier", "mod_item_test")


class Source:
    """One parsed file."""

    def __init__(self, source: bytes, grammar: Grammar) -> None:
        self.bytes = source
        self.grammar = grammar
        self._parser: Parser = parser_of(grammar)
        self._tree = self._parser.parse(source)
        self._faults = Query(self._parser.language or self._tree.language, "(ERROR) @fault (MISSING) @fault")
        self.root = self._tree.root_node
        self._errors = self._count_errors(self.root)

    def parses(self, text: bytes, parts: Sequence[Part]) -> bool:
        """Whether a new text, made by these parts, can be read as well as the file as it is."""
        tree = self._tree.copy()
        for start, end, new in sorted(parts, reverse=True):  # so that all but the places changed is not read again
            before, gone = self._point(start), self._point(end)
            last = new.rpartition(b"\n")[2]
            lines = new.count(b"\n")
            after = (before[0] + lines, len(last) if lines else before[1] + len(last))
            tree.edit(start, end, start + len(new), before, gone, after)
        root = self._parser.parse(text, tree).root_node
        return not root.has_error or (self._errors > 0 and self._count_errors(root) <= self._errors)

    def _point(self, at: int) -> tuple[int, int]:
        """(row, column) of a byte."""
        row = bisect_right(self._starts, at) - 1
        return row, at - self._starts[row]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(at + 1 for at, byte in enumerate(self.bytes) if byte == 10)]

    def _count_errors(self, root: Node) -> int:
        if not root.has_error:
            return 0
        return sum(len(nodes) for nodes in QueryCursor(self._faults).captures(root).values())

    def nodes(self) -> Iterator[Node]:
        """All nodes that may be changed, in the order of the text: nothing of what could not be read."""
        todo = [self.root]
        while todo:
            node = todo.pop()
            kind = node.type
            if kind.startswith(_SKIPPED) or kind.endswith(_TYPES) or node.is_error or "comment" in kind:
                continue
            if kind == "mod_item" and self.text(node).startswith(b"mod tests"):  # tests beside what they test
                continue
            yield node
            todo += reversed(node.children)

    def text(self, node: Node) -> bytes:
        """The node as it is written."""
        return self.bytes[node.start_byte : node.end_byte]

    def word(self, node: Node | None) -> str:
        """The node as it is written, as text; empty for none."""
        return self.text(node).decode(errors="replace") if node is not None else ""

    def before(self, start: int) -> bytes:
        """What stands before a byte on its line: its indent, for a statement that begins the line."""
        return self.bytes[self.bytes.rfind(b"\n", 0, start) + 1 : start]

    def line_end(self, end: int) -> int:
        """The start of the next line, or the end of the file."""
        found = self.bytes.find(b"\n", end)
        return len(self.bytes) if found < 0 else found + 1

    @property
    def newline(self) -> bytes:
        """How lines end."""
        return b"\r\n" if b"\r\n" in self.bytes[:2000] else b"\n"

    def begins_line(self, node: Node) -> bool:
        """Whether nothing but white space stands before it on its line."""
        return not self.before(node.start_byte).strip()

    def has_lines(self, node: Node) -> bool:
        """Whether nothing else stands on its lines."""
        rest = self.bytes[node.end_byte : self.line_end(node.end_byte)].strip()
        return self.begins_line(node) and (not rest or rest.startswith(self.grammar.remark.encode()))

    def found(self, node: Node, text: bytes, shown: Node | None = None) -> Found:
        """`text` in a node's place, shown to people by a node around it."""
        return self.at((node.start_byte, node.end_byte), text, shown or node)

    def at(self, span: tuple[int, int], text: bytes, shown: Node) -> Found:
        """`text` in place of some bytes."""
        start, end = min(shown.start_byte, span[0]), max(shown.end_byte, span[1])
        return Found(parts=(Part(*span, text),), shown=(start, end))


Rule = Operator[Source, Node]


def around(node: Node, kinds: frozenset[str]) -> Node | None:
    """The nearest node around it of one of these kinds."""
    one = node.parent
    while one is not None and one.type not in kinds:
        one = one.parent
    return one


def everything(node: Node) -> Iterator[Node]:
    """A node and all below it, in the order of the text."""
    todo = [node]
    while todo:
        one = todo.pop()
        yield one
        todo += reversed(one.children)


def condition(node: Node) -> Node | None:
    """What a statement or expression depends on, without parentheses; None where that is a declaration, too."""
    found = node.child_by_field_name("condition") if node.type in CONDITIONAL else None
    if found is not None and found.type in ("parenthesized_expression", "condition_clause"):
        found = found.named_children[0] if len(found.named_children) == 1 else None
    if found is None or any("let_c" in one.type or "declar" in one.type for one in everything(found)):
        return None
    return None if found.type.startswith("assignment") or found.has_error else found


def called(node: Node) -> Node | None:
    """The last name of what a call calls."""
    if node.type not in CALLS:
        return None
    target = next((one for key in ("function", "method", "name") if (one := node.child_by_field_name(key))), None)
    while target is not None and target.named_children and target.type not in NAMES:
        target = target.named_children[-1]
    return target


def own_function(node: Node) -> Node | None:
    """The function right around it."""
    return around(node, FUNCTIONS)
