"""Names that a test binds to values: in rows of a table of cases, and in calls of the helpers of its file.

Tables are those of loops, of pytest's `parametrize`, and arrays of structs or objects. A name that an assertion
compares makes its column one of expected values. All others are inputs of the tested code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from evaluation.controls.alternatives import is_container, is_string
from evaluation.controls.blocks import TestBlock, TestFile
from evaluation.controls.calls import is_call, list_arguments, read_called_name, read_head

_LOOPS = frozenset({"for_statement", "for_in_statement"})
_HEADS = frozenset({"decorator"})
"""Node types of what stands before a test and may hold a table of its cases."""
_ASSIGNMENTS = frozenset({"assignment", "short_var_declaration", "let_declaration", "variable_declarator", "var_spec"})
_RECEIVERS = frozenset({"self", "cls"})
_NAME_SEPARATOR = re.compile(r"[,\s]+")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A value of a case or call, and the name that is bound to it."""

    node: Node
    name: str
    is_in_head: bool = False
    """Whether it stands before the test's function, in a decorator."""
    helper: TestBlock | None = None
    """Function that the value is an argument of; None for a value of a table."""

    @property
    def span(self) -> tuple[int, int]:
        """First byte and end."""
        return self.node.start_byte, self.node.end_byte


def list_cells(file: TestFile, block: TestBlock) -> list[Cell]:
    """Return the cells of the tables and calls of helpers of a test."""
    cells: list[Cell] = []
    todo = [block.node]
    while todo:
        node = todo.pop()
        if node.type in _LOOPS:
            cells += _list_loop_cells(file, block, node)
        elif node.type in _HEADS and file.sites.table_calls:
            cells += [cell for call in node.named_children for cell in _list_call_cells(file, block, call)]
            continue
        elif node.type == "composite_literal":
            cells += _list_struct_cells(file, node)
        elif node.type == "array":
            cells += [cell for row in node.named_children for cell in _list_pair_cells(file, row)]
        elif is_call(file, node):
            cells += _list_argument_cells(file, block, node)
            cells += _list_each_cells(file, node)
        todo += node.named_children
    return cells


def _list_each_cells(file: TestFile, call: Node) -> Iterator[Cell]:
    """Yield the cells of `it.each(rows)(title, function)`, with the parameters of the function."""
    table = next(iter(call.named_children), call)
    if table == call or not is_call(file, table) or not read_head(file, table).endswith(".each"):
        return
    functions = [node for node in _list_positional(call) if "function" in node.type]
    names = _list_parameters(file, functions[0]) if functions else []
    for row in [row for rows in _list_positional(table)[:1] for row in rows.named_children] if names else ():
        yield from _bind_row(row.named_children if row.type == "array" else [row], names)


def _list_argument_cells(file: TestFile, block: TestBlock, call: Node) -> Iterator[Cell]:
    """Yield the arguments of a call of a function of the test or file, with its parameters."""
    name = read_called_name(read_head(file, call))
    if (helper := file.find_helper(name, block)) is not None:
        names = _list_parameters(file, helper.node)
        for cell, parameter in zip(_list_positional(call), names, strict=False):
            yield Cell(node=cell, name=parameter, helper=helper)


def _list_struct_cells(file: TestFile, literal: Node) -> Iterator[Cell]:
    """Yield the values of the rows of a slice or map of structs in Go, with or without the names of their fields."""
    kind, body = literal.named_children[0], literal.named_children[-1]
    struct = _find_struct(file, kind)
    fields = struct.named_children[0].named_children if struct is not None and struct.named_children else []
    names = [file.read(part) for field in fields for part in field.children_by_field_name("name")]
    for row in _list_rows(body) if names else ():
        for value, name in zip(row.named_children, names, strict=False):
            parts = value.named_children
            if value.type == "keyed_element" and len(parts) > 1:
                yield Cell(node=_unwrap(parts[-1]), name=file.read(parts[0]))
            else:
                yield Cell(node=_unwrap(value), name=name)


def _list_rows(body: Node) -> Iterator[Node]:
    for element in body.named_children:
        row = _unwrap(element.named_children[-1] if element.type == "keyed_element" else element)
        if row.type == "literal_value":
            yield row


def _unwrap(element: Node) -> Node:
    return element.named_children[0] if element.type == "literal_element" and element.named_children else element


def _find_struct(file: TestFile, kind: Node) -> Node | None:
    """Return the struct type of the elements of a slice, array or map type, which may be declared in the file."""
    element = kind.named_children[-1] if kind.type in ("slice_type", "array_type", "map_type") else None
    if element is None or element.type == "struct_type":
        return element
    todo = [file.root]
    while todo:
        node = todo.pop()
        parts = node.named_children
        if node.type == "type_spec" and file.read(parts[0]) == file.read(element).lstrip("*"):
            return parts[-1] if parts[-1].type == "struct_type" else None
        todo += parts if node.type in ("source_file", "type_declaration") else []
    return None


def _list_pair_cells(file: TestFile, row: Node) -> Iterator[Cell]:
    """Yield the values of an object that is a row."""
    for pair in row.named_children if row.type == "object" else ():
        if pair.type == "pair" and len(pair.named_children) > 1:
            yield Cell(node=pair.named_children[1], name=file.read(pair.named_children[0]))


def _list_loop_cells(file: TestFile, block: TestBlock, loop: Node) -> Iterator[Cell]:
    """Yield the cells of the rows that a loop takes apart, written in its head or assigned to a name before."""
    target, rows = loop.child_by_field_name("left"), loop.child_by_field_name("right")
    if target is None or rows is None:
        return
    names = [file.read(part) for part in target.named_children if part.type != "comment"]
    table = rows if is_container(rows) else _find_assigned(file, block, file.read(rows))
    if names and table is not None:
        for row in table.named_children:
            if is_container(row):
                yield from _bind_row(row.named_children, names)


def _find_assigned(file: TestFile, block: TestBlock, name: str) -> Node | None:
    todo = [block.node]
    while todo:
        node = todo.pop()
        parts = node.named_children
        if node.type in _ASSIGNMENTS and len(parts) > 1 and file.read(parts[0]) == name and is_container(parts[-1]):
            return parts[-1]
        todo += parts
    return None


def _list_call_cells(file: TestFile, block: TestBlock, call: Node) -> Iterator[Cell]:
    """Yield the cells of a call that gives a test its cases: `parametrize(names, rows)`, or rows alone."""
    if not (is_call(file, call) and re.search(file.sites.table_calls, read_head(file, call))):
        return
    arguments = _list_positional(call)
    if len(arguments) > 1:
        names, rows = _read_names(file, arguments[0]), arguments[1]
    elif arguments:
        function = next((node for node in block.node.named_children if "function" in node.type), block.node)
        names, rows = _list_parameters(file, function), arguments[0]
    else:
        return
    for row in rows.named_children if names and _is_list(rows) else ():
        cells = _list_positional(row) if is_call(file, row) else row.named_children if _is_list(row) else [row]
        yield from _bind_row([row] if len(names) == 1 and not is_call(file, row) else cells, names, is_in_head=True)


def _is_list(node: Node) -> bool:
    return node.type in ("list", "tuple")


def _list_positional(call: Node) -> list[Node]:
    """Return the positional arguments of a call."""
    return [part for part in list_arguments(call) if part.type not in ("comment", "keyword_argument")]


def _read_names(file: TestFile, node: Node) -> list[str]:
    """Return the names of columns: words of a string, or the strings of a list."""
    parts = node.named_children if _is_list(node) else [node]
    text = ",".join(file.read(part).strip("'\"") for part in parts if is_string(part))
    return [name for name in _NAME_SEPARATOR.split(text) if name]


def _list_parameters(file: TestFile, function: Node) -> list[str]:
    """Return the names of the parameters of a function, without the object that it is a method of."""
    parameters = function.child_by_field_name("parameters")
    names: list[str] = []
    for part in parameters.named_children if parameters is not None else ():
        named = [*part.children_by_field_name("name"), *part.children_by_field_name("pattern")]
        names += [file.read(node) for node in named or part.named_children[:1] or [part]]
    return [name for name in names if name not in _RECEIVERS]


def _bind_row(cells: Sequence[Node], names: Sequence[str], *, is_in_head: bool = False) -> Iterator[Cell]:
    values = [cell for cell in cells if cell.type != "comment"]
    for cell, name in zip(values, names, strict=False):
        yield Cell(node=cell, name=name, is_in_head=is_in_head)


def list_changed_ids(before: Sequence[str], after: Sequence[str]) -> dict[str, str] | None:
    """Return id -> its new id for the tests of a table of which some values were changed.

    None where it is not clear which test is which, as where an id changed its place.

    Args:
        before: ids of the tests in the order of the report.
        after: ids after the change, in their order.
    """
    if len(before) != len(after) or len(set(after)) != len(after):
        return None
    changed = {old: new for old, new in zip(before, after, strict=True) if old != new}
    return changed if set(before).isdisjoint(changed.values()) else None
