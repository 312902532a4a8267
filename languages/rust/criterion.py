"""Benchmarks of criterion in Rust: their names, as far as the source states them, and their closures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from languages import parsing
from languages.parsing import create_parser, iterate_tree

MAX_NAME = 100
"""Characters of a name that criterion prints in full."""
EVERY_PARAMETER = "/*"
"""End of the name of a benchmark that runs with several parameters; `timed_rounds.py` runs all of them."""
_METHODS = ("bench_function", "bench_with_input")
_MAIN = re.compile(rb"^\s*(\w+::)?criterion_main!", re.MULTILINE)
_GROUP_MACRO = "criterion_group"


@dataclass(frozen=True)
class CriterionBenchmark:
    """A benchmark of a file: its name, and the body of the closure that runs it."""

    name: str
    body: Node


def has_criterion_main(source: bytes) -> bool:
    """Return whether a file is a program of criterion's benchmarks."""
    return _MAIN.search(source) is not None


def list_benchmarks(root: Node) -> list[CriterionBenchmark]:
    """Return the benchmarks of a file whose names are literals and whose code is a closure, in their order."""
    return [benchmark for node in iterate_tree(root) if (benchmark := _read_benchmark(node)) is not None]


def list_benchmark_names(source: bytes) -> list[str]:
    """Return the names of a file's benchmarks, each once; none if the file is no program of criterion."""
    if not has_criterion_main(source):
        return []
    root = create_parser(parsing.RUST).parse(source).root_node
    return list(dict.fromkeys(benchmark.name for benchmark in list_benchmarks(root)))


def list_group_functions(root: Node) -> set[str]:
    """Return the functions that `criterion_group!` lists, and other words in it."""
    return {
        word
        for node in iterate_tree(root)
        if node.type == "macro_invocation" and _get_text(node.child_by_field_name("macro")).endswith(_GROUP_MACRO)
        for word in re.findall(r"\w+", _get_text(node))
    }


def _read_benchmark(node: Node) -> CriterionBenchmark | None:
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    if function is None or function.type != "field_expression":
        return None
    arguments = _list_arguments(node)
    if _get_text(function.child_by_field_name("field")) not in _METHODS or len(arguments) < 2:
        return None
    body = arguments[-1].child_by_field_name("body") if arguments[-1].type == "closure_expression" else None
    group, own = _find_group(function.child_by_field_name("value"), node), _read_id(arguments[0])
    if body is None or group is None or own is None:
        return None
    name = "/".join(part for part in (group, own) if part)
    is_clear = name.isprintable() and 0 < len(name) <= MAX_NAME and name == name.strip()
    return CriterionBenchmark(name, body) if is_clear else None


def _read_id(argument: Node) -> str | None:
    """Return a literal, or the part of a BenchmarkId before its parameter and a mark for that; None when unclear."""
    if argument.type != "call_expression":
        return _read_literal(argument)
    match = re.search(r"\bBenchmarkId::(new|from_parameter)$", _get_text(argument.child_by_field_name("function")))
    if match is None:
        return None
    if match[1] == "from_parameter":
        return EVERY_PARAMETER[1:]
    arguments = _list_arguments(argument)
    name = _read_literal(arguments[0]) if arguments else None
    return name + EVERY_PARAMETER if name else None


def _read_literal(node: Node) -> str | None:
    """Return the text of a string without escapes; None for other expressions."""
    if node.type not in ("string_literal", "raw_string_literal"):
        return None
    parts = node.named_children
    return _get_text(parts[0]) if len(parts) == 1 and parts[0].type == "string_content" else None


def _find_group(receiver: Node | None, call: Node) -> str | None:
    """Return the group that a value adds benchmarks to, empty for the top level; None when it is unclear."""
    if receiver is None:
        return None
    if receiver.type in ("parenthesized_expression", "reference_expression"):
        return _find_group(receiver.named_children[-1], call)
    if receiver.type == "identifier":
        return _find_group_of_name(_get_text(receiver), call)
    function = receiver.child_by_field_name("function") if receiver.type == "call_expression" else None
    if function is None or function.type != "field_expression":
        return "" if re.match(r"(criterion::)?Criterion::", _get_text(function)) else None
    if _get_text(function.child_by_field_name("field")) != "benchmark_group":
        # `sample_size` and others return their receiver.
        return _find_group(function.child_by_field_name("value"), call)
    arguments = _list_arguments(receiver)
    return _read_literal(arguments[0]) if len(arguments) == 1 else None


def _find_group_of_name(name: str, call: Node) -> str | None:
    """Return the group of the last variable of that name before a call in its function, else of a parameter."""
    function: Node | None = call
    while function is not None and function.type != "function_item":
        function = function.parent
    if function is None:
        return None
    values = [
        node.child_by_field_name("value")
        for node in iterate_tree(function)
        if node.type == "let_declaration"
        and node.end_byte <= call.start_byte
        and _get_text(node.child_by_field_name("pattern")) == name
    ]
    if values:
        last = values[-1]
        return _find_group(last, last) if last is not None else None
    types = [kind for parameter, kind in _list_parameters(function) if parameter == name]
    return "" if types and re.search(r"\bCriterion\b", types[0]) else None


def _list_parameters(function: Node) -> Iterator[tuple[str, str]]:
    """Yield (name, type) of a function's parameters."""
    parameters = function.child_by_field_name("parameters")
    for parameter in parameters.named_children if parameters is not None else ():
        yield (
            _get_text(parameter.child_by_field_name("pattern")),
            _get_text(parameter.child_by_field_name("type")),
        )


def _list_arguments(call: Node) -> list[Node]:
    arguments = call.child_by_field_name("arguments")
    named_children = arguments.named_children if arguments is not None else []
    return [child for child in named_children if child.type not in ("line_comment", "block_comment")]


def _get_text(node: Node | None) -> str:
    return (node.text or b"").decode(errors="replace") if node is not None else ""
